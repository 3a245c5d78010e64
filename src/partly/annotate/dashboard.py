"""What the overview shows, gathered from the ledger and from the questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import func, select

from partly.annotate import stats, tables
from partly.annotate.accounts import Person
from partly.annotate.app_context import Site
from partly.annotate.auditing import audited, filled
from partly.annotate.query_gain import Worth
from partly.annotate.question_queue import Desk

MOST = 20  # lines of a list
WIDTH, HEIGHT = 600, 160  # of the drawing
table = tables.questions


def gathered(site: Site, person: Person) -> dict[str, Any]:
    """For the template. What people said of single entries is for admins."""
    desk, known = site.desk, site.fold()
    answers = stats.answered(desk)
    yes, no = known.counts()
    unknown = len(known) - yes - no
    pace = stats.pace(answers)
    rounds = stats.rounds(desk)
    standing = desk.standing(person)
    usual = float(np.median([row.seconds for row in answers if row.seconds] or [stats.GUESS]))
    last = rounds[-1]["found"] if rounds else {}
    return {
        "labels": sorted(zip(known.names, yes, no, unknown, strict=True), key=lambda line: -line[3]),
        "items": len(known),
        "known": int(yes.sum() + no.sum()),
        "entries": len(known) * len(known.names),
        "answers": {value: sum(row.value == value for row in answers) for value in ("yes", "no", "cannot tell")},
        "standing": standing,
        "pace": pace,
        "left": span(standing["open"] * usual),
        "rounds": rounds,
        "curve": curve([(one["answers"], one["loss"]) for one in rounds if one["loss"] is not None]),
        "worth": _worth(desk, last.get("worth")),
        "doubts": last.get("doubts", [])[:MOST] if person.admin else [],
        "agreement": stats.agreement(desk),
        "disagreements": desk.ledger.disagreements()[:MOST] if person.admin else [],
        "audits": [audited(one, stats.answers(desk, answers)) for one in filled(desk, site.seed)][-MOST:],
    }


def _worth(desk: Desk, found: dict[str, Any] | None) -> str:
    """What was measured last; where that says nothing yet, how far it is."""
    if found and found["saved"] is not None:
        return str(found["words"])
    return Worth(len(stats.arm(desk, True)), len(stats.arm(desk, False))).words


def span(seconds: float) -> str:
    """In words that nobody has to reckon with."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def curve(points: Sequence[tuple[int, float]]) -> dict[str, Any] | None:
    """Points [x, y] of a line in a drawing of WIDTH x HEIGHT, and the ends of its axes; None where there is no line."""
    if len(points) < 2:
        return None
    answers, losses = (np.array(part, np.float64) for part in zip(*points, strict=True))
    high = max(float(losses.max()), 1e-9)
    x = WIDTH * (answers - answers[0]) / max(answers[-1] - answers[0], 1)
    y = HEIGHT * (1 - losses / high)
    return {
        "points": [(round(float(a), 1), round(float(b), 1)) for a, b in zip(x, y, strict=True)],
        "width": WIDTH,
        "height": HEIGHT,
        "first": int(answers[0]),
        "last": int(answers[-1]),
        "high": high,
        "begins": float(losses[0]),
        "ends": float(losses[-1]),
    }


def per_person(desk: Desk, people: Sequence[Person]) -> list[dict[str, Any]]:
    asked = select(table.c.person, func.count(), func.avg(table.c.seconds)).where(table.c.state == "answered")
    with desk.ledger.store.reading() as connection:
        counts = {who: (count, mean) for who, count, mean in connection.execute(asked.group_by(table.c.person))}
    nothing = (0, None)
    return [
        {"id": one.id, "name": one.name, "role": one.role, "blocked": one.blocked}
        | {"answers": counts.get(one.id, nothing)[0]}
        | {"seconds": counts.get(one.id, nothing)[1]}
        for one in people
    ]
