"""Questions on their way: posed, held by one person, answered, skipped, taken back.

An answer that was acknowledged is one transaction: the statement in the ledger and the state of the question. A kill at
any moment leaves both or neither, and the same answer sent again is acknowledged again and written once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, exists, func, insert, or_, select, update

from partly.annotate import group_commit, tables
from partly.annotate.accounts import Person
from partly.annotate.label_state import together
from partly.annotate.passwords import Refused
from partly.annotate.question_selection import Wanted
from partly.errors import LabelError
from partly.labels import Hierarchy, Labels
from partly.labels.matrix import Ternary
from partly.ledger import Ledger, reader

VALUES = {"yes": 1, "no": -1, "cannot tell": 0}
SAID = {"yes": 1, "no": 0, "cannot tell": None}  # as the ledger takes it
NOTE = "annotate"
WORDS = {1: "yes", -1: "no"}
VIEWS = ("label", "item")
HELD = 600.0  # seconds for which a question is nobody else's
LONGEST = 300.0  # seconds: who took longer was away
MOST = 48  # questions held at once, of one page
ROWS = 200  # of questions, fetched at a time

# answered: by this person; open: questions that are left; round: the newest one; last: this person's last answer, by
# the number of its batch in the ledger, 0 for none.
Standing = dict[str, int]

table = tables.questions
before = tables.questions.alias("before")  # what a repeat repeats


@dataclass(frozen=True)
class Question:
    id: int
    item: int  # its number
    name: str  # its id
    label: str
    probability: float | None  # of yes, by the model that asked


@dataclass(frozen=True)
class Answered:
    """An answer that is written. implied: what followed from it, label -> yes or no."""

    question: int
    value: str
    implied: dict[str, str] = field(default_factory=dict)
    probability: float | None = None
    standing: Standing = field(default_factory=dict)  # after it
    batch: int = 0  # of the ledger: names the answer when it is taken back


@dataclass
class Desk:
    """given: what is known but for answers on these pages; it may be replaced by a newer one."""

    ledger: Ledger
    given: Labels
    hierarchy: Hierarchy | None = None
    now: Callable[[], float] = time.time
    votes: int = 1  # different people who answer each entry

    def labels(self) -> Labels:
        """What the ledger says by now: the majority where several people vote, else the latest statement."""
        return self.ledger.labels(policy="latest" if self.votes == 1 else "majority")

    def __post_init__(self) -> None:
        self.rows = {name: row for row, name in enumerate(self.given.ids)}
        self.columns = {name: column for column, name in enumerate(self.given.names)}

    # ---------------------------------------------------------------- posing

    def pose(self, found: dict[str, Any], wanted: Sequence[Wanted]) -> int:
        """The questions of a new round; its number. Chosen ones of the rounds before that nobody holds are withdrawn:
        a newer model knows better. Random ones are not, or the sample would not be fair; votes are not either, since
        people have begun to vote."""
        with group_commit.writing(self.ledger.store) as connection:
            number = int(connection.scalar(select(func.coalesce(func.max(tables.rounds.c.id), 0))) or 0) + 1
            connection.execute(insert(tables.rounds).values({"id": number, "made": self.now()} | found))
            old = and_(table.c.state == "open", table.c.random.is_(False), table.c.purpose.is_(None), ~self._held())
            connection.execute(update(table).where(old).values(state="withdrawn"))
            rows = [self._row(number, place, one) for place, one in enumerate(wanted)]
            if rows:
                connection.execute(insert(table), rows)
            return number

    def _row(self, number: int, place: int, one: Wanted) -> dict[str, Any]:
        return {
            "round": number,
            "place": place,
            "item": self.given.id_at(one.row),
            "label": self.given.names[one.column],
            "random": one.random,
            "score": one.score,
            "probability": one.probability,
            "repeats": one.repeats,
            "own": one.own,
            "state": "open",
        }

    # ---------------------------------------------------------------- asking

    def lease(self, person: Person, view: str, count: int) -> list[Question]:
        """Questions for this person alone, for a while: the first of the queue, and others about the same label (or,
        where the view is of one item, about the same item)."""
        if view not in VIEWS or not 1 <= count <= MOST:
            raise Refused(f"A view is {' or '.join(VIEWS)}, of 1 to {MOST} questions.", 422)
        with group_commit.writing(self.ledger.store) as connection:
            able = and_(self._able(person), table.c.label.not_in(self._retired(connection)))
            first = next(self._queue(connection, able), None)
            if first is None:
                return []
            same = table.c.label == first.label if view == "label" else table.c.item == first.item
            rows = list(islice(self._queue(connection, and_(able, same)), 2 * count))
            once = list({(row.item, row.label): row for row in reversed(rows)}.values())[::-1][:count]
            mine = {"person": person.id, "until": self.now() + HELD}
            ids = [row.id for row in once]
            free = and_(table.c.id.in_(ids), table.c.state == "open", or_(~self._held(), table.c.person == person.id))
            connection.execute(update(table).where(free).values(mine))
            held = select(table.c.id).where(table.c.id.in_(ids), table.c.person == person.id)
            got = set(connection.scalars(held))
            return [self._question(row) for row in once if row.id in got]

    def standing(self, person: Person) -> Standing:
        """Where this person stands: a line on the page of questions."""
        with self.ledger.store.reading() as connection:
            return _standing(connection, person)

    def withdraw_strangers(self) -> None:
        """Withdraw open questions about items or labels that are not among these data any more."""
        with group_commit.writing(self.ledger.store) as connection:
            asked = select(table.c.id, table.c.item, table.c.label).where(table.c.state == "open")
            gone = [{"which": row.id} for row in connection.execute(asked) if not self._is_ours(row)]
            if gone:
                withdrawn = update(table).where(table.c.id == bindparam("which")).values(state="withdrawn")
                connection.execute(withdrawn, gone)

    def _queue(self, connection: Connection, able: ColumnElement[bool]) -> Iterator[Row[Any]]:
        """Questions about these data, in the order of asking: random ones of earlier rounds come first."""
        asked = select(table).where(able).order_by(table.c.round, table.c.place).limit(ROWS)
        for start in count(0, ROWS):
            rows = connection.execute(asked.offset(start)).all()
            yield from filter(self._is_ours, rows)
            if len(rows) < ROWS:
                return

    def _is_ours(self, row: Any) -> bool:
        """Tell whether a question is about these data: the ledger may hold questions about others."""
        return row.item in self.rows and row.label in self.columns

    def _retired(self, connection: Connection) -> list[str]:
        """Labels of these data that the vocabulary of the ledger does not show any more."""
        shown = set(reader.structure(self.ledger.store, connection).vocabulary.names)
        return [name for name in self.columns if name not in shown]

    def _held(self) -> ColumnElement[bool]:
        """By somebody, now. A lease that ends far later than any lease can was made before the clock was set back."""
        now = self.now()
        return and_(table.c.until.is_not(None), table.c.until > now, table.c.until < now + 2 * HELD)

    def _able(self, person: Person) -> ColumnElement[bool]:
        """What this person may be asked. Of an entry that others are to answer too, each person answers once."""
        skip = tables.skips
        skipped = exists().where(skip.c.question == table.c.id, skip.c.person == person.id)
        by = select(before.c.person).where(before.c.id == table.c.repeats).scalar_subquery()
        same = and_(before.c.item == table.c.item, before.c.label == table.c.label, before.c.id != table.c.id)
        voted = exists().where(same, before.c.person == person.id, before.c.state.in_(("open", "answered")))
        due = or_(table.c.repeats.is_(None), and_(table.c.own, by == person.id), and_(~table.c.own, ~voted))
        free = or_(~self._held(), table.c.person == person.id)
        return and_(table.c.state == "open", free, due, ~skipped, assigned(person))

    def _question(self, row: Row[Any]) -> Question:
        return Question(row.id, self.rows[row.item], row.item, row.label, row.probability)

    # ---------------------------------------------------------------- answering

    def answer(self, person: Person, question: int, value: str, seconds: float, view: str) -> Answered:
        """Write an answer. Refused: who does not hold the question, what was answered otherwise, what contradicts what
        is known of the item."""
        if value not in VALUES or view not in VIEWS or not seconds >= 0:
            raise Refused(f"An answer is {', '.join(VALUES)}, in a view of {' or '.join(VIEWS)}.", 422)
        with together(self.ledger) as (ledger, connection):
            row = self.one(connection, question)
            if row.state == "answered" and (row.person, row.value) == (person.id, value):
                implied = self.implied(connection, row, VALUES[value])
                standing = _standing(connection, person)
                return Answered(question, value, implied, row.probability, standing, row.batch)
            if row.state != "open" or row.person != person.id:
                raise Refused("This question is somebody else's, or was answered or settled already.", 409)
            if row.label in self._retired(connection):
                raise Refused(f"The label {row.label!r} was retired meanwhile: it is not asked any more.", 409)
            implied = self.implied(connection, row, VALUES[value])
            batch = ledger.append([row.item], [row.label], [SAID[value]], author=person.name, note=NOTE)
            said = {"state": "answered", "value": value, "answered": self.now(), "until": None, "view": view}
            said |= {"seconds": min(seconds, LONGEST), "batch": batch}
            mine = and_(table.c.id == question, table.c.state == "open", table.c.person == person.id)
            if connection.execute(update(table).where(mine).values(said)).rowcount != 1:
                raise Refused("This question was answered meanwhile.", 409)  # and nothing of it is written
            for label, word in implied.items():
                same = and_(table.c.item == row.item, table.c.label == label, table.c.state == "open")
                settled = {"state": "settled", "settled_by": question, "value": word}
                connection.execute(update(table).where(same, table.c.repeats.is_(None)).values(settled))
            if not row.own:
                self._ask_for_votes(connection, row)
            return Answered(question, value, implied, row.probability, _standing(connection, person), batch)

    def _ask_for_votes(self, connection: Connection, row: Row[Any]) -> None:
        """Ask somebody else the same, until enough people have answered."""
        entry = and_(table.c.item == row.item, table.c.label == row.label, table.c.state.in_(("open", "answered")))
        asked = connection.execute(select(table.c.id, table.c.state, table.c.person, table.c.own).where(entry)).all()
        votes = {one.person if one.state == "answered" else f"open {one.id}" for one in asked if not one.own}
        if len(votes) < self.votes:
            copied = {name: getattr(row, name) for name in ("round", "place", "item", "label", "probability")}
            copied |= {"random": False, "repeats": row.repeats or row.id, "own": False}
            connection.execute(insert(table).values(copied | {"purpose": "vote", "state": "open"}))

    def take_back(self, person: Person, answer: int) -> Question:
        """Take back one's own answer, named by its batch in the ledger. The question is open again, and held; questions
        that the answer has settled are open too. The ledger keeps both the answer and that it was taken back. A second
        call for the same answer changes nothing."""
        with together(self.ledger) as (ledger, connection):
            mine = and_(table.c.batch == answer, table.c.person == person.id)
            row = connection.execute(select(table).where(mine)).first()
            if row is None or row.purpose == "decision" or not self._is_ours(row):
                raise Refused("There is no answer of yours to take back.", 404)
            if is_decided(connection, row.item, row.label):
                raise Refused("An admin has decided this entry. Ask them to undo the decision first.", 409)
            if row.state == "open":  # taken back already: an answer keeps its batch until there is another one
                return self._question(row)
            again: dict[str, Any] = {"state": "open", "until": self.now() + HELD}
            again |= dict.fromkeys(("value", "answered", "seconds", "view"))
            answered = and_(mine, table.c.state == "answered")
            if connection.execute(update(table).where(answered).values(again)).rowcount != 1:
                raise Refused("This answer cannot be taken back any more.", 409)
            ledger.undo(answer, by=person.name, note=NOTE)
            free = {"state": "open", "settled_by": None, "value": None}
            connection.execute(update(table).where(table.c.settled_by == row.id).values(free))
            return self._question(row)

    def skip(self, person: Person, question: int) -> None:
        """No answer: the question is let go, for others, and does not come back to this person."""
        with group_commit.writing(self.ledger.store) as connection:
            mine = and_(table.c.id == question, table.c.state == "open", table.c.person == person.id)
            if connection.execute(update(table).where(mine).values(person=None, until=None)).rowcount != 1:
                skips = tables.skips
                again = select(skips.c.question).where(skips.c.question == question, skips.c.person == person.id)
                if connection.scalar(again) is not None:
                    return  # skipped already
                raise Refused("This question is not yours to skip.", 409)
            connection.execute(insert(tables.skips).values(question=question, person=person.id))

    def one(self, connection: Connection, question: int) -> Row[Any]:
        row = connection.execute(select(table).where(table.c.id == question)).first()
        if row is None or not self._is_ours(row):
            raise Refused("There is no such question.", 404)
        return row

    # ---------------------------------------------------------------- what follows

    def known(self, connection: Connection, item: str) -> Ternary:
        """What is known of an item, [L]: what was given, and answers on these pages, the latest last."""
        z: Ternary = self.given.rows([self.rows[item]])[0].copy()
        asked = select(table.c.label, table.c.value).where(table.c.item == item, table.c.state == "answered")
        for label, value in connection.execute(asked.order_by(table.c.answered, table.c.id)):
            if label in self.columns:
                z[self.columns[label]] = VALUES[value]
        return z

    def implied(self, connection: Connection, row: Row[Any], z: int) -> dict[str, str]:
        """What follows from an answer that did not follow before: label -> yes or no."""
        if self.hierarchy is None or z == 0:
            return {}
        told = self.known(connection, row.item)
        told[self.columns[row.label]] = 0
        try:
            earlier = self._deduced(row.item, told)
        except Refused:  # people contradict each other already; that is listed, and holds up nobody
            return {}
        told[self.columns[row.label]] = z
        later = self._deduced(row.item, told)
        new = np.flatnonzero((later != earlier) & (later != told))
        return {self.given.names[column]: WORDS[int(later[column])] for column in new}

    def _deduced(self, item: str, z: Ternary) -> Ternary:
        assert self.hierarchy is not None
        try:
            found = self.hierarchy.deduce(Labels.from_ternary(z[None], names=self.given.names, ids=[item]))
        except LabelError as error:
            told = str(error).splitlines()[-1].strip()
            raise Refused(f"This contradicts what is known of the item: {told}", 409) from None
        return np.asarray(found.rows([0])[0])


def assigned(person: Person) -> ColumnElement[bool]:
    """Questions about labels that a person is asked about: those assigned, or all where none are."""
    some = tables.assignments
    mine = select(some.c.label).where(some.c.person == person.id)
    return or_(~exists().where(some.c.person == person.id), table.c.label.in_(mine))


def is_decided(connection: Connection, item: str, label: str) -> bool:
    """Tell whether an admin has decided an entry on which people disagreed."""
    entry = and_(table.c.item == item, table.c.label == label)
    decision = and_(entry, table.c.purpose == "decision", table.c.state == "answered")
    return connection.scalar(select(table.c.id).where(decision).limit(1)) is not None


def _standing(connection: Connection, person: Person) -> Standing:
    """In one statement, which is built once: everybody asks for it with every answer."""
    return dict(connection.execute(STANDING, {"who": person.id}).one()._mapping)


_mine = and_(
    table.c.state == "answered",
    table.c.person == bindparam("who"),
    or_(table.c.purpose.is_(None), table.c.purpose != "decision"),
)
STANDING = select(
    select(func.count()).where(_mine).label("answered"),
    select(func.count()).where(table.c.state == "open").label("open"),
    select(func.coalesce(func.max(tables.rounds.c.id), 0)).label("round"),
    select(func.coalesce(func.max(table.c.batch), 0)).where(_mine).label("last"),
)
