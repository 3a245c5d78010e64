"""Entries on which people disagree, and the decisions of an admin about them.

A decision is a statement of the admin in the ledger. The votes that contradict it are taken back, so that every policy
of the ledger gives the decided value; nothing is erased, and undoing the decision brings the votes back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, exists, func, insert, or_, select, update

from partly.annotate import tables
from partly.annotate.accounts import Person
from partly.annotate.label_state import together
from partly.annotate.passwords import Refused
from partly.annotate.question_queue import SAID, VALUES, Desk, is_decided
from partly.ledger import reader

NOTE = "decided"
MAX_SHOWN = 50

table, people = tables.questions, tables.people
other = tables.questions.alias("other")


@dataclass(frozen=True)
class Disagreement:
    """An entry with contradicting votes. question: the first one about it; votes: (person, yes, no or cannot tell)."""

    question: int
    item: int  # its number
    name: str  # its id
    label: str
    probability: float | None
    votes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Decision:
    """A decision that is written; `batch` names it when it is undone."""

    batch: int
    value: str
    left: int  # disagreements that wait


def disagreements(desk: Desk, count: int = MAX_SHOWN) -> tuple[list[Disagreement], int]:
    """Return the first disagreements that wait for a decision, and how many there are."""
    with desk.ledger.store.reading() as connection:
        waiting = _waiting(desk, connection)
        return [_disagreement(desk, connection, item, label) for item, label in waiting[:count]], len(waiting)


def decide(desk: Desk, admin: Person, question: int, value: str) -> Decision:
    """Write the decision of an admin about the entry of a question. The same decision again is written once."""
    if value not in VALUES:
        raise Refused(f"A decision is {', '.join(VALUES)}.", 422)
    with together(desk.ledger) as (ledger, connection):
        row = desk.one(connection, question)
        if is_decided(connection, row.item, row.label):
            made = connection.execute(_decisions(row)).one()
            if (made.person, made.value) != (admin.id, value):
                raise Refused("This entry was decided already. Load the page again.", 409)
            return Decision(made.batch, value, len(_waiting(desk, connection)))
        waiting = _waiting(desk, connection)
        if (row.item, row.label) not in waiting:
            raise Refused("Nobody disagrees about this entry any more. Load the page again.", 409)
        desk.implied(connection, row, VALUES[value])  # refuses what contradicts the hierarchy
        undone, _ = reader.undone(desk.ledger.store, connection)
        losing = [one.batch for one in _answers(connection, row) if one.value not in (value, "cannot tell")]
        batch = ledger.append([row.item], [row.label], [SAID[value]], author=admin.name, note=NOTE)
        undos = [ledger.undo(one, by=admin.name, note=NOTE) for one in losing if one not in undone]
        written = {name: getattr(row, name) for name in ("round", "place", "item", "label", "probability")}
        written |= {"random": False, "repeats": row.repeats or row.id, "own": False, "purpose": "decision"}
        written |= {"state": "answered", "person": admin.id, "value": value, "answered": desk.now()}
        connection.execute(insert(table).values(written | {"batch": batch, "undos": json.dumps(undos)}))
        return Decision(batch, value, len(waiting) - 1)


def undo_decision(desk: Desk, admin: Person, batch: int) -> None:
    """Take back a decision: the votes count again, and the entry waits for a decision again. A second call for the same
    decision changes nothing."""
    with together(desk.ledger) as (ledger, connection):
        decision = and_(table.c.batch == batch, table.c.purpose == "decision")
        row = connection.execute(select(table).where(decision)).first()
        if row is None:
            raise Refused("There is no such decision.", 404)
        if row.state == "answered":
            for number in [*json.loads(row.undos), batch]:
                ledger.undo(number, by=admin.name, note=NOTE)
            connection.execute(update(table).where(decision).values(state="withdrawn"))


def _waiting(desk: Desk, connection: Connection) -> list[tuple[str, str]]:
    """Entries with a yes and a no by different people, without a decision and without a vote that is still to come."""
    to_come = and_(other.c.state == "open", other.c.purpose == "vote")
    decision = and_(other.c.state == "answered", other.c.purpose == "decision")
    entry = and_(other.c.item == table.c.item, other.c.label == table.c.label)
    asked = (
        select(table.c.item, table.c.label)
        .where(table.c.state == "answered", table.c.value.in_(("yes", "no")), ~_is_own())
        .where(~exists().where(entry, or_(to_come, decision)))
        .group_by(table.c.item, table.c.label)
        .having(func.count(table.c.value.distinct()) > 1)
        .order_by(func.min(table.c.id))
    )
    found = connection.execute(asked)
    return [(item, label) for item, label in found if item in desk.rows and label in desk.columns]


def _disagreement(desk: Desk, connection: Connection, item: str, label: str) -> Disagreement:
    entry = and_(table.c.item == item, table.c.label == label, table.c.state == "answered", ~_is_own())
    asked = select(table.c.id, table.c.probability, table.c.value, people.c.name)
    rows = connection.execute(asked.join(people, people.c.id == table.c.person).where(entry).order_by(table.c.id)).all()
    votes = tuple((row.name, row.value) for row in rows)
    return Disagreement(rows[0].id, desk.rows[item], item, label, rows[0].probability, votes)


def _answers(connection: Connection, row: Row[Any]) -> Sequence[Any]:
    """All answers about the entry of a question, repeats to the same person included: each is a statement."""
    entry = and_(table.c.item == row.item, table.c.label == row.label, table.c.state == "answered")
    return connection.execute(select(table.c.batch, table.c.value).where(entry).order_by(table.c.id)).all()


def _decisions(row: Row[Any]) -> Any:
    entry = and_(table.c.item == row.item, table.c.label == row.label, table.c.state == "answered")
    return select(table).where(entry, table.c.purpose == "decision")


def _is_own() -> Any:
    """Repeats to the same person: their votes are the first answers."""
    return and_(table.c.own.is_not(None), table.c.own)
