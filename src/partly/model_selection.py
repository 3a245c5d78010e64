"""Cross-validation for partly known labels: splitters, `cross_val_predict` and `cross_val_score`.

scikit-learn's functions do not handle unknown entries: an integer `cv` refuses NaN, and
`cross_val_predict(method="predict_proba")` treats NaN as a class. `YesStratifiedKFold` also works as its `cv`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from partly.binary_relevance.inputs import count_rows, select_rows
from partly.errors import SettingError
from partly.labels import Labels, as_labels
from partly.labels.align import align_labels
from partly.labels.weights import check_weights
from partly.metrics import scorer

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class YesStratifiedKFold:
    """Folds of items in which each label has about its share of known yes; for `cv=` of scikit-learn.

    Iterative stratification of the known yes, rarest label first (K. Sechidis, G. Tsoumakas, I. Vlahavas. On the
    Stratification of Multi-label Data. ECML PKDD 2011).

    Parameters
    ----------
    n_splits : int
        Number of folds.
    seed : int
        Random seed for ties.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: unknown
    >>> for train, test in partly.model_selection.YesStratifiedKFold(3).split(X, Y):
    ...     print(len(train), len(test))
    40 20
    40 20
    40 20
    """

    n_splits: int = 5
    seed: int = 0

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[Positions, Positions]]:
        """Yield positions of the training items and of the test items of each fold."""
        labels = as_labels(y)
        _check_splits(self.n_splits, len(labels), "items")
        fold = _assign_folds(labels, self.n_splits, np.random.default_rng(self.seed))
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds, for scikit-learn."""
        return self.n_splits


