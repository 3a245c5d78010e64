"""A data set: items, what is known of them, and where there is one its truth, its test part and its hierarchy."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from partly.atomic_io import PathLike
from partly.clock import seed_for
from partly.errors import DataError, SettingError, listing
from partly.items import Items, is_decoded
from partly.labels import Hierarchy, Labels

Index = npt.NDArray[np.int64]
MOST_BAD = 1000  # bad files that are told one by one


@dataclass(frozen=True)
class Dataset:
    """Items and their labels: those observed, and in a simulation the truth behind them.

    Parameters
    ----------
    items : Items
        What is learned from.
    labels : Labels
        What is observed.
    truth : Labels, optional
        In a simulation.
    test : Dataset, optional
        The test part.
    hierarchy : Hierarchy, optional
        Of the labels.
    wider : Dataset, optional
        The same with the items that no label names.
    notes : tuple of str
        How the files were read, where the reader should know.

    Examples
    --------
    >>> import partly
    >>> data = partly.read("digits")
    >>> len(data.items), data.labels.names[:2], data.truth is None
    (1200, ('0', '1'), True)
    """

    items: Items
    labels: Labels  # with the items' ids; no columns where a source has items alone
    truth: Labels | None = None
    test: Dataset | None = None
    hierarchy: Hierarchy | None = None
    # These items, and after them those of which a file of labels says nothing at all, where there are such.
    wider: Dataset | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, labels in (("labels", self.labels), ("truth", self.truth)):
            if labels is not None and len(labels) != len(self.items):
                raise DataError(f"{len(self.items)} items, but {what} of {len(labels)}.")

    @cached_property
    def digest(self) -> str:
        """Of everything that is learned from or tested on."""
        parts = [one for one in (self, self.test, self.wider) if one is not None]
        return f"{seed_for(*chain(*((one.items.digest(), one.labels.digest()) for one in parts))):016x}"

    @property
    def unlisted(self) -> Index:
        """Where in `wider` the items stand of which nothing at all is said."""
        return np.arange(len(self.labels), len(self.labels if self.wider is None else self.wider.labels))

    def widened(self) -> Dataset:
        """With the items of which nothing at all is said."""
        more = self.wider or self
        return replace(self, items=more.items, labels=more.labels, truth=more.truth, wider=None)

    def __getitem__(self, index: slice | Index) -> Dataset:
        """Some of the items, with all that is known of them, and none beside; the test part stays as it is."""
        truth = None if self.truth is None else self.truth[index]
        return Dataset(self.items[index], self.labels[index], truth, self.test, self.hierarchy)


def sound(data: Dataset, where: PathLike, skip_bad: bool) -> Dataset:
    """The same without items that cannot be made (pictures that are none), if that is asked for; else they are refused,
    all in one message. Bad ones of which no label speaks are left out: nobody has asked for them."""
    test = None if data.test is None else sound(data.test, where, skip_bad)
    whole = data.wider or data
    bad = whole.items.bad() if is_decoded(whole.items) else {}
    if not bad:
        return replace(data, test=test)
    asked = {place: words for place, words in bad.items() if place < len(data.items)}
    told = f"{where}: bad files: {len(asked)} of {len(data.items)}" + listing(asked.values(), len(asked), MOST_BAD)
    if asked and not skip_bad:
        raise DataError(f"{told}\nMend them or take them out; or go on without them: skip_bad=True, --skip-bad.")
    if len(asked) == len(data.items):
        raise DataError(f"{told}\nNothing is left to learn from.")
    if asked:
        warnings.warn(f"{told}\nThey are left out.", stacklevel=4)
    left = np.setdiff1d(np.arange(len(whole.items)), list(bad))
    wider = None if data.wider is None else whole[left]
    return replace(data[left[left < len(data.items)]], test=test, wider=wider)


def sized(data: Dataset, size: int) -> Dataset:
    """The same with its pictures at this size, where they lie in files; those of an array have their size."""
    if not is_decoded(data.items):
        raise SettingError(f"size = {size}: only pictures that lie in files can be shown at any size.")
    test, wider = (None if one is None else sized(one, size) for one in (data.test, data.wider))
    return replace(data, items=data.items.sized(size), test=test, wider=wider)


def grown(labels: Labels, ids: Iterable[object]) -> Labels:
    """These labels, and further items of which nothing is known."""
    row, column, value = labels.entries()
    return Labels.from_codes(row, column, value, labels.names, [*labels.ids, *ids])


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
