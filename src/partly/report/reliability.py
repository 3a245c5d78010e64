"""Whether probabilities mean what they say: of the entries that were given about 70 %, are 70 % yes?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.labels import Labels, scored
from partly.report.chart import Chart, even
from partly.report.plots import UNKNOWN, Look

BINS = 10  # of equal width
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Of each bin that holds known entries: their number, mean probability and share of yes; `error` is the mean
    distance of the two, by entries."""

    count: npt.NDArray[np.int64]
    mean: Floats
    share: Floats

    @property
    def error(self) -> float:
        return float(np.average(np.abs(self.mean - self.share), weights=self.count))

    def margins(self) -> Floats:
        """From the share of yes down and up to the ends of its 95 % interval (Wilson), [2, bins]."""
        z, n = 1.959964, self.count
        middle = (self.share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(self.share * (1 - self.share) / n + z**2 / (4 * n**2))
        return np.maximum(np.stack([self.share - (middle - half), middle + half - self.share]), 0)


def reliability(
    probabilities: scored.KnownScores, truth: Labels, weights: tuple[Floats, Floats] | None = None
) -> Reliability | None:
    """Of all labels together, on known entries; None where no no is known: then whatever is called yes is right.

    weights: how many entries a known yes and a known no of each label stand for.
    """
    if not truth.counts()[1].any():
        return None
    parts = list(scored.iter_yes_no(probabilities, truth.ternary()))
    p = np.concatenate([part for pair in parts for part in pair]).astype(np.float64)
    yes = np.concatenate([np.repeat([1.0, 0.0], [len(pair[0]), len(pair[1])]) for pair in parts])
    place = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    count = np.bincount(place, minlength=BINS)
    some = count > 0
    each = np.ones(len(p))
    if weights is not None:
        pairs = zip(parts, *weights, strict=True)
        each = np.concatenate([np.repeat([a, b], [len(pair[0]), len(pair[1])]) for pair, a, b in pairs])
    total = np.bincount(place, each, BINS)[some]
    mean, share = (np.bincount(place, each * values, BINS)[some] / total for values in (p, yes))
    return Reliability(count[some], mean, share)


def drawn(runs: Sequence[tuple[Look, Reliability]]) -> bytes:
    """SVG: the share of yes over the probability, a line a run; on the dashed line both are the same."""
    chart = Chart(331, 259, even(-0.02, 1.02, "probability"), even(-0.02, 1.02, "share that is yes"))
    chart.line([0, 1], [0, 1], UNKNOWN, "4 3", 1)
    for style, found in runs:
        mean, share, (below, above) = found.mean.tolist(), found.share.tolist(), found.margins().tolist()
        chart.line(mean, share, style.colour, width=1.3)
        for x, y, down, up in zip(mean, share, below, above, strict=True):
            chart.line([x, x], [y - down, y + up], style.colour, width=0.8)
        sizes = 4 + 5 * np.sqrt(found.count / found.count.max())
        chart.marks(mean, share, style.marker, f'fill="{style.colour}"', sizes.tolist())
    return chart.svg()


def words(found: Reliability) -> str:
    """What the picture shows, in one sentence."""
    side = float(np.average(found.mean - found.share, weights=found.count))
    lean = "too high" if side > 0 else "too low"
    about = "" if math.isclose(side, 0, abs_tol=0.005) else f", on the whole {abs(side):.3f} {lean}"
    return f"probabilities are off by {found.error:.3f} on average{about}"
