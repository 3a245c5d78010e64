"""Shift, scale or clip columns in float64 that float32 cannot hold well.

A column is conditioned if one of these holds for the training items; all others stay the same, bit for bit:

- **Far from 0**: |mean| is more than `MAX_MEAN_PER_SCALE` times the scale. The mean is subtracted.
- **Dominated**: the scale is more than `DOMINATED` times that of the column without its most extreme items. Those are
  1 % of the items, or a single one where most values are equal (as in one-hot columns and counts). The median is
  subtracted, and values are clipped to `CLIP` times the smaller scale.
- **Unusual scale**: below `MIN_SCALE` or above `MAX_SCALE`. The column is divided by its scale.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from partly.errors import listing

Floats = npt.NDArray[np.float64]
MAX_MEAN_PER_SCALE = 1e3  # float32 still leaves four digits there
DOMINATED = 30.0  # scales with the most extreme items per scale without them
CLIP = 10.0  # scales without the most extreme items
MIN_SCALE, MAX_SCALE = 1e-12, 1e12  # scales that a network standardizes by itself
ROUNDING = 8  # machine epsilons per |mean|: a column that varies less is constant
SUM_ROUNDING = 1e-13  # rounding error of a mean in float64, per |mean|
MIN_ITEMS = 20  # needed to detect extreme items


@dataclass(frozen=True, eq=False)
class Conditioning:
    """For each column in `columns` [K]: (value - shift) * factor, clipped to [-limit, limit]."""

    columns: npt.NDArray[np.int64]
    shift: Floats
    factor: Floats
    limit: Floats  # inf: no clipping

    def apply(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return features [B, D] in float32; columns that are not conditioned are only cast."""
        with np.errstate(over="ignore"):
            result = x.astype(np.float32)
            chosen = (x[:, self.columns].astype(np.float64) - self.shift) * self.factor
            result[:, self.columns] = np.clip(chosen, -self.limit, self.limit)
        return result

    def __bool__(self) -> bool:
        return len(self.columns) > 0

    def to_json(self) -> list[list[float | None]]:
        """Return [column, shift, factor, limit or None] for each column."""
        limits = [None if np.isinf(limit) else float(limit) for limit in self.limit]
        rows = zip(self.columns.tolist(), self.shift.tolist(), self.factor.tolist(), limits, strict=True)
        return [list(row) for row in rows]

    @classmethod
    def from_json(cls, rows: Sequence[Sequence[float | None]]) -> Self:
        """Read what `to_json` returned."""
        columns, shift, factor, limit = zip(*rows, strict=True)
        limits = [np.inf if value is None else value for value in limit]
        return cls(np.array(columns, np.int64), np.array(shift, float), np.array(factor, float), np.array(limits))


UNCONDITIONED = Conditioning(np.zeros(0, np.int64), *(np.zeros(0) for _ in range(3)))


def is_conditioning(value: Any, width: int) -> bool:
    """Return whether a JSON value is what `Conditioning.to_json` returns for `width` features."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) and len(row) == 4 for row in value):
        return False
    columns = [row[0] for row in value]
    numbers = [number for row in value for number in row[1:] if number is not None]
    whole = all(type(column) is int and 0 <= column < width for column in columns)
    plain = all(type(number) in (int, float) and abs(number) < np.inf for number in numbers)
    return bool(whole and plain and columns == sorted(set(columns)) and all(None not in row[:3] for row in value))


def choose_conditioning(mean: Floats, scale: Floats, sample: Floats, rounding: float) -> Conditioning | None:
    """Choose which columns to condition; None if all columns are ordinary.

    mean, scale : [D], of all training items.
    sample : [n, D], a sample of them.
    rounding : machine epsilon of the original numbers.
    """
    floor = max(ROUNDING * rounding, SUM_ROUNDING)
    middle, inner = _inner_scale(sample)
    dominated = (inner > floor * np.abs(middle)) & (inner > 0) & (scale > DOMINATED * inner)
    center, spread = np.where(dominated, middle, mean), np.where(dominated, inner, scale)
    varies = (spread > floor * np.abs(center)) & (spread > 0)
    unusual = (spread < MIN_SCALE) | (spread > MAX_SCALE)
    columns = np.flatnonzero(varies & (dominated | unusual | (np.abs(center) > MAX_MEAN_PER_SCALE * spread)))
    if not len(columns):
        return None
    factor = np.where(unusual, 1 / np.where(varies, spread, 1.0), 1.0)
    limit = np.where(dominated, CLIP * spread * factor, np.inf)
    return Conditioning(columns, center[columns], factor[columns], limit[columns])


def _inner_scale(sample: Floats) -> tuple[Floats, Floats]:
    """Return the median, and the scale about it without the most extreme items; infinite for too few items."""
    items, width = sample.shape
    if items < MIN_ITEMS:
        return np.zeros(width), np.full(width, np.inf)
    middle = np.median(sample, axis=0)
    varied = (sample != middle).mean(axis=0) > 0.5
    distance = np.abs(sample - middle)
    extreme_count = max(1, items // 100)
    distance.partition(sorted({items - 1 - extreme_count, items - 2}), axis=0)
    squares: Floats = distance**2
    without_extremes, without_one = (np.sqrt(squares[: items - count].mean(axis=0)) for count in (extreme_count, 1))
    return middle, np.where(varied, without_extremes, without_one)


def warn_of_conditioning(
    conditioning: Conditioning, mean: Floats, scale: Floats, names: Sequence[str] | None, where: str, rounded: bool
) -> None:
    """Warn of columns far from 0 and of columns that a few items dominate. rounded: they were given as float32."""
    names_of: Mapping[int, str] = {
        j: repr(names[j]) if names else f"feature {j}" for j in conditioning.columns.tolist()
    }
    clipped = np.isfinite(conditioning.limit)
    dominated = [f"{names_of[j]}: scale {scale[j]:.3g}" for j in conditioning.columns[clipped].tolist()]
    distant = [
        f"{names_of[j]}: mean {mean[j]:.6g}, scale {scale[j]:.3g}"
        for j in conditioning.columns[~clipped].tolist()
        if abs(mean[j]) > MAX_MEAN_PER_SCALE * scale[j]
    ]
    if distant:
        warnings.warn(
            f"{where}: features far from 0 (|mean| above {MAX_MEAN_PER_SCALE:g} times the scale): {len(distant)}"
            + listing(distant, len(distant))
            + "\nThey are centered in float64 before training."
            + (" They were given as float32, which has dropped digits: give them as float64." if rounded else ""),
            stacklevel=3,
        )
    if dominated:
        warnings.warn(
            f"{where}: features that a few extreme items dominate: {len(dominated)}"
            + listing(dominated, len(dominated))
            + f"\nThey are clipped to {CLIP:g} times the scale of the other items. Check these values.",
            stacklevel=3,
        )
