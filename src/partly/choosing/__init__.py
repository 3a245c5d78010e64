"""Choosing between models without clean labels: criteria on held-out observed entries, and estimates of the share of
yes."""

from __future__ import annotations

from typing import Any

from partly.choosing import criteria, priors
from partly.labels import as_labels, scored

__all__ = ["criteria", "default", "priors", "score"]


def score(name: str, scores: Any, labels: Any, **settings: Any) -> float:
    """What held-out scores [N, L] are worth by a criterion, more is better; NaN where what is known does not define it.

    labels: `Labels`, or an array of 1 yes, 0 no, NaN unknown. `partly.criteria()` says what each criterion assumes.
    """
    info = criteria.find(name)
    scores, labels = scored.checked(scores, labels)
    value: float = info.make(scores, labels, **info.complete(settings))
    return value


def default(labels: Any) -> str:
    """The criterion that fits what is known: `log-loss` where some no is known, else `auc-unknown-as-no-weighted`.

    docs/choosing.md says what this was measured on.
    """
    return "log-loss" if as_labels(labels, "labels").counts()[1].any() else "auc-unknown-as-no-weighted"
