"""Which labels a person is asked about. A person without an assignment is asked about all of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select, update

from partly.annotate import group_commit, tables
from partly.annotate.passwords import Refused
from partly.annotate.question_queue import Desk
from partly.errors import did_you_mean

table = tables.assignments


def assignments(desk: Desk) -> dict[int, list[str]]:
    """Return the assigned labels of every person who has some, in their order."""
    with desk.ledger.store.reading() as connection:
        rows = connection.execute(select(table.c.person, table.c.label)).all()
    found: dict[int, list[str]] = {}
    for person, label in sorted(rows, key=lambda row: desk.columns.get(row.label, -1)):
        found.setdefault(person, []).append(label)
    return found


def assign(desk: Desk, person: int, labels: Sequence[str]) -> None:
    """Ask a person about these labels only; about all of them where none is given. Questions about other labels that
    the person holds are free for others."""
    for label in labels:
        if label not in desk.columns:
            raise Refused(f"There is no label {label!r}.{did_you_mean(label, desk.columns)}", 422)
    people, questions = tables.people, tables.questions
    with group_commit.writing(desk.ledger.store) as connection:
        if connection.scalar(select(people.c.id).where(people.c.id == person)) is None:
            raise Refused("There is no such person.", 404)
        connection.execute(table.delete().where(table.c.person == person))
        if labels:
            connection.execute(insert(table), [{"person": person, "label": one} for one in dict.fromkeys(labels)])
            held = (questions.c.person == person, questions.c.state == "open", questions.c.label.not_in(labels))
            connection.execute(update(questions).where(*held).values(person=None, until=None))
