"""Metrics as scikit-learn's `scoring=`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from partly.errors import SettingError, did_you_mean
from partly.labels import as_labels
from partly.labels.align import align_columns, has_index, match_by_id
from partly.metrics.evaluation import both, evaluate

CORE = frozenset(both([[0.5]], [[1.0]])[0])  # metrics that are cheap to compute
SKLEARN_NAMES = {  # scikit-learn's name -> ours
    "f1_macro": "macro_f1",
    "f1_micro": "micro_f1",
    "precision_macro": "CP",
    "recall_macro": "CR",
    "precision_micro": "OP",
    "recall_micro": "OR",
    "average_precision": "mAP",
    "accuracy": "exact_match",
}


def scorer(name: str = "mAP") -> Callable[[Any, Any, Any], float]:
    """A score of `evaluate` as scikit-learn's `scoring=`: (estimator, X, Y) -> number, on known entries only.

    Labels with unknown entries cannot be stratified: give `cross_val_score` a splitter, as in cv=KFold(5).

    Parameters
    ----------
    name : str
        Name of a score of `evaluate`, or scikit-learn's name for it: f1_macro, f1_micro, precision_micro, recall_micro,
        precision_macro, recall_macro, average_precision, accuracy.

    Returns
    -------
    callable
        For `scoring=` of scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> from sklearn.model_selection import cross_val_score
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = partly.Classifier("bce", head="linear", progress=False)
    >>> cv = partly.model_selection.YesStratifiedKFold(3)
    >>> cross_val_score(model, X, (X[:, :2] > 0).astype(float), scoring=partly.metrics.scorer("mAP"), cv=cv).shape
    (3,)
    """
    names = evaluate([[0.5]], [[1.0]])
    metric = SKLEARN_NAMES.get(name, name)
    if metric not in names:
        raise SettingError(f"There is no score {name!r}.{did_you_mean(name, [*names, *SKLEARN_NAMES])}")
    return partial(_score, metric)  # of a module-level function, so that it can be pickled


def _score(name: str, estimator: Any, items: Any, labels: Any) -> float:
    predicted = getattr(
        estimator, "predict_proba_blocks", estimator.predict_proba
    )  # in blocks where possible, to save memory
    known, names = match_by_id(as_labels(labels, "labels"), items, "Y", has_index(labels)), _label_names(estimator)
    if names is not None:
        known = align_columns(known, names)
    scores = predicted(items)
    core = both(scores, known)[0] if name in CORE else evaluate(scores, known)
    return float(core[name])


def _label_names(estimator: Any) -> tuple[str, ...] | None:
    """Return the labels of a fitted `Classifier`, also inside a pipeline or a search."""
    while not hasattr(estimator, "label_names_"):
        steps = getattr(estimator, "steps", None)
        inner = steps[-1][1] if steps else getattr(estimator, "best_estimator_", None)
        if inner is None:
            return None
        estimator = inner
    return tuple(estimator.label_names_)
