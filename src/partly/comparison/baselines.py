"""Whether the baselines of a race are at their best: tuned scikit-learn on the same known entries is the yardstick.

What a method is said to add is worth nothing where the plain way is below what everybody can have.
"""

from __future__ import annotations

from collections.abc import Sequence

from partly import methods
from partly.comparison.groups import Block, Row, spelled
from partly.comparison.plan import NAIVE, SCIKIT
from partly.comparison.results import Line
from partly.comparison.statistics import Scores

ALLOWED = 0.005  # of mAP that a baseline may be below the yardstick


def yardstick(lines: Sequence[Line], data: str, scenario: str, validation: str = "complete") -> Scores:
    """Seed -> test mAP of tuned scikit-learn, from any of these lines that are on the same known entries; empty where
    none was run."""
    usual = {name: methods.find(name).defaults() for name in (SCIKIT.partition("[")[0],)}
    wanted = (data, scenario, validation)
    return {
        line["seed"]: line["test"]["mAP"]
        for line in lines
        if (line["data"], line["scenario"], line["validation"]) == wanted
        and line["method"] in usual
        and spelled(line, usual) == SCIKIT
        and line["test"]["mAP"] is not None
    }


def behind(block: Block) -> float | None:
    """How far the best naive row of a race, tuned or not, is below tuned scikit-learn, over the seeds that both have;
    below 0 where it is above. None where one of them was not run."""
    least = next((row.scores() for row in block.rows if row.name == SCIKIT), {})
    gaps = [gap for row in block.rows if _plain(row) and (gap := _gap(least, row.scores())) is not None]
    return min(gaps, default=None)


def withheld(block: Block) -> str:
    """Why the table of a race is not to be shown; empty where it may be."""
    gap = behind(block)
    if gap is None or gap <= ALLOWED:
        return ""
    return (
        f"Not shown: the best naive row is {100 * gap:.1f} points of mAP below tuned scikit-learn on the same known "
        f"entries, where {100 * ALLOWED:.1f} are allowed. What others add to a baseline that is not at its best says "
        "nothing of them. The result lines are there."
    )


def _plain(row: Row) -> bool:
    """Whether it is a naive row, with its defaults or tuned; not one that saw all labels."""
    return row.kind != "full" and row.lines[0]["method"] in NAIVE


def _gap(least: Scores, own: Scores) -> float | None:
    seeds = least.keys() & own.keys()
    return sum(least[seed] - own[seed] for seed in seeds) / len(seeds) if seeds else None
