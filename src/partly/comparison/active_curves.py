"""Tables and curves of the cells that ask questions: the area under the progression of P@k, by query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partly import methods
from partly.active import Plan
from partly.active.simulation import RANKS
from partly.active.strategies import find
from partly.comparison import results as result_lines
from partly.comparison.groups import named
from partly.comparison.plan import SIMULATED
from partly.comparison.results import Line
from partly.comparison.score_tables import Draw, number
from partly.comparison.statistics import Mean, Scores, mean, rank
from partly.report import figures, plots
from partly.report.layout import escape_markdown

Group = dict[str, list[Line]]  # query -> its lines, one a seed
Published = Callable[[Line, str], dict[str, str]]  # line and score -> source -> the value reported there
NOTES = (
    "Area under the progression: the mean of a score on the test part over the rounds after the first answers; mean "
    "over seeds ± half of the 95 % interval (Student's t). **Bold**: the largest area; ≈: not shown to be smaller."
)


def groups(lines: Sequence[Line]) -> dict[str, Group]:
    """What is compared: by title, the lines that differ in the query and the seed alone."""
    found: dict[str, Group] = {}
    for line in (line for line in lines if line.get("asks")):
        asks = line["asks"]
        method = named(line["method"], line["settings"], methods.find(line["method"]).defaults())
        size = f"{asks['rounds']} rounds of {asks['questions']}"
        others = {name: asks[name] for name in ("errors", "epochs", "restart", "last_child") if name in asks}
        size = named(size, others, SIMULATED | vars(Plan()))
        title = ", ".join([line["data"], line["scenario"], method, line["head"], size])
        query = named(asks["query"], asks.get("settings", {}), find(asks["query"]).defaults())
        found.setdefault(title, {}).setdefault(query, []).append(line)
    return found


def markdown(
    lines: Sequence[Line], level: int = 3, draw: Draw | None = None, published: Published | None = None
) -> str:
    """A row for each score of each group, a column a query, and the published values below it.

    level: of the headings. draw: takes the name and the SVG of a picture and returns the address to link to; without it
    there are no pictures.
    """
    result_lines.check(list(lines))
    text: list[str] = []
    for title, group in groups(lines).items():
        text += [f"{'#' * level} {escape_markdown(title)}", ""]
        if draw:
            text += [f"![P@k over the answers, by query]({draw(title, picture(group))})", ""]
        text += [f"| area | {' | '.join(map(escape_markdown, group))} |", "|---" + "|---:" * len(group) + "|"]
        for name in RANKS:
            text += [_row(name, _ours(group, name))]
            theirs = [published(found[0], name) if published else {} for found in group.values()]
            sources = dict.fromkeys(source for one in theirs for source in one)
            text += [_row(f"{name}, {source}", [one.get(source, "") for one in theirs]) for source in sources]
        text += [_row(name, cells) for name, cells in _at_the_end(group).items()]
        text.append("")
    text += [NOTES, ""]
    return "\n".join(text)


def _ours(group: Group, name: str) -> list[str]:
    """The area of each query."""
    scores = {query: _by_seed(found, name) for query, found in group.items()}
    ranking = rank([scores])
    best, level = (ranking.leader, ranking.level) if ranking else ("", ())
    return [_cell(mean(by_seed.values()), q == best, q in level) for q, by_seed in scores.items()]


def _at_the_end(group: Group) -> dict[str, list[str]]:
    """After the last round: mAP, and the minutes that people took to answer, where lines say so."""
    last = [[line["rounds"][-1] for line in found] for found in group.values()]
    rows: dict[str, list[str]] = {}
    if all(one["scores"].get("mAP") is not None for ends in last for one in ends):
        rows["mAP at the end"] = [number(mean([one["scores"]["mAP"] for one in ends])) for ends in last]
    if all("seconds" in one for ends in last for one in ends):
        rows["minutes of answering"] = [f"{np.mean([one['seconds'] for one in ends]) / 60:.0f}" for ends in last]
    return rows


def _row(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _by_seed(lines: Sequence[Line], name: str) -> Scores:
    """By seed, where the area is defined."""
    return {line["seed"]: line["areas"][name] for line in lines if line["areas"][name] is not None}


def picture(group: Group) -> bytes:
    """SVG: the mean curves of one group."""
    ordered = [(place, query, found) for place, (query, found) in enumerate(group.items())]
    panels = {name: {query: _curve(place, found, name) for place, query, found in ordered} for name in RANKS}
    return figures.draw_progress(panels)


def _curve(place: int, lines: Sequence[Line], name: str) -> plots.Curve:
    """The mean over the seeds, as far as all of them came."""
    ends = min(len(line["rounds"]) for line in lines)

    def over_seeds(of: Any) -> list[float]:
        means: list[float] = np.mean([[of(one) for one in line["rounds"][:ends]] for line in lines], axis=0).tolist()
        return means

    answers = over_seeds(lambda one: one["answers"])
    return plots.Curve(
        plots.choose_style(place, False), [round(x) for x in answers], over_seeds(lambda one: one["scores"][name])
    )


def _cell(value: Mean | None, best: bool, level: bool) -> str:
    text = number(value)
    return f"**{text}**" if best else f"{text} ≈" if level else text
