"""Adjudication: entries that people disagree on, or that a language model answers otherwise, and decisions of admins.

A decision is a statement of the admin in the ledger. Votes that contradict it are undone, so every ledger policy gives
the decided value. Nothing is erased: undoing the decision restores the votes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, exists, func, insert, or_, select, update

from partly.annotate import tables
from partly.annotate.accounts import Person
from partly.annotate.errors import ApiError
from partly.annotate.group_commit import joint_transaction
from partly.annotate.question_queue import (
    LEDGER_VALUES,
    TERNARY,
    VALUE_NAMES,
    QuestionQueue,
    Value,
    copy_question,
    is_decided,
)
from partly.ledger import reader
from partly.ledger.history import replay
from partly.ledger.reliability import find_contradictions

NOTE = "decided"  # of batches in the ledger
MAX_DISAGREEMENTS_PER_PAGE = 50

table, people = tables.questions, tables.people
other = tables.questions.alias("other")


@dataclass(frozen=True)
class Disagreement:
    """An entry with contradicting votes. `question`: the first one about it; `votes`: pairs of person and value."""

    question: int
    item: int  # row number
    name: str  # item id
    label: str
    probability: float | None
    votes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Decision:
    """A decision that was written; `batch` names it when it is undone."""

    batch: int
    value: str
    left: int  # disagreements without a decision


def list_disagreements(queue: QuestionQueue, count: int = MAX_DISAGREEMENTS_PER_PAGE) -> tuple[list[Disagreement], int]:
    """Return the first disagreements without a decision, and their total number."""
    with queue.ledger.store.reading() as connection:
        undecided, models = _find_undecided(queue, connection), _model_votes(queue, connection)
        shown = [
            _disagreement(queue, connection, item, label, models.get((item, label), ()))
            for item, label in undecided[:count]
        ]
        return shown, len(undecided)


def decide(queue: QuestionQueue, admin: Person, question: int, value: Value) -> Decision:
    """Write the decision of an admin about the entry of a question. The same decision sent twice is written once."""
    with joint_transaction(queue.ledger) as (ledger, connection):
        row = queue.find(connection, question)
        undecided = _find_undecided(queue, connection)
        if is_decided(connection, row.item, row.label):
            query = select(table).where(_answers(row), table.c.purpose == "decision")
            decision = connection.execute(query).one()
            if (decision.person, decision.value) != (admin.id, value):
                raise ApiError("This entry was decided already. Reload the page.", 409)
            return Decision(decision.batch, value, len(undecided))
        if (row.item, row.label) not in undecided:
            raise ApiError("There is no disagreement about this entry any more. Reload the page.", 409)
        queue.find_implied(connection, row, TERNARY[value])  # refuses a value that contradicts the hierarchy
        undone, _ = reader.read_undone(queue.ledger.store, connection)
        query = select(table.c.batch, table.c.value).where(_answers(row)).order_by(table.c.id)
        votes = connection.execute(query).all()  # with repeats to the same person: each one is a statement
        losing = [vote.batch for vote in votes if vote.value not in (value, "cannot tell")]
        batch = ledger.append([row.item], [row.label], [LEDGER_VALUES[value]], author=admin.name, note=NOTE)
        undos = [ledger.undo(number, by=admin.name, note=NOTE) for number in losing if number not in undone]
        written = copy_question(row) | {"purpose": "decision", "state": "answered", "person": admin.id}
        written |= {"value": value, "answered": queue.now(), "batch": batch, "undos": json.dumps(undos)}
        connection.execute(insert(table).values(written))
        return Decision(batch, value, len(undecided) - 1)


def undo_decision(queue: QuestionQueue, admin: Person, batch: int) -> None:
    """Undo a decision: the votes count again and the entry is undecided. A second call changes nothing."""
    with joint_transaction(queue.ledger) as (ledger, connection):
        decision = and_(table.c.batch == batch, table.c.purpose == "decision")
        row = connection.execute(select(table).where(decision)).first()
        if row is None:
            raise ApiError("There is no such decision.", 404)
        if row.state == "answered":
            for number in [*json.loads(row.undos), batch]:
                ledger.undo(number, by=admin.name, note=NOTE)
            connection.execute(update(table).where(decision).values(state="withdrawn"))


def _find_undecided(queue: QuestionQueue, connection: Connection) -> list[tuple[str, str]]:
    """Return entries without a decision or an open vote: those with a yes and a no by different people, then those
    with an answer that a language model contradicts."""
    open_vote = and_(other.c.state == "open", other.c.purpose == "vote")
    decision = and_(other.c.state == "answered", other.c.purpose == "decision")
    entry = and_(other.c.item == table.c.item, other.c.label == table.c.label)
    different = func.count(table.c.value.distinct())
    query = (
        select(table.c.item, table.c.label, different > 1)
        .where(table.c.state == "answered", table.c.value.in_(("yes", "no")), ~_is_own_repeat())
        .where(~exists().where(entry, or_(open_vote, decision)))
        .group_by(table.c.item, table.c.label)
        .order_by(case((different > 1, 0), else_=1), func.min(table.c.id))
    )
    models = _model_votes(queue, connection)
    rows = [(item, label) for item, label, differ in connection.execute(query) if differ or (item, label) in models]
    return [(item, label) for item, label in rows if item in queue.rows and label in queue.columns]


def _model_votes(queue: QuestionQueue, connection: Connection) -> dict[tuple[str, str], tuple[tuple[str, str], ...]]:
    """Return what language models say about entries where people say the opposite, by item and label."""
    store = queue.ledger.store
    history = replay(reader.read_batches(store, connection))
    contradictions = find_contradictions(store, connection, history)
    if not contradictions:
        return {}
    items, labels = reader.item_names(store, connection), history.vocabulary.labels
    return {
        (items[entry.item], labels[entry.label].name): tuple((name, VALUE_NAMES[z]) for name, z in entry.models)
        for entry in contradictions
    }


def _disagreement(
    queue: QuestionQueue, connection: Connection, item: str, label: str, models: tuple[tuple[str, str], ...]
) -> Disagreement:
    entry = and_(table.c.item == item, table.c.label == label, table.c.state == "answered", ~_is_own_repeat())
    query = select(table.c.id, table.c.probability, table.c.value, people.c.name)
    query = query.join(people, people.c.id == table.c.person).where(entry).order_by(table.c.id)
    rows = connection.execute(query).all()
    votes = tuple((row.name, row.value) for row in rows) + tuple((f"model {name}", value) for name, value in models)
    return Disagreement(rows[0].id, queue.rows[item], item, label, rows[0].probability, votes)


def _answers(row: Row[Any]) -> ColumnElement[bool]:
    """Match the answers about the entry of a question."""
    return and_(table.c.item == row.item, table.c.label == row.label, table.c.state == "answered")


def _is_own_repeat() -> ColumnElement[bool]:
    """Match repeats to the same person, whose vote is the first answer."""
    return and_(table.c.own.is_not(None), table.c.own)
