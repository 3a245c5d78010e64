"""Data of the overview and people pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import func, select

from partly.annotate import tables
from partly.annotate.accounts import Person
from partly.annotate.app_context import AppContext
from partly.annotate.auditing import audit, read_model_batches
from partly.annotate.query_gain import QueryGain
from partly.annotate.question_queue import TERNARY, QuestionQueue
from partly.annotate.stats import Snapshot, read_snapshot

MAX_LIST_LENGTH = 20
WORST_LABELS = 3
CHART_WIDTH, CHART_HEIGHT = 600, 160


def overview_data(context: AppContext, person: Person) -> dict[str, Any]:
    """Return the values of the overview template. Lists of single entries are for admins."""
    queue, snapshot = context.queue, read_snapshot(context.queue)
    labels = context.refresh_labels(snapshot)
    yes, no = labels.counts()
    unknown = len(labels) - yes - no
    standing, rounds = queue.standing(person), snapshot.rounds
    last = rounds[-1]["found"] if rounds else {}
    batches = read_model_batches(queue, context.seed)[-MAX_LIST_LENGTH:]
    return {
        "labels": sorted(zip(labels.names, yes, no, unknown, strict=True), key=lambda counts: -counts[3]),
        "items": len(labels),
        "known": int(yes.sum() + no.sum()),
        "entries": len(labels) * len(labels.names),
        "answers": {value: sum(row.value == value for row in snapshot.answers) for value in TERNARY},
        "standing": standing,
        "pace": snapshot.mean_seconds_by_view(),
        "time_left": format_duration(standing["open"] * snapshot.mean_seconds()),
        "rounds": rounds,
        "chart": loss_chart([(row["answers"], row["loss"]) for row in rounds if row["loss"] is not None]),
        "gain": _gain(snapshot, last.get("worth")).words,
        "suspects": last.get("doubts", [])[:MAX_LIST_LENGTH] if person.admin else [],
        "agreement": snapshot.agreement(),
        "disagreements": queue.ledger.disagreements()[:MAX_LIST_LENGTH] if person.admin else [],
        "sources": _sources(queue)[:MAX_LIST_LENGTH] if person.admin else [],
        "audits": [audit(batch, snapshot.entries) for batch in batches],
    }


def _gain(snapshot: Snapshot, stored: dict[str, Any] | None) -> QueryGain:
    """Return the last measurement, or how many answers there are before the first."""
    if stored and stored["saved"] is not None:
        return QueryGain.from_plain(stored)
    return QueryGain(len(snapshot.answer_series(random=True)), len(snapshot.answer_series(random=False)))


def _sources(queue: QuestionQueue) -> list[dict[str, Any]]:
    """Return a row per source, with the labels that it knows worst."""
    rows = []
    for quality in queue.ledger.source_quality():
        kind, author, run = quality.source
        worst = sorted(quality.label_weights, key=lambda name: quality.label_weights[name])[:WORST_LABELS]
        rows.append(vars(quality) | {"kind": kind, "name": author or run, "worst": worst})
    return rows


def format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 36000 else f"{seconds / 3600:.0f} hours"


def loss_chart(points: Sequence[tuple[int, float]]) -> dict[str, Any] | None:
    """Return the points of a line chart of (answers, loss) and the ends of its axes; None for less than two points."""
    if len(points) < 2:
        return None
    answers, losses = (np.array(part, np.float64) for part in zip(*points, strict=True))
    x = CHART_WIDTH * (answers - answers[0]) / max(answers[-1] - answers[0], 1)
    y = CHART_HEIGHT * (1 - losses / max(float(losses.max()), 1e-9))
    return {
        "points": [(round(float(a), 1), round(float(b), 1)) for a, b in zip(x, y, strict=True)],
        "width": CHART_WIDTH,
        "height": CHART_HEIGHT,
        "first_answers": int(answers[0]),
        "last_answers": int(answers[-1]),
        "first_loss": float(losses[0]),
        "last_loss": float(losses[-1]),
    }


def people_data(queue: QuestionQueue, people: Sequence[Person]) -> list[dict[str, Any]]:
    """Return account, number of answers and mean seconds per answer of each person."""
    table = tables.questions
    query = select(table.c.person, func.count(), func.avg(table.c.seconds)).where(table.c.state == "answered")
    with queue.ledger.store.reading() as connection:
        counts = {person: (count, mean) for person, count, mean in connection.execute(query.group_by(table.c.person))}
    return [
        {"id": person.id, "name": person.name, "role": person.role, "blocked": person.blocked}
        | dict(zip(("answers", "seconds"), counts.get(person.id, (0, None)), strict=True))
        for person in people
    ]
