"""Numbers for the pages: what was asked and answered, how long it takes, whether answers agree, how good models are."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Row, and_, select

from partly.annotate import tables
from partly.annotate.label_state import Answer
from partly.annotate.query_gain import FLOOR, Given
from partly.annotate.question_queue import VALUES, VIEWS, Desk

table = tables.questions
before = tables.questions.alias("before")
PRIOR = 5.0  # answers that a label is taken to have had already, at the usual pace
GUESS = 4.0  # seconds, before anybody has answered


def answered(desk: Desk) -> list[Row[Any]]:
    """All questions that have an answer, in the order of the answers."""
    with desk.ledger.store.reading() as connection:
        asked = select(table).where(table.c.state == "answered").order_by(table.c.answered, table.c.id)
        return list(connection.execute(asked).all())


def answers(desk: Desk, rows: Sequence[Row[Any]]) -> list[Answer]:
    """As entries, the latest of each entry last; cannot tell is 0."""
    return [
        (desk.rows[row.item], desk.columns[row.label], VALUES[row.value])
        for row in rows
        if row.item in desk.rows and row.label in desk.columns
    ]


def arm(desk: Desk, random: bool) -> Given:
    """The answers of an arm that are yes or no, in their order, without repeats and audits (which nobody has chosen, so
    that they have no score). Random ones that another answer has settled are among them: to leave them out would make
    the sample one of what is hard to know."""
    states = ("answered", "settled") if random else ("answered",)
    asked = select(table).where(table.c.random.is_(random), table.c.repeats.is_(None), table.c.state.in_(states))
    asked = asked if random else asked.where(table.c.score.is_not(None))
    with desk.ledger.store.reading() as connection:
        rows = connection.execute(asked.order_by(table.c.answered, table.c.id)).all()
    said = [one for one in answers(desk, rows) if one[2]]
    parts = np.array(said, np.int64).reshape(-1, 3)
    return Given(parts[:, 0], parts[:, 1], parts[:, 2].astype(np.int8))


def asked_before(desk: Desk) -> set[tuple[int, int]]:
    """Entries that are not to be posed again: answered, settled, or random and still open."""
    with desk.ledger.store.reading() as connection:
        gone = table.c.state.in_(("answered", "settled")) | and_(table.c.state == "open", table.c.random)
        found = connection.execute(select(table.c.item, table.c.label).where(gone)).all()
    pairs = ((desk.rows.get(item), desk.columns.get(label)) for item, label in found)
    return {(row, column) for row, column in pairs if row is not None and column is not None}


# ---------------------------------------------------------------- time


def seconds(desk: Desk, rows: Sequence[Row[Any]], view: str) -> npt.NDArray[np.float64]:
    """That an answer takes in this view, of each label [L]: measured, and near the usual pace of the view, or of both,
    where few answers are there."""
    timed = [row for row in rows if row.seconds and row.label in desk.columns]
    here = [row for row in timed if row.view == view]
    times, counts = np.zeros(len(desk.columns)), np.zeros(len(desk.columns))
    for row in here:
        times[desk.columns[row.label]] += row.seconds
        counts[desk.columns[row.label]] += 1
    usual = float(np.mean([row.seconds for row in here or timed] or [GUESS]))
    return np.maximum((times + PRIOR * usual) / (counts + PRIOR), 0.1)


def pace(rows: Sequence[Row[Any]]) -> dict[str, float]:
    """The middle of the seconds that answers took, by view."""
    found = {view: [row.seconds for row in rows if row.view == view and row.seconds] for view in VIEWS}
    return {view: float(np.median(times)) for view, times in found.items() if times}


# ---------------------------------------------------------------- agreement


def agreement(desk: Desk) -> dict[str, dict[str, Any]]:
    """Of repeated questions: how often the answer was the same as the one before, within a person and between two."""
    asked = select(table.c.value, before.c.value, table.c.own).join(before, before.c.id == table.c.repeats)
    decision = and_(table.c.purpose.is_not(None), table.c.purpose == "decision")
    both = and_(table.c.state == "answered", before.c.state == "answered", ~decision)
    with desk.ledger.store.reading() as connection:
        pairs = connection.execute(asked.where(both)).all()
    return {
        name: agreed([(one, other) for one, other, its in pairs if bool(its) is own])
        for name, own in (("within", True), ("between", False))
    }


def agreed(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Pairs, how many are alike, and Cohen's kappa: how much more alike than by chance; None where it is undefined."""
    count, same = len(pairs), sum(one == other for one, other in pairs)
    if not count:
        return {"pairs": 0, "same": 0, "kappa": None}
    one, other = (Counter(side) for side in zip(*pairs, strict=True))
    chance = sum(one[value] * other[value] for value in VALUES) / count**2
    return {"pairs": count, "same": same, "kappa": None if chance == 1 else (same / count - chance) / (1 - chance)}


# ---------------------------------------------------------------- models


def rounds(desk: Desk) -> list[dict[str, Any]]:
    """Every round: what its model knew, and how well it foresaw the random answers that came after it, which it could
    not know. Log loss: less is better; a coin has 0.69."""
    kept, asked = tables.rounds, select(table).where(table.c.random, table.c.state == "answered")
    with desk.ledger.store.reading() as connection:
        found = connection.execute(select(kept).order_by(kept.c.id)).all()
        random = connection.execute(asked).all()
    losses: dict[int, list[float]] = {}
    for row in random:
        if row.probability is not None and VALUES[row.value]:
            p = min(max(row.probability, FLOOR), 1 - FLOOR)
            losses.setdefault(row.round, []).append(-math.log(p if row.value == "yes" else 1 - p))
    return [
        {"round": one.id, "answers": one.answers, "known": one.known, "seconds": one.seconds, "query": one.query}
        | {"judged": len(losses.get(one.id, ())), "loss": float(np.mean(losses[one.id])) if one.id in losses else None}
        | {"found": json.loads(one.found)}
        for one in found
    ]
