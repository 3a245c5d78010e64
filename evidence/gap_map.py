"""Heat map of the share of the gap between naive and full labels that each method closes, by data set and scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.colors import LinearSegmentedColormap

from partly.comparison.groups import Group
from partly.comparison.plan import NAIVE, REFERENCES
from partly.report import figures, plots

ENDS = (-1.0, 1.0)  # of the color scale
COLUMN, ROW = 0.62, 0.25  # inches


@dataclass(frozen=True)
class GapMap:
    """Shares [rows, columns], NaN where a method was not run."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shares: npt.NDArray[np.float64]


def gather(groups: Sequence[Group]) -> GapMap:
    """Collect every method at its defaults: the references first, then by mean share.

    A column is a data set and scenario, with the head that most methods have. Groups with a weak baseline are left out.
    """
    best: dict[str, Group] = {}
    for group in groups:
        if group.naive and group.full and not group.reason_withheld and any(row.gap is not None for row in group.rows):
            key = f"{group.key['data']}, {group.scenario}"
            best[key] = max(best.get(key, group), group, key=lambda candidate: len(candidate.rows))
    gaps = {name: {row.name: row.gap for row in group.rows if row.gap is not None} for name, group in best.items()}
    names = {row for shares in gaps.values() for row in shares if row in REFERENCES or not set(row) & set("[,")}
    shares = {row: np.array([column.get(row, np.nan) for column in gaps.values()], float) for row in names - {NAIVE[0]}}
    means = {row: float(np.nanmean(np.clip(shares[row], *ENDS))) for row in shares}
    order = sorted(shares, key=lambda row: (row not in REFERENCES, -means[row], row))
    return GapMap(tuple(order), tuple(gaps), np.array([shares[row] for row in order]).reshape(len(order), len(gaps)))


def format_name(row: str) -> str:
    """Return the name of a row, with a short name for the reference."""
    return "tuned scikit-learn" if row == REFERENCES[1] else row


def draw(gap_map: GapMap) -> bytes:
    """SVG with a cell per method and group, and its share in per cent."""
    colors = LinearSegmentedColormap.from_list("gap", [plots.NO, "#f4f1ea", plots.YES])
    with figures.new_figure(2.6 + COLUMN * len(gap_map.columns), 1.9 + ROW * len(gap_map.rows)) as figure:
        axes = figure.subplots()
        axes.imshow(np.clip(gap_map.shares, *ENDS), cmap=colors, vmin=ENDS[0], vmax=ENDS[1], aspect="auto")
        for (row, column), share in np.ndenumerate(gap_map.shares):
            if np.isfinite(share):
                text = f"{100 * share:.0f}" if share > ENDS[0] else "< -100"
                axes.annotate(text, (column, row), ha="center", va="center", color="#222222", fontsize=8.5)
        axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0)
        axes.set_yticks(range(len(gap_map.rows)), [plots.shorten(format_name(row), 26) for row in gap_map.rows])
        axes.set_xticks(range(len(gap_map.columns)), [plots.shorten(name, 40) for name in gap_map.columns], rotation=35)
        for label in axes.get_xticklabels():
            label.set(ha="left", rotation_mode="anchor")
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set_visible(False)
        return figures.to_svg(figure)