@dataclass(frozen=True)
class EntrySplit:
    """Folds of known entries: each entry is held out once; all items are in every fold.

    This measures how well unknown entries of the same items are filled in; use folds of items for new items. The known
    yes and no of each label are spread evenly over the folds.

    Parameters
    ----------
    n_splits : int
        Number of folds.
    seed : int
        Random seed.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: unknown
    >>> for learned, held_out in partly.model_selection.EntrySplit(2).split(X, Y):
    ...     print(learned.known.sum(), held_out.known.sum())
    26 28
    28 26
    """

    n_splits: int = 5
    seed: int = 0

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[Labels, Labels]]:
        """Yield training labels and test labels of all items for each fold; X is ignored."""
        labels = as_labels(y)
        rows, columns, said = labels.entries()
        _check_splits(self.n_splits, len(rows), "known entries")
        rng = np.random.default_rng(self.seed)
        order = np.lexsort((rng.random(len(rows)), said, columns))
        group = 2 * columns[order] + said[order]
        first = np.searchsorted(group, group)  # where the yes, or the no, of the same label begin
        begin = rng.integers(self.n_splits, size=2 * labels.shape[1])[group]
        fold = np.empty(len(rows), np.int64)
        fold[order] = (np.arange(len(rows)) - first + begin) % self.n_splits
        for k in range(self.n_splits):
            out = fold == k
            entries = rows[out], columns[out]
            learned = labels.with_entries(*entries, np.zeros(int(out.sum()), np.int8))
            judged = Labels.from_codes(*entries, said[out], labels.names, labels.given_ids, len(labels))
            yield learned, judged

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds, for scikit-learn."""
        return self.n_splits


def cross_val_score(
    model: Any, X: Any, Y: Any, *, scoring: str | Callable[[Any, Any, Any], float] = "mAP", cv: Any = 5
) -> npt.NDArray[np.float64]:
    """Score a model on folds of items, like scikit-learn's function of this name, for partly known labels.

    Parameters
    ----------
    model : Classifier, PerLabel or another scikit-learn classifier
        Cloned and fitted for each fold.
    X : items
        As in `fit`.
    Y : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    scoring : str or callable
        A name for `partly.metrics.scorer`, such as "mAP" or "f1_macro"; or a function of (model, X, Y).
    cv : int or splitter
        Number of folds, split by `YesStratifiedKFold`; or a splitter.

    Returns
    -------
    array of [folds]
        Scores on the known entries of each fold; NaN where these define none.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)
    >>> model = partly.Classifier("bce", head="linear", progress=False)
    >>> partly.model_selection.cross_val_score(model, X, Y, scoring="f1_macro", cv=3).shape
    (3,)
    """
    labels = align_labels(count_rows(X), Y, beside=X)
    score = scorer(scoring) if isinstance(scoring, str) else scoring
    splitter = YesStratifiedKFold(cv) if isinstance(cv, int) else cv
    scores = []
    for train, test in splitter.split(X, labels):
        fitted = clone(model).fit(select_rows(X, train), labels[train])
        scores.append(score(fitted, select_rows(X, test), labels[test]))
    return np.array(scores, np.float64)


def cross_val_predict(
    estimator: Any, X: Any, Y: Any, *, cv: Any = 5, method: str = "predict_proba", sample_weight: Any = None
) -> npt.NDArray[Any]:
    """Return out-of-fold scores of every entry, [N, L], from clones that were not trained on it.

    With `EntrySplit`, known entries get the score of the fold that held them out, and unknown entries the mean over
    all folds.

    Parameters
    ----------
    estimator : Classifier, PerLabel, or an estimator of scikit-learn
        Cloned and fitted for each fold.
    X : items
        As for `fit`.
    Y : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    cv : int, or splitter
        Number of folds of items (`YesStratifiedKFold`), a scikit-learn splitter, or `EntrySplit`.
    method : str
        Method of the clones that returns scores.
    sample_weight : array, optional
        As for `fit`.

    Returns
    -------
    array, [N, L]
        Scores of all entries.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: unknown
    >>> model = partly.Classifier("bce", head="linear", progress=False)
    >>> partly.model_selection.cross_val_predict(model, X, Y, cv=3).shape
    (60, 2)
    """
    labels = align_labels(count_rows(X), Y)
    weights = check_weights(sample_weight, labels)
    if isinstance(cv, EntrySplit):
        return _by_entries(estimator, X, labels, cv, method, weights)
    splitter = YesStratifiedKFold(cv) if isinstance(cv, int) else cv
    scores: npt.NDArray[Any] | None = None
    for learned, judged in splitter.split(X, labels):
        fit_options = {} if weights is None else {"sample_weight": weights[learned]}
        model = clone(estimator).fit(select_rows(X, learned), labels[learned], **fit_options)
        part = np.asarray(getattr(model, method)(select_rows(X, judged)))
        scores = np.full(labels.shape, np.nan, part.dtype) if scores is None and part.dtype.kind == "f" else scores
        scores = np.zeros(labels.shape, part.dtype) if scores is None else scores
        scores[judged] = part
    assert scores is not None
    return scores


def _by_entries(
    estimator: Any, X: Any, labels: Labels, cv: EntrySplit, method: str, weights: Any
) -> npt.NDArray[np.float64]:
    if method == "predict":
        raise SettingError("method = 'predict': of unknown entries the mean over folds is taken. Ask for scores.")
    fit_options = {} if weights is None else {"sample_weight": weights}
    held_out_scores, total = np.zeros(labels.shape), np.zeros(labels.shape)
    for learned, judged in cv.split(X, labels):
        scores = np.asarray(getattr(clone(estimator).fit(X, learned, **fit_options), method)(X))
        total += scores
        rows, columns, _ = judged.entries()
        held_out_scores[rows, columns] = scores[rows, columns]
    return np.where(labels.rows(slice(None)) != 0, held_out_scores, total / cv.n_splits)


def _check_splits(splits: Any, most: int, what: str) -> None:
    if isinstance(splits, bool) or not isinstance(splits, int) or not 2 <= splits <= most:
        raise SettingError(f"n_splits = {splits!r} must be a whole number from 2 to the number of {what}, {most}.")


def _assign_folds(labels: Labels, folds: int, rng: np.random.Generator) -> Positions:
    """Assign each item to a fold, [N]."""
    rows, columns, values = labels.entries()
    yes_places = (rows[values == 1], columns[values == 1])
    yes = sp.csr_array((np.ones(len(yes_places[0]), np.int8), yes_places), shape=labels.shape)
    by_label = yes.tocsc()
    left = np.diff(by_label.indptr).astype(np.float64)  # yes of items that have no fold yet
    wanted = np.tile(left / folds, (folds, 1))
    capacity = np.full(folds, len(labels) / folds)
    fold = np.full(len(labels), -1, np.int64)
    while left.any():
        label = int(np.argmin(np.where(left > 0, left, np.inf)))
        items = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        for item in rng.permutation(items[fold[items] < 0]):
            best = np.lexsort((rng.random(folds), capacity, wanted[:, label]))[-1]
            labels_of_item = yes.indices[yes.indptr[item] : yes.indptr[item + 1]]
            fold[item] = best
            wanted[best, labels_of_item] -= 1
            capacity[best] -= 1
            left[labels_of_item] -= 1
    for item in rng.permutation(np.flatnonzero(fold < 0)):
        fold[item] = np.lexsort((rng.random(folds), capacity))[-1]
        capacity[fold[item]] -= 1
    return fold
