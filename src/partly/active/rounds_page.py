"""The HTML page of a loop: scores of each round, and the current questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from partly.active import simulation
from partly.active.loop import Round
from partly.active.selection import Questions
from partly.atomic_io import write_file
from partly.labels import Labels
from partly.report import plots
from partly.report.layout import load_template

BASELINES = {"all yes": "recovered_all_yes", "coin flip": "recovered_coin"}
MAX_QUESTIONS_SHOWN = 50
Arms = Mapping[str, Sequence[Round]]  # strategy -> its rounds
Panels = dict[str, dict[str, plots.Curve]]  # score -> strategy -> curve


def write(
    path: Path, title: str, summary: Sequence[str], arms: Arms, labels: Labels, questions: Questions | None = None
) -> None:
    """Write the page atomically. `summary`: sentences; `labels`: currently known."""
    write_file(path, render(title, summary, arms, labels, questions).encode("utf-8", "replace"))


def render(title: str, summary: Sequence[str], arms: Arms, labels: Labels, questions: Questions | None = None) -> str:
    """Return the page as HTML."""
    curves_by_score = make_panels(arms) if all(len(rounds) > 1 for rounds in arms.values()) else {}
    return load_template("rounds.html").render(
        title=title,
        summary=summary,
        score_names=simulation.SCORE_NAMES,
        arms=arms,
        known=labels.summary(),
        panels={name: plots.draw_over_answers(curves) for name, curves in curves_by_score.items()},
        styles={name: curve.style for curves in curves_by_score.values() for name, curve in curves.items()},
        questions=[] if questions is None else _list_questions(questions, labels),
        asked=0 if questions is None else len(questions),
    )


def make_panels(arms: Arms) -> Panels:
    """Return the progression curves of each score; for "recovered" also the two baselines of the first strategy."""
    candidates = (*simulation.PRECISION_METRICS, "recovered")
    names = [name for name in candidates if all(_has_score(rounds, name) for rounds in arms.values())]
    looks = [plots.choose_style(place) for place in range(len(arms))]
    panels = {
        name: {title: _curve(rounds, name, look) for (title, rounds), look in zip(arms.items(), looks, strict=True)}
        for name in names
    }
    if "recovered" in panels:
        first = next(iter(arms.values()))
        for place, (title, name) in enumerate(BASELINES.items(), len(arms)):
            panels["recovered"][title] = _curve(first, name, plots.choose_style(place, privileged=True))
    return panels


def _curve(rounds: Sequence[Round], name: str, look: plots.Style) -> plots.Curve:
    return plots.Curve(look, [row["answers"] for row in rounds], [row["scores"][name] for row in rounds])


def _has_score(rounds: Sequence[Round], name: str) -> bool:
    return all(row["scores"].get(name) is not None for row in rounds)


def _list_questions(questions: Questions, labels: Labels) -> list[tuple[str, str, float]]:
    """Return item, label and score of the first questions."""
    columns = (questions.rows, questions.columns, questions.scores["score"])
    listed = zip(*(column[:MAX_QUESTIONS_SHOWN] for column in columns), strict=True)
    return [(labels.id_at(int(i)), labels.names[j], float(score)) for i, j, score in listed]
