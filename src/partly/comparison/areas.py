"""Tables and curves of the cells that ask questions: the area under the progression of P@k, by query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partly import catalogue, plots
from partly.comparison.lines import Line
from partly.comparison.statistics import Mean, Scores, mean, not_worse
from partly.comparison.tables import escaped, number
from partly.progression import RANKS

Group = dict[str, list[Line]]  # query -> its lines, one a seed


def groups(lines: Sequence[Line]) -> dict[str, Group]:
    """What is compared: by title, the lines that differ in the query and the seed alone."""
    found: dict[str, Group] = {}
    for line in (line for line in lines if line.get("asks")):
        usual = catalogue.find(line["method"]).defaults()
        differ = {name: value for name, value in line["settings"].items() if value != usual.get(name)}
        method = line["method"] + (f" {differ}" if differ else "")
        size = f"{line['asks']['rounds']} rounds of {line['asks']['questions']}"
        title = ", ".join([line["data"], line["scenario"], method, line["head"], size])
        found.setdefault(title, {}).setdefault(line["asks"]["query"], []).append(line)
    return found


def markdown(lines: Sequence[Line]) -> str:
    """A row for each score of each group, a column a query: means over the seeds. The best is bold; ≈ is not shown to
    be worse."""
    text = []
    for title, group in groups(lines).items():
        text += [f"### {escaped(title)}\n", f"| area | {' | '.join(group)} |", "|---" + "|---:" * len(group) + "|"]
        for name in RANKS:
            scores = {query: _by_seed(found, name) for query, found in group.items()}
            best, level = not_worse(scores) or ("", set())
            cells = [_cell(mean(by_seed.values()), q == best, q in level) for q, by_seed in scores.items()]
            text.append(f"| {name} | {' | '.join(cells)} |")
        text.append("")
    return "\n".join(text)


def _by_seed(lines: Sequence[Line], name: str) -> Scores:
    """By seed, where the area is defined."""
    return {line["seed"]: line["areas"][name] for line in lines if line["areas"][name] is not None}


def picture(group: Group) -> bytes:
    """SVG: the mean curves of one group."""
    panels = {name: [_curve(place, found, name) for place, found in enumerate(group.values())] for name in RANKS}
    return plots.progress(panels, list(group))


def _curve(place: int, lines: Sequence[Line], name: str) -> plots.Curve:
    """The mean over the seeds, as far as all of them came."""
    ends = min(len(line["rounds"]) for line in lines)

    def over_seeds(of: Any) -> list[float]:
        means: list[float] = np.mean([[of(one) for one in line["rounds"][:ends]] for line in lines], axis=0).tolist()
        return means

    answers = over_seeds(lambda one: one["answers"])
    return plots.Curve(
        plots.look(place, False), [round(x) for x in answers], over_seeds(lambda one: one["scores"][name])
    )


def _cell(value: Mean | None, best: bool, level: bool) -> str:
    text = number(value)
    return f"**{text}**" if best else f"{text} ≈" if level else text
