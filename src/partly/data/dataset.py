"""The data set: items and observed labels, and optionally a truth, a test part and a hierarchy."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.atomic_io import PathLike
from partly.clock import seed_for
from partly.errors import DataError, SettingError, listing
from partly.items import Items, is_decoded
from partly.labels import Hierarchy, Labels

Index = npt.NDArray[np.int64]
MAX_LISTED_FILES = 1000  # unreadable files that an error message lists
FORMER_NAMES = {"wider": "with_unlabelled", "widened": "include_unlabelled", "unlisted": "unlabelled_rows"}


@dataclass(frozen=True)
class Dataset:
    """Items and their labels: those observed, and in a simulation the truth behind them.

    Parameters
    ----------
    items : Items
        Images, texts or rows of features.
    labels : Labels
        Observed labels, with the ids of the items; without columns if the source holds only items.
    truth : Labels, optional
        Complete labels; they exist in simulations and test sets.
    test : Dataset, optional
        Test part.
    hierarchy : Hierarchy, optional
        Hierarchy of the labels.
    with_unlabelled : Dataset, optional
        The same items, followed by those that the label file does not mention.
    notes : tuple of str
        Remarks on how the files were read.

    Examples
    --------
    >>> import partly
    >>> data = partly.read("digits")
    >>> len(data.items), data.labels.names[:2], data.truth is None
    (1200, ('0', '1'), True)
    >>> data[:9]
    Dataset(9 items of shape (64,), Labels(9 items x 15 labels: 28 yes, 107 no, 0.0% unknown), 597 test items)
    """

    items: Items
    labels: Labels
    truth: Labels | None = None
    test: Dataset | None = None
    hierarchy: Hierarchy | None = None
    with_unlabelled: Dataset | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, labels in (("labels", self.labels), ("truth", self.truth)):
            if labels is not None and len(labels) != len(self.items):
                raise DataError(f"{len(self.items)} items, but {what} of {len(labels)}.")

    def __repr__(self) -> str:
        test = "" if self.test is None else f", {len(self.test.items):,} test items"
        return f"Dataset({len(self.items):,} items of shape {tuple(self.items.shape)}, {self.labels!r}{test})"

    @cached_property
    def digest(self) -> str:
        """Digest of all items and labels, the test part included."""
        datasets = [part for part in (self, self.test, self.with_unlabelled) if part is not None]
        return f"{seed_for(*chain(*((part.items.digest(), part.labels.digest()) for part in datasets))):016x}"

    @property
    def unlabelled_rows(self) -> Index:
        """Positions in `with_unlabelled` of the items that the label file does not mention."""
        return np.arange(len(self.labels), len((self.with_unlabelled or self).labels))

    def include_unlabelled(self) -> Dataset:
        """Return the data set with the items that the label file does not mention, all entries unknown."""
        larger = self.with_unlabelled or self
        return replace(self, items=larger.items, labels=larger.labels, truth=larger.truth, with_unlabelled=None)

    def __getattr__(self, name: str) -> Any:
        if name not in FORMER_NAMES:
            raise AttributeError(f"Dataset has no attribute {name!r}.")
        warnings.warn(f"Dataset.{name} is now Dataset.{FORMER_NAMES[name]}.", DeprecationWarning, stacklevel=2)
        return getattr(self, FORMER_NAMES[name])

    def __getitem__(self, index: slice | Index) -> Dataset:
        """Return some items with their labels; the test part stays the same, and `with_unlabelled` is dropped."""
        truth = None if self.truth is None else self.truth[index]
        return Dataset(self.items[index], self.labels[index], truth, self.test, self.hierarchy)


def drop_unreadable(data: Dataset, where: PathLike, skip_bad: bool) -> Dataset:
    """Refuse unreadable image files, all in one message, or drop them with `skip_bad`.

    Unreadable files that the label file does not mention are always dropped.
    """
    test = None if data.test is None else drop_unreadable(data.test, where, skip_bad)
    all_items = data.with_unlabelled or data
    unreadable = all_items.items.unreadable() if is_decoded(all_items.items) else {}
    if not unreadable:
        return replace(data, test=test)
    labeled = {row: reason for row, reason in unreadable.items() if row < len(data.items)}
    problem = f"{where}: bad files: {len(labeled)} of {len(data.items)}"
    problem += listing(labeled.values(), len(labeled), MAX_LISTED_FILES)
    if labeled and not skip_bad:
        raise DataError(f"{problem}\nRepair or remove them, or skip them: skip_bad=True, --skip-bad.")
    if len(labeled) == len(data.items):
        raise DataError(f"{problem}\nNo items are left to learn from.")
    if labeled:
        warnings.warn(f"{problem}\nThey are skipped.", stacklevel=4)
    rows = np.setdiff1d(np.arange(len(all_items.items)), list(unreadable))
    with_unlabelled = None if data.with_unlabelled is None else all_items[rows]
    return replace(data[rows[rows < len(data.items)]], test=test, with_unlabelled=with_unlabelled)


def resize_images(data: Dataset, size: int) -> Dataset:
    """Return the data set with its image files decoded at this size."""
    if not is_decoded(data.items):
        raise SettingError(f"size = {size}: only images in files can be resized, not those in an array.")
    test, with_unlabelled = (
        None if part is None else resize_images(part, size) for part in (data.test, data.with_unlabelled)
    )
    return replace(data, items=data.items.resize(size), test=test, with_unlabelled=with_unlabelled)


def append_unlabelled(labels: Labels, ids: Iterable[object]) -> Labels:
    """Return the labels with further items, all of whose entries are unknown."""
    row, column, value = labels.entries()
    return Labels.from_codes(row, column, value, labels.names, [*labels.ids, *ids])


def empty_labels(ids: Iterable[object]) -> Labels:
    """Return labels without columns, for items of which only the ids are known."""
    no_entries = np.empty(0, np.int64)
    return Labels.from_codes(no_entries, no_entries, no_entries, (), ids)


def split_holdout(
    items: int, share: float, seed: int, purpose: str = "validation", last: npt.NDArray[np.bool_] | None = None
) -> tuple[Index, Index]:
    """Split positions into those to learn from and those to hold out, each sorted; a function of the seed.

    last : items [N] that are held out only when no others are left.
    """
    if not 0 <= share < 1:
        raise SettingError(f"The share to hold out must be at least 0 and below 1; got {share}.")
    order = np.random.default_rng(seed_for(seed, "hold out", purpose)).permutation(items)
    if last is not None:
        order = order[np.argsort(last[order], kind="stable")]
    count = round(share * items)
    return np.sort(order[count:]), np.sort(order[:count])
