"""Model selection without clean labels: criteria on held-out observed entries, and estimates of the share of yes."""

from __future__ import annotations

from typing import Any

from partly.labels import as_labels, scored
from partly.model_choice import criteria, priors

__all__ = ["criteria", "default", "priors", "score"]


def score(name: str, scores: Any, labels: Any, **settings: Any) -> float:
    """Score held-out predictions by a criterion; higher is better, NaN where the known entries do not define it.

    `partly.criteria()` lists the assumptions of each criterion.

    Parameters
    ----------
    name : str
        Name of a criterion.
    scores : array [N, L], or iterator over blocks of it
        Logits or probabilities.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    **settings
        Settings of the criterion.

    Returns
    -------
    float
        Higher is better.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> scores = np.array([[0.9, 0.3], [0.6, 0.8], [0.2, 0.4]])
    >>> labels = partly.Labels.from_nan([[1, 0], [0, 1], [np.nan, 1]])
    >>> score = partly.model_choice.score
    >>> score("log-loss", scores, labels) > score("log-loss", 1 - scores, labels)
    True
    """
    info = criteria.find(name)
    scores, labels = scored.check_scores(scores, labels)
    value: float = info.make(scores, labels, **info.complete(settings))
    return value


def default(labels: Any) -> str:
    """Return the criterion for these labels: `log-loss` where some no is known, else `auc-unknown-as-no-weighted`.

    See docs/choosing.md for the evidence.

    Parameters
    ----------
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.

    Returns
    -------
    str
        A name of `partly.criteria()`.

    Examples
    --------
    >>> import partly
    >>> partly.model_choice.default([[1, 0], [0, 1]])
    'log-loss'
    >>> partly.model_choice.default(partly.Labels.from_positives([[1, 0], [0, 1]]))
    'auc-unknown-as-no-weighted'
    """
    return "log-loss" if as_labels(labels, "labels").counts()[1].any() else "auc-unknown-as-no-weighted"
