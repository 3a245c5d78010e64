"""One picture of many races: which share of the gap between naive and all labels each method closes, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.colors import LinearSegmentedColormap

from partly.comparison.baselines import withheld
from partly.comparison.groups import Block
from partly.comparison.plan import NAIVE, REFERENCES
from partly.report import figures, plots

ENDS = (-1.0, 1.0)  # of the colours: shares beyond are drawn as these
COLUMN, ROW = 0.62, 0.25  # inches


@dataclass(frozen=True)
class GapMap:
    """Shares [rows, columns], NaN where a method was not run."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shares: npt.NDArray[np.float64]


def gather(blocks: Sequence[Block]) -> GapMap:
    """Every method at its defaults, those that choose for themselves first, then by their mean; a column a set and
    scenario, of the head with the most methods. Races whose baseline is not at its best are left out."""
    best: dict[str, Block] = {}
    for block in blocks:
        if block.naive and block.full and not withheld(block) and any(row.gap is not None for row in block.rows):
            key = f"{block.what['data']}, {block.scenario}"
            best[key] = max(best.get(key, block), block, key=lambda one: len(one.rows))
    found = {name: {row.name: row.gap for row in block.rows if row.gap is not None} for name, block in best.items()}
    names = {row for shares in found.values() for row in shares if row in REFERENCES or not set(row) & set("[,")}
    shares = {row: np.array([one.get(row, np.nan) for one in found.values()], float) for row in names - {NAIVE[0]}}
    means = {row: float(np.nanmean(np.clip(shares[row], *ENDS))) for row in shares}
    order = sorted(shares, key=lambda row: (row not in REFERENCES, -means[row], row))
    return GapMap(tuple(order), tuple(found), np.array([shares[row] for row in order]).reshape(len(order), len(found)))


def words(row: str) -> str:
    """The name of a row, the yardstick in plain words."""
    return "tuned scikit-learn" if row == REFERENCES[1] else row


def draw(found: GapMap) -> bytes:
    """SVG: a cell a method and race, with its share in per cent."""
    colours = LinearSegmentedColormap.from_list("gap", [plots.NO, "#f4f1ea", plots.YES])
    with figures.new_figure(2.6 + COLUMN * len(found.columns), 1.9 + ROW * len(found.rows)) as figure:
        axes = figure.subplots()
        axes.imshow(np.clip(found.shares, *ENDS), cmap=colours, vmin=ENDS[0], vmax=ENDS[1], aspect="auto")
        for (row, column), share in np.ndenumerate(found.shares):
            if np.isfinite(share):
                text = f"{100 * share:.0f}" if share > ENDS[0] else "< -100"
                axes.annotate(text, (column, row), ha="center", va="center", color="#222222", fontsize=8.5)
        axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0)
        axes.set_yticks(range(len(found.rows)), [plots.shorten(words(row), 26) for row in found.rows])
        axes.set_xticks(range(len(found.columns)), [plots.shorten(name, 40) for name in found.columns], rotation=35)
        for label in axes.get_xticklabels():
            label.set(ha="left", rotation_mode="anchor")
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set_visible(False)
        return figures.to_svg(figure)
