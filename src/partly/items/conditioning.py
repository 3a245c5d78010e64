"""Columns that float32 cannot hold as they are: shifted, scaled or clipped in float64 before the cast.

A column is conditioned where one of these holds for the training items, and left alone, bit for bit, everywhere else:

- **Far from 0**: |mean| is more than `FAR` times the scale. The mean is subtracted.
- **Dominated**: the scale is more than `DOMINATED` times that of the column without its most extreme items. Those are
  1 % of the items, or a single one where most values are equal (as in one-hot columns and counts). The median is
  subtracted, and values are clipped to `CLIP` times the smaller scale.
- **Unusual scale**: below `SMALLEST` or above `LARGEST`. The column is divided by its scale.
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
FAR = 1e3  # means per scale; float32 still leaves four digits there
DOMINATED = 30.0  # scales with the most extreme items per scale without them
CLIP = 10.0  # scales without the most extreme items
SMALLEST, LARGEST = 1e-12, 1e12  # scales that a network standardises by itself
ROUNDING = 8  # machine epsilons per |mean|: a column that varies less is constant
SUM_ROUNDING = 1e-13  # per |mean|: what a mean in float64 may be off
FEWEST_ITEMS = 20  # to tell extreme items from others


@dataclass(frozen=True, eq=False)
class Conditioning:
    """For each column in `columns` [K]: (value - shift) * factor, clipped to [-limit, limit]."""

    columns: npt.NDArray[np.int64]
    shift: Floats
    factor: Floats
    limit: Floats  # inf where nothing is clipped

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
    """Tell whether a JSON value is what `Conditioning.to_json` returns for `width` features."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) and len(row) == 4 for row in value):
        return False
    columns = [row[0] for row in value]
    numbers = [number for row in value for number in row[1:] if number is not None]
    whole = all(type(column) is int and 0 <= column < width for column in columns)
    plain = all(type(number) in (int, float) and abs(number) < np.inf for number in numbers)
    return bool(whole and plain and columns == sorted(set(columns)) and all(None not in row[:3] for row in value))


def choose_conditioning(mean: Floats, scale: Floats, sample: Floats, rounding: float) -> Conditioning | None:
    """Choose which columns to condition; None where all of them are ordinary.

    mean, scale [D]: of all training items. sample [n, D]: some of them. rounding: machine epsilon of the numbers as
    they were given.
    """
    floor = max(ROUNDING * rounding, SUM_ROUNDING)
    middle, inner = _inner_scale(sample)
    dominated = (inner > floor * np.abs(middle)) & (inner > 0) & (scale > DOMINATED * inner)
    centre, spread = np.where(dominated, middle, mean), np.where(dominated, inner, scale)
    varies = (spread > floor * np.abs(centre)) & (spread > 0)
    unusual = (spread < SMALLEST) | (spread > LARGEST)
    columns = np.flatnonzero(varies & (dominated | unusual | (np.abs(centre) > FAR * spread)))
    if not len(columns):
        return None
    factor = np.where(unusual, 1 / np.where(varies, spread, 1.0), 1.0)
    limit = np.where(dominated, CLIP * spread * factor, np.inf)
    return Conditioning(columns, centre[columns], factor[columns], limit[columns])


def _inner_scale(sample: Floats) -> tuple[Floats, Floats]:
    """Return the median, and the scale about it without the most extreme items; infinite where there are too few."""
    items, width = sample.shape
    if items < FEWEST_ITEMS:
        return np.zeros(width), np.full(width, np.inf)
    middle = np.median(sample, axis=0)
    varied = (sample != middle).mean(axis=0) > 0.5
    apart = np.abs(sample - middle)
    few = max(1, items // 100)
    apart.partition(sorted({items - 1 - few, items - 2}), axis=0)
    squares: Floats = apart**2
    without_few, without_one = (np.sqrt(squares[: items - count].mean(axis=0)) for count in (few, 1))
    return middle, np.where(varied, without_few, without_one)


def warn_of_conditioning(
    found: Conditioning, mean: Floats, scale: Floats, names: Sequence[str] | None, where: str, rounded: bool
) -> None:
    """Warn of columns that lie far from 0, and of those that few items dominate. rounded: they came as float32."""
    words: Mapping[int, str] = {j: repr(names[j]) if names else f"feature {j}" for j in found.columns.tolist()}
    clipped = np.isfinite(found.limit)
    dominated = [f"{words[j]}: scale {scale[j]:.3g}" for j in found.columns[clipped].tolist()]
    distant = [
        f"{words[j]}: mean {mean[j]:.6g}, scale {scale[j]:.3g}"
        for j in found.columns[~clipped].tolist()
        if abs(mean[j]) > FAR * scale[j]
    ]
    if distant:
        warnings.warn(
            f"{where}: features far from 0 (|mean| above {FAR:g} times the scale): {len(distant)}"
            + listing(distant, len(distant))
            + "\nThey are centered in float64 before training."
            + (" They came as float32, which has dropped digits: give them as float64." if rounded else ""),
            stacklevel=3,
        )
    if dominated:
        warnings.warn(
            f"{where}: features that a few extreme items dominate: {len(dominated)}"
            + listing(dominated, len(dominated))
            + f"\nThey are clipped to {CLIP:g} times the scale of the other items. Check these values.",
            stacklevel=3,
        )
