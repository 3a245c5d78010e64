"""Diagnosis of labels before training: `doctor`.

`checks` and `model_checks` hold the checks; a check takes a `CheckContext` and returns `Finding`s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partly.diagnosis import encodings, model_checks
from partly.diagnosis.checks import discover
from partly.diagnosis.context import CheckContext
from partly.diagnosis.finding import Finding
from partly.distributed.progress import step
from partly.errors import DataError, LabelError
from partly.items import as_items
from partly.labels import Labels, as_labels

__all__ = ["Finding", "doctor", "model_checks", "run_checks", "unreadable"]

ORDER = ("problem", "warning", "note", "fine")


def doctor(labels: Any, X: Any = None, test: Any = None, method: str = "auto", seed: int = 0) -> dict[str, Any]:
    """Examine labels, and with X the items they are of, and with `test` those of a test part.

    Parameters
    ----------
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    X : items, optional
        As for `fit`.
    test : items, optional
        Of a test part.
    method : str
        What makes out-of-fold scores.
    seed : int
        Of what is drawn.

    Returns
    -------
    dict
        "known" (a summary), "labels" (a line each), "findings" (the gravest first: level, words, remedy, and where) and
        "skipped" (check -> why).

    Examples
    --------
    >>> import partly
    >>> found = partly.doctor(partly.Labels.from_positives([[1, 0], [0, 1], [1, 1]]))
    >>> found["known"]["no"], found["findings"][0]["level"]
    (0, 'warning')
    """
    try:
        known = as_labels(labels, "labels")
    except LabelError:
        odd = encodings.strange(encodings.of_array(labels))
        if odd is None:
            raise
        return unreadable(odd)
    items, tested = (None if part is None else as_items(part) for part in (X, test))
    if items is not None and len(items) != len(known):
        raise DataError(f"X has {len(items)} items and labels {len(known)}; both must be of the same items, in order.")
    return run_checks(CheckContext(known, items, tested, method, seed))


def run_checks(context: CheckContext) -> dict[str, Any]:
    """Run all checks whose needs are met."""
    findings, skipped = [], {}
    for name, info in discover().items():
        reason = context.lacks(info.about.needs)
        if reason:
            skipped[name] = reason
        else:
            with step(f"Checking the labels: {name}"):
                findings += [finding.plain(name) for finding in info.make(context)]
    findings.sort(key=lambda finding: ORDER.index(finding["level"]))
    return {
        "known": context.labels.summary(),
        "labels": _lines(context.labels),
        "findings": findings,
        "skipped": skipped,
    }


def unreadable(odd: Finding) -> dict[str, Any]:
    """Report labels whose values have to be explained first."""
    skipped = dict.fromkeys(discover(), "the labels cannot be read")
    return {"known": {}, "labels": [], "findings": [odd.plain("encodings")], "skipped": skipped}


def _lines(labels: Labels) -> list[dict[str, Any]]:
    yes, no = labels.counts()
    share = np.divide(yes, yes + no, out=np.full(len(yes), np.nan), where=yes + no > 0)
    return [
        {"label": name, "yes": int(a), "no": int(b), "unknown": len(labels) - int(a + b)}
        | {"share_of_yes": None if np.isnan(s) else float(s)}
        for name, a, b, s in zip(labels.names, yes, no, share, strict=True)
    ]
