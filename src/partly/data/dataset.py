"""A data set: items, what is known of them, and where there is one its truth, its test part and its hierarchy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from partly.clock import seed_for
from partly.errors import DataError, SettingError
from partly.items import Items
from partly.labels import Hierarchy, Labels

Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """Items and their labels: those observed, and in a simulation the truth behind them."""

    items: Items
    labels: Labels  # with the items' ids; no columns where a source has items alone
    truth: Labels | None = None
    test: Dataset | None = None
    hierarchy: Hierarchy | None = None

    def __post_init__(self) -> None:
        for what, labels in (("labels", self.labels), ("truth", self.truth)):
            if labels is not None and len(labels) != len(self.items):
                raise DataError(f"{len(self.items)} items, but {what} of {len(labels)}.")

    @cached_property
    def digest(self) -> str:
        """Of everything that is learned from or tested on."""
        parts = (self, *([self.test] if self.test else []))
        return f"{seed_for(*chain(*((one.items.digest(), one.labels.digest()) for one in parts))):016x}"

    def __getitem__(self, index: slice | Index) -> Dataset:
        """Some of the items, with all that is known of them; the test part stays as it is."""
        truth = None if self.truth is None else self.truth[index]
        return Dataset(self.items[index], self.labels[index], truth, self.test, self.hierarchy)


def unlabelled(ids: Iterable[object]) -> Labels:
    """Labels of items of which there are ids and nothing else."""
    nothing = np.empty(0, np.int64)
    return Labels.from_codes(nothing, nothing, nothing, (), ids)


def held_out(
    items: int, share: float, seed: int, purpose: str = "validation", last: npt.NDArray[np.bool_] | None = None
) -> tuple[Index, Index]:
    """Positions to learn from and positions to hold out, each in order: a function of the seed alone, and of `last`
    where it is given: items [N] that are held out only when no others are left."""
    if not 0 <= share < 1:
        raise SettingError(f"The share to hold out must be at least 0 and below 1; got {share}.")
    order = np.random.default_rng(seed_for(seed, "hold out", purpose)).permutation(items)
    if last is not None:
        order = order[np.argsort(last[order], kind="stable")]
    count = round(share * items)
    return np.sort(order[count:]), np.sort(order[:count])
