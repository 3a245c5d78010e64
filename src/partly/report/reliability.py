"""Reliability diagram: the observed share of yes among entries, by predicted probability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.labels import Labels, scored
from partly.report.chart import Chart, linear_axis
from partly.report.plots import UNKNOWN, Style

BINS = 10  # of equal width
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Number of known entries, mean probability and share of yes of each non-empty bin."""

    count: npt.NDArray[np.int64]
    mean: Floats
    share: Floats

    @property
    def error(self) -> float:
        """Expected calibration error: mean distance of the two, weighted by entries."""
        return float(np.average(np.abs(self.mean - self.share), weights=self.count))

    def margins(self) -> Floats:
        """Distances from the share of yes to the ends of its 95 % interval (Wilson), [2, bins]."""
        z, n = 1.959964, self.count
        center = (self.share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(self.share * (1 - self.share) / n + z**2 / (4 * n**2))
        return np.maximum(np.stack([self.share - (center - half), center + half - self.share]), 0)


def measure_reliability(
    probabilities: scored.KnownScores, truth: Labels, weights: tuple[Floats, Floats] | None = None
) -> Reliability | None:
    """Bin the known entries of all labels together; None where no no is known.

    weights: number of entries that a known yes and a known no of each label stand for.
    """
    if not truth.counts()[1].any():
        return None
    pairs = list(scored.iter_yes_no(probabilities, truth.ternary()))
    sizes = [[len(yes), len(no)] for yes, no in pairs]
    p = np.concatenate([part for pair in pairs for part in pair]).astype(np.float64)
    is_yes = np.concatenate([np.repeat([1.0, 0.0], size) for size in sizes])
    bins = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    count = np.bincount(bins, minlength=BINS)
    filled = count > 0
    weight = np.ones(len(p))
    if weights is not None:
        weight = np.concatenate([np.repeat([a, b], size) for size, a, b in zip(sizes, *weights, strict=True)])
    total = np.bincount(bins, weight, BINS)[filled]
    mean, share = (np.bincount(bins, weight * values, BINS)[filled] / total for values in (p, is_yes))
    return Reliability(count[filled], mean, share)


def draw_reliability(runs: Sequence[tuple[Style, Reliability]]) -> bytes:
    """SVG: the share of yes over the probability, a line per run; perfect calibration is the dashed line."""
    x_axis = linear_axis(-0.02, 1.02, "predicted probability")
    chart = Chart(331, 259, x_axis, linear_axis(-0.02, 1.02, "observed share of yes"))
    chart.add_line([0, 1], [0, 1], UNKNOWN, "4 3", 1)
    for style, result in runs:
        mean, share, (below, above) = result.mean.tolist(), result.share.tolist(), result.margins().tolist()
        chart.add_line(mean, share, style.color, width=1.3)
        for x, y, down, up in zip(mean, share, below, above, strict=True):
            chart.add_line([x, x], [y - down, y + up], style.color, width=0.8)
        sizes = 4 + 5 * np.sqrt(result.count / result.count.max())
        chart.add_marks(mean, share, style.marker, f'fill="{style.color}"', sizes.tolist())
    return chart.to_svg()


def describe_reliability(result: Reliability) -> str:
    """Summarize the diagram in one sentence."""
    bias = float(np.average(result.mean - result.share, weights=result.count))
    direction = "too high" if bias > 0 else "too low"
    overall = "" if math.isclose(bias, 0, abs_tol=0.005) else f"; on average {abs(bias):.3f} {direction}"
    return f"calibration error {result.error:.3f}{overall}"
