"""The page of a loop of questions: what came of asking, round by round, and what is asked now."""

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

BESIDE = {"all yes": "recovered_all_yes", "coin": "recovered_coin"}  # what else would recover so much
SHOWN = 50  # questions, at most
Arms = Mapping[str, Sequence[Round]]  # the query, or what else there is to compare -> its rounds
Panels = dict[str, dict[str, plots.Curve]]  # score -> arm -> its curve


def write(
    path: Path, title: str, said: Sequence[str], arms: Arms, labels: Labels, questions: Questions | None = None
) -> None:
    """Write the page, whole or not at all. said: what came of it, in sentences; labels: what is known by now."""
    write_file(path, render(title, said, arms, labels, questions).encode("utf-8", "replace"))


def render(title: str, said: Sequence[str], arms: Arms, labels: Labels, questions: Questions | None = None) -> str:
    """The page as HTML."""
    drawn = panels(arms) if all(len(rounds) > 1 for rounds in arms.values()) else {}
    return load_template("rounds.html").render(
        title=title,
        said=said,
        arms=arms,
        known=labels.summary(),
        panels={name: plots.draw_over_answers(curves) for name, curves in drawn.items()},
        styles={name: curve.style for curves in drawn.values() for name, curve in curves.items()},
        questions=[] if questions is None else _listed(questions, labels),
        asked=0 if questions is None else len(questions),
    )


def panels(arms: Arms) -> Panels:
    """The progression curves; beside what was recovered, what saying yes everywhere and tossing a coin would recover of
    the entries that the first arm leaves unknown."""
    names = [name for name in (*simulation.RANKS, "recovered") if all(_defined(r, name) for r in arms.values())]
    drawn = [(title, rounds, plots.choose_style(place)) for place, (title, rounds) in enumerate(arms.items())]
    found = {name: {title: _curve(rounds, name, look) for title, rounds, look in drawn} for name in names}
    if "recovered" in found:
        first = next(iter(arms.values()))
        for place, (title, name) in enumerate(BESIDE.items(), len(arms)):
            found["recovered"][title] = _curve(first, name, plots.choose_style(place, privileged=True))
    return found


def _curve(rounds: Sequence[Round], name: str, look: plots.Style) -> plots.Curve:
    return plots.Curve(look, [one["answers"] for one in rounds], [one["scores"][name] for one in rounds])


def _defined(rounds: Sequence[Round], name: str) -> bool:
    return all(one["scores"].get(name) is not None for one in rounds)


def _listed(questions: Questions, labels: Labels) -> list[tuple[str, str, float]]:
    """Item, label and score of the first questions."""
    some = zip(questions.rows[:SHOWN], questions.columns[:SHOWN], questions.scores["score"][:SHOWN], strict=True)
    return [(labels.id_at(int(i)), labels.names[j], float(score)) for i, j, score in some]
