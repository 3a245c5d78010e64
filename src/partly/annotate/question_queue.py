"""The queue of questions: pose, lease, answer, skip, undo.

An answer is one transaction: the statement in the ledger and the state of the question. After a crash both are there,
or neither. The same answer sent twice is acknowledged twice and written once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, Literal, get_args

import numpy as np
from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, exists, func, insert, or_, select, update

from partly.annotate import tables
from partly.annotate.accounts import Person
from partly.annotate.errors import ApiError
from partly.annotate.group_commit import joint_transaction, transaction
from partly.annotate.question_selection import QuestionDraft
from partly.errors import LabelError
from partly.labels import Hierarchy, Labels
from partly.labels.matrix import Ternary
from partly.ledger import Ledger, reader

View = Literal["label", "item"]
Value = Literal["yes", "no", "cannot tell"]
VIEWS: tuple[View, ...] = get_args(View)
TERNARY: dict[str, int] = {"yes": 1, "no": -1, "cannot tell": 0}
LEDGER_VALUES: dict[str, int | None] = {"yes": 1, "no": 0, "cannot tell": None}  # values that `Ledger.append` takes
VALUE_NAMES = {1: "yes", -1: "no"}
NOTE = "annotate"  # of batches in the ledger
LEASE_SECONDS = 600.0
MAX_ANSWER_SECONDS = 300.0  # longer times are cut: the person was away
MAX_QUESTIONS_PER_PAGE = 48
FETCH_ROWS = 200

# answered: answers of this person; open: questions left; round: the newest round; last: the ledger batch of this
# person's last answer, 0 for none.
Standing = dict[str, int]

table = tables.questions
other = tables.questions.alias("other")


@dataclass(frozen=True)
class Question:
    id: int
    item: int  # row number
    name: str  # item id
    label: str
    probability: float | None  # of yes, by the model that selected the question


@dataclass(frozen=True)
class SavedAnswer:
    """An answer that was written. `implied`: values that the hierarchy adds, by label."""

    question: int
    value: str
    implied: dict[str, str] = field(default_factory=dict)
    probability: float | None = None
    standing: Standing = field(default_factory=dict)  # after the answer
    batch: int = 0  # in the ledger; names the answer when it is undone


@dataclass
class QuestionQueue:
    """Questions about a project. `given`: labels known without the answers of this server; refreshed over time."""

    ledger: Ledger
    given: Labels
    hierarchy: Hierarchy | None = None
    now: Callable[[], float] = time.time
    votes: int = 1  # different people who answer each entry

    def __post_init__(self) -> None:
        self.rows = {name: row for row, name in enumerate(self.given.ids)}
        self.columns = {name: column for column, name in enumerate(self.given.names)}

    def add_new_labels(self) -> None:
        """Take up the labels that were added to the ledger meanwhile, unknown for every item."""
        vocabulary = self.ledger.vocabulary()
        new = tuple(name for name in vocabulary.names if name not in self.given.names)
        if new:
            row, column, value = self.given.entries()
            yes = (value == 1).astype(np.int8)
            self.given = Labels.from_codes(row, column, yes, self.given.names + new, self.given.ids)
            self.columns = {name: column for column, name in enumerate(self.given.names)}
            self.hierarchy = vocabulary.hierarchy() or self.hierarchy

    def labels(self) -> Labels:
        """Return the labels of the ledger: the majority if several people vote, else the latest statement."""
        return self.ledger.labels(policy="latest" if self.votes == 1 else "majority")

    # ---------------------------------------------------------------- posing

    def pose(self, round_values: dict[str, Any], drafts: Sequence[QuestionDraft]) -> int:
        """Write the questions of a new round and return its number.

        Selected questions of earlier rounds without a lease are withdrawn. Random ones stay, or the control group
        would be biased; votes stay, since people have begun to vote.
        """
        with transaction(self.ledger.store) as connection:
            number = int(connection.scalar(select(func.coalesce(func.max(tables.rounds.c.id), 0))) or 0) + 1
            connection.execute(insert(tables.rounds).values({"id": number, "made": self.now()} | round_values))
            selected = and_(table.c.random.is_(False), table.c.purpose.is_(None))
            outdated = and_(table.c.state == "open", selected, ~self._is_leased())
            connection.execute(update(table).where(outdated).values(state="withdrawn"))
            if drafts:
                connection.execute(insert(table), [self._new_row(number, *placed) for placed in enumerate(drafts)])
            return number

    def _new_row(self, number: int, place: int, draft: QuestionDraft) -> dict[str, Any]:
        row = {name: getattr(draft, name) for name in ("random", "score", "probability", "repeats", "own")}
        row |= {"round": number, "place": place, "state": "open"}
        return row | {"item": self.given.id_at(draft.row), "label": self.given.names[draft.column]}

    def withdraw_foreign_questions(self) -> None:
        """Withdraw open questions about items or labels that are no longer in the data."""
        with transaction(self.ledger.store) as connection:
            query = select(table.c.id, table.c.item, table.c.label).where(table.c.state == "open")
            foreign = [{"which": row.id} for row in connection.execute(query) if not self._is_ours(row)]
            if foreign:
                withdraw = update(table).where(table.c.id == bindparam("which")).values(state="withdrawn")
                connection.execute(withdraw, foreign)

    # ---------------------------------------------------------------- asking

    def lease(self, person: Person, view: View, count: int) -> list[Question]:
        """Reserve up to `count` questions for a person: the first in the queue, and others with its label (or item)."""
        with transaction(self.ledger.store) as connection:
            askable = and_(self._is_askable(person), table.c.label.not_in(self._read_hidden_labels(connection)))
            first = next(self._queue(connection, askable), None)
            if first is None:
                return []
            same = table.c.label == first.label if view == "label" else table.c.item == first.item
            rows = list(islice(self._queue(connection, and_(askable, same)), 2 * count))
            rows = list({(row.item, row.label): row for row in reversed(rows)}.values())[::-1][:count]
            ids = [row.id for row in rows]
            free = or_(~self._is_leased(), table.c.person == person.id)
            reserve = update(table).where(table.c.id.in_(ids), table.c.state == "open", free)
            connection.execute(reserve.values(person=person.id, until=self.now() + LEASE_SECONDS))
            leased = select(table.c.id).where(table.c.id.in_(ids), table.c.person == person.id)
            leased_ids = set(connection.scalars(leased))
            return [self._question(row) for row in rows if row.id in leased_ids]

    def standing(self, person: Person) -> Standing:
        """Return the counts that the question page shows."""
        with self.ledger.store.reading() as connection:
            return _standing(connection, person)

    def _queue(self, connection: Connection, condition: ColumnElement[bool]) -> Iterator[Row[Any]]:
        """Yield questions about these data in queue order; random ones of earlier rounds come first."""
        query = select(table).where(condition).order_by(table.c.round, table.c.place).limit(FETCH_ROWS)
        for start in count(0, FETCH_ROWS):
            rows = connection.execute(query.offset(start)).all()
            yield from filter(self._is_ours, rows)
            if len(rows) < FETCH_ROWS:
                return

    def _is_ours(self, row: Any) -> bool:
        """Tell whether a question is about these data: the ledger may hold questions about others."""
        return row.item in self.rows and row.label in self.columns

    def _read_hidden_labels(self, connection: Connection) -> list[str]:
        """Return labels of these data that the vocabulary of the ledger no longer shows."""
        names = set(reader.read_vocabulary_history(self.ledger.store, connection).vocabulary.names)
        return [name for name in self.columns if name not in names]

    def _is_leased(self) -> ColumnElement[bool]:
        """Match questions with a valid lease. A lease that ends too far ahead predates a clock that was set back."""
        now = self.now()
        return and_(table.c.until.is_not(None), table.c.until > now, table.c.until < now + 2 * LEASE_SECONDS)

    def _is_askable(self, person: Person) -> ColumnElement[bool]:
        """Match open questions that this person may get. Each person votes once on an entry."""
        skips = tables.skips
        skipped = exists().where(skips.c.question == table.c.id, skips.c.person == person.id)
        first_person = select(other.c.person).where(other.c.id == table.c.repeats).scalar_subquery()
        same_entry = and_(other.c.item == table.c.item, other.c.label == table.c.label, other.c.id != table.c.id)
        voted = exists().where(same_entry, other.c.person == person.id, other.c.state.in_(("open", "answered")))
        repeat_fits = or_(and_(table.c.own, first_person == person.id), and_(~table.c.own, ~voted))
        free = or_(~self._is_leased(), table.c.person == person.id)
        fits = or_(table.c.repeats.is_(None), repeat_fits)
        return and_(table.c.state == "open", free, fits, ~skipped, _is_assigned(person))

    def _question(self, row: Row[Any]) -> Question:
        return Question(row.id, self.rows[row.item], row.item, row.label, row.probability)

    # ---------------------------------------------------------------- answering

    def answer(self, person: Person, question: int, value: Value, seconds: float, view: View) -> SavedAnswer:
        """Write an answer; refuse it if the person does not hold the question or if it contradicts known labels."""
        with joint_transaction(self.ledger) as (ledger, connection):
            row = self.find(connection, question)
            is_repeated = row.state == "answered" and (row.person, row.value) == (person.id, value)
            if not is_repeated:
                self._check_open(connection, row, person)
            implied = self.find_implied(connection, row, TERNARY[value])
            batch = row.batch
            if not is_repeated:
                batch = ledger.append([row.item], [row.label], [LEDGER_VALUES[value]], author=person.name, note=NOTE)
                saved = {"state": "answered", "value": value, "answered": self.now(), "until": None, "view": view}
                saved |= {"seconds": min(seconds, MAX_ANSWER_SECONDS), "batch": batch}
                mine = and_(table.c.id == question, table.c.state == "open", table.c.person == person.id)
                if connection.execute(update(table).where(mine).values(saved)).rowcount != 1:
                    raise ApiError("This question was answered meanwhile.", 409)  # rolls back the statement too
                self._settle(connection, row, implied)
                if not row.own:
                    self._request_votes(connection, row)
            return SavedAnswer(question, value, implied, row.probability, _standing(connection, person), batch)

    def _check_open(self, connection: Connection, row: Row[Any], person: Person) -> None:
        if row.state == "answered" and row.person == person.id:
            raise ApiError("You have answered this question already, perhaps in another window.", 409)
        if row.state != "open" or row.person != person.id:
            raise ApiError("This question belongs to another person, or was answered or settled already.", 409)
        if row.label in self._read_hidden_labels(connection):
            raise ApiError(f"The label {row.label!r} was retired meanwhile and is no longer asked.", 409)

    def _settle(self, connection: Connection, row: Row[Any], implied: dict[str, str]) -> None:
        """Close open questions whose answers follow from this one."""
        for label, value in implied.items():
            entry = and_(table.c.item == row.item, table.c.label == label, table.c.state == "open")
            settled = {"state": "settled", "settled_by": row.id, "value": value}
            connection.execute(update(table).where(entry, table.c.repeats.is_(None)).values(settled))

    def _request_votes(self, connection: Connection, row: Row[Any]) -> None:
        """Ask another person the same question until enough people have answered."""
        entry = and_(table.c.item == row.item, table.c.label == row.label, table.c.state.in_(("open", "answered")))
        rows = connection.execute(select(table.c.id, table.c.state, table.c.person, table.c.own).where(entry)).all()
        votes = {vote.person if vote.state == "answered" else f"open {vote.id}" for vote in rows if not vote.own}
        if len(votes) < self.votes:
            connection.execute(insert(table).values(copy_question(row) | {"purpose": "vote", "state": "open"}))

    def undo(self, person: Person, answer: int) -> Question:
        """Undo the person's own answer, named by its ledger batch.

        The question is open and leased again, and so are questions that the answer settled. The ledger keeps the
        answer and the undo. A second call for the same answer changes nothing.
        """
        with joint_transaction(self.ledger) as (ledger, connection):
            mine = and_(table.c.batch == answer, table.c.person == person.id)
            row = connection.execute(select(table).where(mine)).first()
            if row is None or row.purpose == "decision" or not self._is_ours(row):
                raise ApiError("You have no answer to undo.", 404)
            if is_decided(connection, row.item, row.label):
                raise ApiError("An admin has decided this entry. Ask them to undo the decision first.", 409)
            if row.state == "open":  # undone already: the question keeps the batch until it is answered again
                return self._question(row)
            reopened: dict[str, Any] = {"state": "open", "until": self.now() + LEASE_SECONDS}
            reopened |= dict.fromkeys(("value", "answered", "seconds", "view"))
            answered = and_(mine, table.c.state == "answered")
            if connection.execute(update(table).where(answered).values(reopened)).rowcount != 1:
                raise ApiError("This answer can no longer be undone.", 409)
            ledger.undo(answer, by=person.name, note=NOTE)
            unsettled = {"state": "open", "settled_by": None, "value": None}
            connection.execute(update(table).where(table.c.settled_by == row.id).values(unsettled))
            return self._question(row)

    def skip(self, person: Person, question: int) -> None:
        """Release a question for other people; this person is not asked it again."""
        skips = tables.skips
        with transaction(self.ledger.store) as connection:
            mine = and_(table.c.id == question, table.c.state == "open", table.c.person == person.id)
            if connection.execute(update(table).where(mine).values(person=None, until=None)).rowcount != 1:
                query = select(skips.c.question).where(skips.c.question == question, skips.c.person == person.id)
                if connection.scalar(query) is not None:
                    return  # skipped already
                raise ApiError("You do not hold this question, so you cannot skip it.", 409)
            connection.execute(insert(skips).values(question=question, person=person.id))

    def find(self, connection: Connection, question: int) -> Row[Any]:
        row = connection.execute(select(table).where(table.c.id == question)).first()
        if row is None or not self._is_ours(row):
            raise ApiError("There is no such question.", 404)
        return row

    # ---------------------------------------------------------------- implied labels

    def find_implied(self, connection: Connection, row: Row[Any], z: int) -> dict[str, str]:
        """Return the labels that the hierarchy adds because of an answer; refuse an answer that contradicts others."""
        if self.hierarchy is None or z == 0:
            return {}
        known, column = self._read_known_labels(connection, row.item), self.columns[row.label]
        known[column] = 0
        try:
            before = self._deduce(row.item, known)
        except ApiError:  # people contradict each other already; admins see that as a disagreement
            return {}
        known[column] = z
        after = self._deduce(row.item, known)
        new = np.flatnonzero((after != before) & (after != known))
        return {self.given.names[column]: VALUE_NAMES[int(after[column])] for column in new}

    def _read_known_labels(self, connection: Connection, item: str) -> Ternary:
        """Return the known labels of an item [L]: given ones, then answers in the order of time."""
        z: Ternary = self.given.rows([self.rows[item]])[0].copy()
        query = select(table.c.label, table.c.value).where(table.c.item == item, table.c.state == "answered")
        for label, value in connection.execute(query.order_by(table.c.answered, table.c.id)):
            if label in self.columns:
                z[self.columns[label]] = TERNARY[value]
        return z

    def _deduce(self, item: str, z: Ternary) -> Ternary:
        assert self.hierarchy is not None
        try:
            labels = self.hierarchy.deduce(Labels.from_ternary(z[None], names=self.given.names, ids=[item]))
        except LabelError as error:
            reason = str(error).splitlines()[-1].strip()
            raise ApiError(f"This contradicts known labels of the item: {reason}", 409) from None
        return np.asarray(labels.rows([0])[0])


def copy_question(row: Row[Any]) -> dict[str, Any]:
    """Return the values of a question that asks another person the same."""
    copied = {name: getattr(row, name) for name in ("round", "place", "item", "label", "probability")}
    return copied | {"random": False, "repeats": row.repeats or row.id, "own": False}


def is_decided(connection: Connection, item: str, label: str) -> bool:
    """Tell whether an admin has decided an entry that people disagreed on."""
    entry = and_(table.c.item == item, table.c.label == label)
    decision = and_(entry, table.c.purpose == "decision", table.c.state == "answered")
    return connection.scalar(select(table.c.id).where(decision).limit(1)) is not None


def _is_assigned(person: Person) -> ColumnElement[bool]:
    """Match questions about the labels of a person: the assigned ones, or all if none is assigned."""
    assignments = tables.assignments
    assigned = select(assignments.c.label).where(assignments.c.person == person.id)
    return or_(~exists().where(assignments.c.person == person.id), table.c.label.in_(assigned))


def _standing(connection: Connection, person: Person) -> Standing:
    return dict(connection.execute(_STANDING, {"who": person.id}).one()._mapping)


_own_answers = and_(
    table.c.state == "answered",
    table.c.person == bindparam("who"),
    or_(table.c.purpose.is_(None), table.c.purpose != "decision"),
)
_STANDING = select(  # one statement, built once: it runs with every answer
    select(func.count()).where(_own_answers).label("answered"),
    select(func.count()).where(table.c.state == "open").label("open"),
    select(func.coalesce(func.max(tables.rounds.c.id), 0)).label("round"),
    select(func.coalesce(func.max(table.c.batch), 0)).where(_own_answers).label("last"),
)
