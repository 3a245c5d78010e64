"""Labels that somebody gives beside items: they must be of the same items, matched by id where both sides have ids, and
of the same labels as in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partly.errors import LabelError, listing
from partly.labels.three_valued import Labels, as_labels


def paired(count: int, y: Any, names: tuple[str, ...] | None = None, what: str = "Y", beside: Any = None) -> Labels:
    """Labels of so many items; `names`: those of training, where these are for something else (`what`); `beside`: the
    items as they were given, whose index may say which is which."""
    if y is None:
        raise LabelError("Classifier requires y to be passed, but the target y is None.")
    labels = as_labels(y)
    if len(labels) != count:
        raise LabelError(
            f"X has {count} items and {what} {len(labels)}; both must be of the same items, in the same order."
        )
    if not labels.shape[1]:
        raise LabelError("There are no labels to learn (0 columns).")
    if names is not None and not _agree(names, labels.names):
        raise LabelError(
            f"{what.capitalize()} has other labels than training, or in another order."
            f"\n  training, {len(names)}: {', '.join(names[:9])}"
            f"\n  {what}, {labels.shape[1]}: {', '.join(labels.names[:9])}"
        )
    return matched(labels, beside, what, indexed=has_index(y))


def matched(labels: Labels, beside: Any, what: str = "Y", indexed: bool = False) -> Labels:
    """These labels in the order of the items that they are given beside, by id where both have ids; else position
    counts. indexed: the labels came as a table whose index, where they have no ids, is a plain range."""
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
        raise LabelError(_unmatched(ids, strange, what))
    return labels[np.array([at[name] for name in ids])]


def has_index(table: Any) -> bool:
    """Whether this is a table, or a column, of pandas: its index says which row is which."""
    return hasattr(table, "iloc") and hasattr(table, "index")


def _unmatched(ids: Sequence[str], strange: Sequence[str], what: str) -> str:
    told = f"{len(strange)} of the {len(ids)} items of X are not in {what}" if strange else "some are in X twice"
    return (
        f"X and {what} both have ids, and these cannot be matched: {told}"
        + listing(map(repr, strange), len(strange))
        + "\nGive both the same ids; or none, if the rows are in the same order: X.reset_index(drop=True)."
    )


def _agree(names: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Names that nobody gave are positions: they agree with any names of that number."""
    return len(names) == len(others) and (names == others or tuple(map(str, range(len(names)))) in (names, others))
