"""Labels that somebody gives beside items: they must be of the same number, and of the same labels as in training."""

from __future__ import annotations

from typing import Any

from partly.errors import LabelError
from partly.labels import Labels, as_labels


def paired(count: int, y: Any, names: tuple[str, ...] | None = None, what: str = "Y") -> Labels:
    """Labels of so many items; `names`: those of training, where these are for something else (`what`)."""
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
    return labels


def _agree(names: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Names that nobody gave are positions: they agree with any names of that number."""
    return len(names) == len(others) and (names == others or tuple(map(str, range(len(names)))) in (names, others))
