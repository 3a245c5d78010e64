"""Turn values, confidences and labels of callers into the arrays of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import LabelError, listing
from partly.labels.names import check_names, is_missing

EntryArrays = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int8]]  # rows, columns and z


def parse_values(values: Iterable[Any]) -> npt.NDArray[np.int8]:
    """Return z: 1 or True becomes +1, 0 or False -1, None or NaN (cannot tell) 0."""
    sequence = values if isinstance(values, np.ndarray) else list(values)
    if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "biu":
        if not np.isin(sequence, (0, 1)).all():
            wrong = np.unique(sequence[~np.isin(sequence, (0, 1))])
            raise LabelError(f"Values are 1 yes, 0 no or None cannot tell; got {', '.join(map(str, wrong[:5]))}.")
        return np.where(sequence == 1, 1, -1).astype(np.int8)
    codes = [0 if is_missing(value) else 1 if value == 1 else -1 if value == 0 else 2 for value in sequence]
    invalid = [repr(value) for value, code in zip(sequence, codes, strict=True) if code == 2]
    if invalid:
        raise LabelError("Values are 1 yes, 0 no or None cannot tell; these are not" + listing(invalid, len(invalid)))
    return np.array(codes, np.int8)


def parse_confidence(confidence: npt.ArrayLike | None, count: int) -> npt.NDArray[np.float32] | None:
    if confidence is None:
        return None
    array = np.asarray(confidence, np.float32)
    if array.ndim == 0:
        array = np.full(count, array)
    if array.shape != (count,) or not ((array >= 0) & (array <= 1)).all():
        raise LabelError(f"confidence: give {count} numbers from 0 to 1, one per statement.")
    return array


def map_labels(
    entries: EntryArrays, names: Sequence[str], mapping: Mapping[str, str]
) -> tuple[tuple[str, ...], EntryArrays]:
    """Rename labels by a mapping and return the new names and entries.

    Where several labels become one, a yes of any is a yes, and a no needs a no of all. Else a "cannot tell" of any is
    a "cannot tell".
    """
    (row, column, z), (new, position) = entries, _map_names(names, mapping)
    width = max(1, len(new))
    sizes = np.bincount(position, minlength=len(new))
    flat, place = np.unique(row * len(new) + position[column], return_inverse=True)
    yes, no, unsure = (np.bincount(place, z == value, minlength=len(flat)) for value in (1, -1, 0))
    merged = np.select([yes > 0, no == sizes[flat % width]], [1, -1], 0).astype(np.int8)
    stated = (merged != 0) | (unsure > 0)
    return new, (flat[stated] // width, flat[stated] % width, merged[stated])


def _map_names(names: Sequence[str], mapping: Mapping[str, str]) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Return the new names, each once, and the position of each old name among them."""
    unknown = [repr(name) for name in mapping if name not in names]
    if unknown:
        raise LabelError(
            f"The mapping names labels that are not there, of {len(names)}" + listing(unknown, len(unknown))
        )
    targets = [mapping.get(name, name) for name in names]
    new = check_names(dict.fromkeys(targets))
    return new, np.array([new.index(name) for name in targets], np.int64)


def add_silent_items(count: int, entries: EntryArrays) -> EntryArrays:
    """Add a row with label -1 for each item without an entry, which records that the item exists."""
    silent = np.setdiff1d(np.arange(count), entries[0])
    no_label, no_value = np.full(len(silent), -1), np.zeros(len(silent), np.int8)
    return np.r_[entries[0], silent], np.r_[entries[1], no_label], np.r_[entries[2], no_value]


def positions_of(numbers: Sequence[int], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the position of each wanted number among `numbers`; -1 for those that are missing."""
    table = np.full(1 + max([*numbers, int(wanted.max(initial=0))]), -1)
    table[list(numbers)] = np.arange(len(numbers))
    positions: npt.NDArray[np.int64] = table[wanted]
    return positions
