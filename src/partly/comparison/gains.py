"""How much better than one method the others are: by scenario, and by groups of labels within a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from partly.comparison.groups import Block, Row
from partly.comparison.protocol import GROUPS
from partly.comparison.statistics import Mean, mean

NOTES = (
    "Its own mAP in the first row; below it what others add to that, in hundredths of mAP: mean over seeds of the "
    "differences ± half of their 95 % interval. Groups are equal parts of the labels, from those with the fewest known "
    "yes in training (1) to those with the most."
)


@dataclass(frozen=True)
class Gains:
    """One table: a column a scenario or a group of labels."""

    title: str
    columns: tuple[str, ...]
    own: tuple[Mean | None, ...]  # mAP of the method that the others are measured by
    rows: tuple[tuple[str, tuple[Mean | None, ...]], ...]  # method, differences; the largest first


def gains(blocks: Sequence[Block], over: str) -> list[Gains]:
    """The tables of all blocks in which the method `over` ran, by data: all scenarios, then the groups of each."""
    found = []
    words = {"complete": "", "none": "", "partial": ", validated on partly known labels"}
    ordered = sorted(blocks, key=lambda block: (block.title, block.validation, block.scenario))
    for title, same in groupby(ordered, key=lambda block: block.title + words[block.validation]):
        group = list(same)
        found += [_table(title, over, [(block.scenario, block, "mAP") for block in group])]
        for block in group:
            by_group = [(f"group {n}", block, f"mAP group {n}") for n in range(1, GROUPS + 1)]
            found += [_table(f"{title}, {block.scenario}", over, by_group)]
    return [one for one in found if one.rows]


def signed(found: Mean | None) -> str:
    """A difference in hundredths."""
    if found is None:
        return ""
    return f"{100 * found.value:+.2f}" + ("" if found.margin is None else f" ± {100 * found.margin:.2f}")


def _table(title: str, over: str, columns: Sequence[tuple[str, Block, str]]) -> Gains:
    named = [{row.name: row for row in block.rows if row.kind != "full"} for _, block, _ in columns]
    scores = [score for *_, score in columns]
    own = [rows.get(over) for rows in named]
    names = dict.fromkeys(name for rows in named for name in rows if name != over)
    rows = [
        (name, tuple(_gain(rows.get(name), base, score) for rows, base, score in zip(named, own, scores, strict=True)))
        for name in names
    ]
    rows = sorted((row for row in rows if any(row[1])), key=lambda row: -_average(row[1]))
    means = tuple(base.mean(score) if base else None for base, score in zip(own, scores, strict=True))
    return Gains(title, tuple(name for name, *_ in columns), means, tuple(rows))


def _gain(row: Row | None, base: Row | None, score: str) -> Mean | None:
    """Over the seeds that both have."""
    if row is None or base is None:
        return None
    ours, theirs = row.scores(score), base.scores(score)
    return mean(ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys()))


def _average(found: Iterable[Mean | None]) -> float:
    values = [one.value for one in found if one]
    return sum(values) / len(values)
