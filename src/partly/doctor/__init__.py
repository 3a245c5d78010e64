"""Data checks before training: `partly.doctor`.

`checks` and `model_checks` hold the checks; a check takes a `CheckContext` and returns `Finding`s. This module can be
called, because its name is also that of the public function.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from partly.distributed.progress import step
from partly.doctor import encodings, model_checks
from partly.doctor.checks import discover
from partly.doctor.context import CheckContext, Finding
from partly.errors import DataError, LabelError
from partly.items import as_items
from partly.labels import Labels, as_labels

__all__ = ["CheckContext", "Finding", "doctor", "model_checks", "report_unreadable", "run_checks"]

LEVELS = ("problem", "warning", "note", "fine")  # the most severe first


def doctor(labels: Any, X: Any = None, test: Any = None, method: str = "auto", seed: int = 0) -> dict[str, Any]:
    """Check labels, and the items they belong to, for problems that would spoil training or scores.

    Parameters
    ----------
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    X : items, optional
        Items of the labels, as for `fit`.
    test : items, optional
        Items of a test set, searched for training items.
    method : str
        Method that computes out-of-fold scores.
    seed : int
        Seed of folds and models.

    Returns
    -------
    dict
        "known" (a summary), "labels" (counts for each label), "findings" (the most severe first: level, words, remedy,
        and where) and "skipped" (check -> reason).

    Examples
    --------
    >>> import partly
    >>> result = partly.doctor(partly.Labels.from_positives([[1, 0], [0, 1], [1, 1]]))
    >>> result["known"]["no"], result["findings"][0]["level"]
    (0, 'warning')
    """
    try:
        known = as_labels(labels, "labels")
    except LabelError:
        unusual = encodings.find_unusual_values(encodings.count_array_values(labels))
        if unusual is None:
            raise
        return report_unreadable(unusual)
    items, test_items = (None if part is None else as_items(part) for part in (X, test))
    if items is not None and len(items) != len(known):
        raise DataError(f"X has {len(items)} items and labels {len(known)}; both must be of the same items, in order.")
    return run_checks(CheckContext(known, items, test_items, method, seed))


def run_checks(context: CheckContext) -> dict[str, Any]:
    """Run all checks whose needs are met."""
    findings, skipped = [], {}
    for name, info in discover().items():
        reason = context.find_missing_input(info.about.needs)
        if reason:
            skipped[name] = reason
        else:
            with step(f"Checking the labels: {name}"):
                findings += [finding.to_dict(name) for finding in info.make(context)]
    findings.sort(key=lambda finding: LEVELS.index(finding["level"]))
    return {
        "known": context.labels.summary(),
        "labels": _count_by_label(context.labels),
        "findings": findings,
        "skipped": skipped,
    }


def report_unreadable(unusual: Finding) -> dict[str, Any]:
    """Report labels whose values have to be explained first."""
    skipped = dict.fromkeys(discover(), "the labels cannot be read")
    return {"known": {}, "labels": [], "findings": [unusual.to_dict("encodings")], "skipped": skipped}


def _count_by_label(labels: Labels) -> list[dict[str, Any]]:
    yes, no = labels.counts()
    return [
        {
            "label": name,
            "yes": y,
            "no": n,
            "unknown": len(labels) - y - n,
            "share_of_yes": y / (y + n) if y + n else None,
        }
        for name, y, n in zip(labels.names, yes.tolist(), no.tolist(), strict=True)
    ]


class _CallableModule(types.ModuleType):
    def __call__(
        self, labels: Any, X: Any = None, test: Any = None, method: str = "auto", seed: int = 0
    ) -> dict[str, Any]:
        return doctor(labels, X, test, method, seed)


sys.modules[__name__].__class__ = _CallableModule
