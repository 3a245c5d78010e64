"""Align labels with items and with the labels of training: rows by id if both sides have ids, columns by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import LabelError, listing
from partly.labels.labels import Labels, as_labels
from partly.labels.names import Names

TRAINING, SCORED = "labels of training", "scores"  # in messages


def align_labels(
    count: int, y: Any, names: tuple[str, ...] | None = None, what: str = "Y", beside: Any = None
) -> Labels:
    """Return labels for `count` items, aligned by name and id.

    names : labels of training, if these labels are for something else (`what`).
    beside : the items, whose pandas index may hold ids.
    """
    if y is None:
        raise LabelError("Classifier requires y to be passed, but the target y is None.")
    labels = as_labels(y)
    if len(labels) != count:
        raise LabelError(
            f"X has {count} items and {what} {len(labels)}; both must be of the same items, in the same order."
        )
    if not labels.shape[1]:
        raise LabelError("There are no labels to learn (0 columns).")
    if names is not None:
        labels = align_columns(labels, names, what)
    return match_by_id(labels, beside, what, indexed=has_index(y))


def align_columns(labels: Labels, names: Names, what: str = "Y", of: str = TRAINING) -> Labels:
    """Return the labels with their columns in the order of `names`, matched by name.

    Names that were not given are positions, and match any names of that number. Labels that are missing or not among
    `names` are refused.
    """
    order = match_columns(labels.names, names, what, of)
    return labels if order is None else labels.mapped(lambda z, _: z[:, order], names)


def align_table_columns(table: Any, names: Names, what: str, of: str = TRAINING) -> Any:
    """Return a pandas table of values per label with its columns in the order of `names`; anything else unchanged."""
    if not hasattr(table, "iloc") or getattr(table, "ndim", 0) != 2 or table.shape[1] != len(names):
        return table
    order = match_columns(tuple(map(str, table.columns)), names, what, of)
    return table if order is None else table.iloc[:, order]


def select_table(table: Any, labels: Labels, what: str) -> Any:
    """Return a pandas table without rows and columns that the labels do not have; refuse it if one is missing.

    Names that were not given are positions, and select nothing.
    """
    if not has_index(table) or getattr(table, "ndim", 0) != 2 or table.shape == labels.shape:
        return table
    for axis, wanted, kind in ((0, labels.ids, "items"), (1, labels.names, "labels")):
        present = tuple(map(str, table.axes[axis]))
        if len(present) == len(wanted) or any(
            names == tuple(map(str, range(len(names)))) for names in (present, wanted)
        ):
            continue
        position = {name: i for i, name in enumerate(present)}
        missing = [name for name in wanted if name not in position]
        if missing:
            problem = f"{len(missing)} of the {len(wanted)} {kind} are not among the {what}"
            raise LabelError(problem + listing(map(repr, missing), len(missing)))
        table = table.take([position[name] for name in wanted], axis=axis)
    return table


def match_columns(own: Names, names: Names, what: str, of: str) -> npt.NDArray[np.int64] | None:
    """Return the positions in `own` of each of `names`; None where the order is the same or position counts."""
    if own == names:
        return None
    missing, extra = ([name for name in a if name not in set(b)] for a, b in ((names, own), (own, names)))
    if not missing and not extra:
        at = {name: j for j, name in enumerate(own)}
        return np.array([at[name] for name in names], np.int64)
    unnamed = any(group == tuple(map(str, range(len(group)))) for group in (own, names))
    if unnamed and len(own) == len(names):
        return None
    if unnamed:
        raise LabelError(f"{what} has {len(own)} labels, and there are {len(names)} {of}.")
    problems = "".join(
        f"\n{heading}, {len(group)}:" + listing(map(repr, group), len(group))
        for heading, group in (("missing", missing), (f"not among the {of}", extra))
        if group
    )
    raise LabelError(f"{what} does not match the {of} by name:{problems}\nGive the same labels; their order is free.")


def match_by_id(labels: Labels, beside: Any, what: str = "Y", indexed: bool = False) -> Labels:
    """Reorder labels to the order of the items, by id if both have ids; otherwise positions match.

    indexed : the labels came from a pandas table.
    """
    if not has_index(beside) or len(beside) != len(labels) or (labels.given_ids is None and not indexed):
        return labels
    ids, others = tuple(map(str, beside.index)), labels.ids
    if ids == others:
        return labels
    plain = tuple(map(str, range(len(ids))))
    if plain in (ids, others):  # one side has no ids
        if sorted(ids) == sorted(others):
            side, other = ("X", what) if ids == plain else (what, "X")
            raise LabelError(
                f"{side} is indexed by 0 to {len(ids) - 1}, and {other} by the same numbers in another order: are the "
                f"rows those of the same place, or of the same number? If of the same number: {other}.sort_index()"
                f"; if of the same place: {other}.reset_index(drop=True)."
            )
        return labels
    at = {name: i for i, name in enumerate(others)}
    strange = [name for name in ids if name not in at]
    if strange or len(set(ids)) < len(ids):
        raise LabelError(_describe_mismatch(ids, strange, what))
    return labels[np.array([at[name] for name in ids])]


def has_index(table: Any) -> bool:
    """Return whether this is a pandas table or column."""
    return hasattr(table, "iloc") and hasattr(table, "index")


def _describe_mismatch(ids: Sequence[str], strange: Sequence[str], what: str) -> str:
    problem = f"{len(strange)} of the {len(ids)} items of X are not in {what}" if strange else "some are in X twice"
    return (
        f"X and {what} both have ids, and these cannot be matched: {problem}"
        + listing(map(repr, strange), len(strange))
        + "\nGive both the same ids; or none, if the rows are in the same order: X.reset_index(drop=True)."
    )
