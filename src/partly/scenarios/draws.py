"""Random numbers of scenarios, and checks of their settings."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.clock import seed_for
from partly.errors import SettingError

Draws = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
NEVER_DRAWN = 2.0  # larger than any draw


def draw_rows(scenario: str, seed: int, rows: slice, width: int) -> Draws:
    """Draw the numbers of some rows, [rows, width]; those of a row do not depend on the other rows."""
    bits = np.random.PCG64(seed_for(seed, scenario))
    bits.advance(rows.start * width)  # one step of the generator per number
    return np.random.Generator(bits).random((rows.stop - rows.start, width))


def smallest_per_row(among: Mask, draws: Draws) -> Mask:
    """Return a mask [B, L] of the entry of `among` with the smallest number in each row."""
    chosen = np.zeros_like(among)
    if among.size:
        best = np.where(among, draws, NEVER_DRAWN).argmin(axis=1, keepdims=True)
        np.put_along_axis(chosen, best, True, axis=1)
    return chosen & among


def choose_items(scenario: str, seed: int, items: int, count: int) -> Mask:
    """Return a mask [N] of `count` random items."""
    chosen = np.zeros(items, bool)
    chosen[np.argsort(draw_rows(scenario, seed, slice(0, items), 1)[:, 0], kind="stable")[:count]] = True
    return chosen


def check_share(share: Any, scenario: str) -> float:
    number = isinstance(share, numbers.Real) and not isinstance(share, bool)
    if not number or not 0 <= share <= 1:
        raise SettingError(f"{scenario}: share must be a number from 0 to 1 (10 % is 0.1); got {share!r}.")
    return float(share)


def check_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise SettingError(f"seed must be a whole number; got {seed!r}.")
    return int(seed)
