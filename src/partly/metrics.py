"""Scores on known entries only, each with what it counted.

An unknown entry is neither right nor wrong: what a method says about it changes no score. A score that the
known entries do not define is NaN; it never enters a mean as 0.

- AP of a label is step-wise, as `sklearn.metrics.average_precision_score` has it: the mean, over the known yes,
  of the precision at that entry's score; equal scores are one threshold. It needs a known yes and a known no.
  mAP is the mean over the labels that have one.
- An entry is predicted yes where score >= threshold. CP and CR are the means over labels of precision and
  recall, CF1 is their harmonic mean, macro_f1 the mean of the labels' F1: the literature has both, and they
  differ. A label without a known yes is in none of the four: it has no recall, and a precision that could only
  be 0. A label with a known yes of which nothing is predicted has precision 0 (as in ML-GCN, Chen et al. 2019,
  and in scikit-learn).
- OP, OR and OF1 pool all known entries; micro_f1 is OF1 under its other name. They need one known yes.
- exact_match is the share of items whose known entries are all predicted rightly.
- P@k is, for one item, the share of yes among its k highest-scored known entries, or among all of them where
  fewer are known; the mean is over the items with a known entry, so an item without a yes counts as the 0 that
  it is. With nothing unknown this is the usual (1/k) * sum of y over the top k. Where equal scores straddle
  rank k, it is the mean over the orders they could have.

Where only yes is known, whatever is predicted is right: read precision, and what is made of it, beside "no".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.errors import DataError, SettingError, did_you_mean
from partly.labels import Labels, as_labels, scored
from partly.labels.matrix import BLOCK, Matrix, Ternary, blocks
from partly.labels.pairing import has_index, in_label_order, matched
from partly.labels.scored import KnownScores, is_sparse

Floats = npt.NDArray[np.float64]
Threshold = float | npt.NDArray[np.floating[Any]]  # for all labels, or for each of them [L]
RANKS = (1, 3, 5)


def average_precision(scores: Any, labels: Any) -> Floats:
    """AP of each label, [L]; NaN where no yes or no no is known. scores: [N, L], logits or probabilities.

    labels: `Labels`, or an array of 1 yes, 0 no, NaN unknown. Only the order of the scores matters, so that
    infinite ones are fine; NaN is refused. Here and in all that follows, `scores` may also come in blocks: an iterator
    over arrays [B, L] of item after item, such as `Classifier.predict_proba_blocks` gives. Then, where labels are
    sparse, only the scores of known entries are kept.

    Parameters
    ----------
    scores : array [N, L], or iterator over blocks of it
        Logits or probabilities.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.

    Returns
    -------
    array, [L]
        NaN where a label has no known yes or no known no.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> scores = np.array([[0.9, 0.3], [0.6, 0.8], [0.2, 0.4]])
    >>> labels = partly.Labels.from_nan([[1, 0], [0, 1], [np.nan, 1]])
    >>> partly.metrics.average_precision(scores, labels)
    array([1., 1.])
    """
    scores, labels = scored.checked(scores, labels, known_only=True)
    return np.array(
        [scored.average_precision(yes, no) for yes, no in scored.columns(scores, labels.ternary())], np.float64
    )


def memory(labels: Labels) -> int:
    """Bytes that AP takes of probabilities that come in blocks: where labels are sparse, the scores of known entries,
    and both once more, column by column; else all scores, and of one block at a time a copy with its labels, and what
    is sorted of it."""
    entries = labels.shape[0] * labels.shape[1]
    if labels.sparse:
        return 17 * int(labels.known_per_item().sum()) + 4 * min(entries, BLOCK)
    return 4 * entries + 8 * min(entries, BLOCK)


def by_label(scores: Any, labels: Any, threshold: Threshold = 0.5) -> dict[str, npt.NDArray[Any]]:
    """Per label, each [L]: AP, precision, recall, F1 (NaN where undefined), and counts of known entries.

    The counts are yes, no, predicted (as yes) and hits (predicted and yes).

    Parameters
    ----------
    scores : array [N, L], or iterator over blocks of it
        Logits or probabilities.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    threshold : float, or array of [L]
        From where on a score is called yes.

    Returns
    -------
    dict
        From a name to an array [L].

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> scores = np.array([[0.9, 0.3], [0.6, 0.8], [0.2, 0.4]])
    >>> labels = partly.Labels.from_nan([[1, 0], [0, 1], [np.nan, 1]])
    >>> partly.metrics.by_label(scores, labels)["recall"]
    array([1. , 0.5])
    """
    scores, labels, thresholds = _checked_at(scores, labels, threshold)
    return _label_table(scores, labels.ternary(), thresholds)


def by_group(scores: Any, labels: Any, counts: npt.ArrayLike, groups: int = 5) -> Floats:
    """mAP of each of some equal groups of labels, [groups]: those with the lowest counts first; NaN where undefined.

    counts: [L], such as how many yes of each label were known in training. Of equal counts the first label is the
    lower; where the labels cannot be divided evenly, the first groups have one more.

    Parameters
    ----------
    scores : array [N, L], or iterator over blocks of it
        Logits or probabilities.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    counts : array of [L]
        By what labels are put in order.
    groups : int
        How many there are.

    Returns
    -------
    array, [groups]
        The mAP of each.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> scores = np.array([[0.9, 0.3], [0.6, 0.8], [0.2, 0.4]])
    >>> labels = partly.Labels.from_nan([[1, 0], [0, 1], [np.nan, 1]])
    >>> partly.metrics.by_group(scores, labels, counts=[10, 3], groups=2)
    array([1., 1.])
    """
    return grouped(average_precision(scores, labels), counts, groups)


def grouped(ap: Floats, counts: npt.ArrayLike, groups: int = 5) -> Floats:
    """`by_group`, where the AP of each label is known already."""
    counts = np.asarray(counts)
    if counts.shape != ap.shape:
        raise DataError(f"There are counts of shape {counts.shape} for {len(ap)} labels; one a label is needed.")
    if groups < 1:
        raise SettingError(f"groups = {groups}: should be 1 or more.")
    ordered = np.array_split(np.argsort(counts, kind="stable"), groups)
    return np.array([scored.mean(ap[group]) for group in ordered], np.float64)


def evaluate(scores: Any, labels: Any, threshold: Threshold = 0.5) -> dict[str, float]:
    """All scores of this module, and how many labels, items and entries they rest on. scores: [N, L].

    Scores are probabilities; with a threshold outside (0, 1), as 0 for logits, any scores on its scale. There may be
    one threshold for all labels, or one for each, [L].
    mAP rests on `labels_counted` labels (`labels_undefined` have no AP), CP, CR, CF1 and macro_f1 on
    `labels_with_yes`, OP, OR and OF1 on `entries_known` (`yes` + `no`), exact_match and P@k on `items_counted`.

    Parameters
    ----------
    scores : array [N, L], or iterator over blocks of it
        Logits or probabilities.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    threshold : float, or array of [L]
        From where on a score is called yes.

    Returns
    -------
    dict
        From the name of a score to its value.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> scores = np.array([[0.9, 0.3], [0.6, 0.8], [0.2, 0.4]])
    >>> labels = partly.Labels.from_nan([[1, 0], [0, 1], [np.nan, 1]])
    >>> found = partly.metrics.evaluate(scores, labels)
    >>> found["mAP"], found["OF1"], found["entries_known"]
    (1.0, 0.6666666666666666, 5)
    """
    return both(scores, labels, threshold)[0]


def both(scores: Any, labels: Any, threshold: Threshold = 0.5) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
    """`evaluate` and `by_label`, from one look at the scores."""
    scores, labels, thresholds = _checked_at(scores, labels, threshold)
    table = _label_table(scores, labels.ternary(), thresholds)
    cp, cr, macro_f1 = (scored.mean(table[key]) for key in ("precision", "recall", "F1"))
    hits, predicted, yes, no = (table[key].sum() for key in ("hits", "predicted", "yes", "no"))
    op, overall_recall, of1 = map(float, precision_recall_f1(hits, predicted, yes))
    counted = int(np.count_nonzero(~np.isnan(table["AP"])))
    items = _item_table(scores, labels.ternary(), thresholds)
    found = {
        "mAP": scored.mean(table["AP"]),
        "CF1": 2 * cp * cr / (cp + cr) if cp + cr else 0.0,
        "OF1": of1,
        "CP": cp,
        "CR": cr,
        "OP": op,
        "OR": overall_recall,
        "macro_f1": macro_f1,
        "micro_f1": of1,
        "exact_match": scored.mean(items[:, 0]),
        **{f"P@{k}": scored.mean(items[:, 1 + i]) for i, k in enumerate(RANKS)},
        "labels_counted": counted,
        "labels_undefined": labels.shape[1] - counted,
        "labels_with_yes": int(np.count_nonzero(table["yes"])),
        "items_counted": int(np.count_nonzero(~np.isnan(items[:, 0]))),
        "entries_known": int(yes + no),
        "yes": int(yes),
        "no": int(no),
    }
    return found, table


def scorer(name: str = "mAP") -> Callable[[Any, Any, Any], float]:
    """A score of `evaluate` as scikit-learn's `scoring=`: (estimator, X, Y) -> number, on known entries only.

    Labels with unknown entries cannot be stratified: give `cross_val_score` a splitter, as in cv=KFold(5).

    Parameters
    ----------
    name : str
        Of a score of `evaluate`.

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
    if name not in names:
        raise SettingError(f"There is no score {name!r}.{did_you_mean(name, names)}")
    return partial(_score, name)  # of a function of this module, so that it can be sent to other processes


def _score(name: str, estimator: Any, items: Any, labels: Any) -> float:
    predicted = getattr(estimator, "predict_proba_blocks", estimator.predict_proba)  # what need not be held, is not
    known, names = matched(as_labels(labels, "labels"), items, "Y", has_index(labels)), _label_names(estimator)
    if names is not None:
        known = in_label_order(known, names)
    return evaluate(predicted(items), known)[name]


def _label_names(estimator: Any) -> tuple[str, ...] | None:
    """Return the labels that a classifier of ours was trained on, also within a pipeline or a search."""
    while not hasattr(estimator, "label_names_"):
        steps = getattr(estimator, "steps", None)
        inner = steps[-1][1] if steps else getattr(estimator, "best_estimator_", None)
        if inner is None:
            return None
        estimator = inner
    return tuple(estimator.label_names_)


# -------------------------------------------------------------------- one label at a time


def _label_table(scores: KnownScores, z: Matrix, thresholds: Floats) -> dict[str, npt.NDArray[Any]]:
    ap = np.empty(z.shape[1])
    yes, no, predicted, hits = np.zeros((4, z.shape[1]), np.int64)
    for j, (s_yes, s_no) in enumerate(scored.columns(scores, z)):
        ap[j] = scored.average_precision(s_yes, s_no)
        yes[j], no[j] = len(s_yes), len(s_no)
        hits[j] = np.count_nonzero(s_yes >= thresholds[j])
        predicted[j] = hits[j] + np.count_nonzero(s_no >= thresholds[j])
    precision, recall, f1 = precision_recall_f1(hits, predicted, yes)
    ratios = {"AP": ap, "precision": precision, "recall": recall, "F1": f1}
    return ratios | {"yes": yes, "no": no, "predicted": predicted, "hits": hits}


def precision_recall_f1(hits: Any, predicted: Any, yes: Any) -> tuple[Floats, Floats, Floats]:
    """NaN where no yes is known; precision 0 where there is one and nothing is predicted."""

    def ratio(above: Any, below: Any) -> Floats:
        return np.where(yes > 0, above / np.maximum(below, 1), np.nan)

    return ratio(hits, predicted), ratio(hits, yes), ratio(2 * hits, predicted + yes)


# -------------------------------------------------------------------- some items at a time


def _item_table(scores: KnownScores, z: Matrix, thresholds: Floats) -> Floats:
    """Per item, [N, 4]: whether all that is known is predicted rightly, and precision at RANKS; NaN: none known."""
    table = np.full((z.shape[0], 1 + len(RANKS)), np.nan)
    for block in blocks(z.shape):
        s, said, cuts = scores[block], z[block], np.broadcast_to(thresholds, scores[block].shape)
        s, said, cuts = _packed(s, said, thresholds) if sp.issparse(said) else (s, said, cuts)
        some = said.any(axis=1)
        if some.any():
            s, said, cuts = (s, said, cuts) if some.all() else (s[some], said[some], cuts[some])
            wrong = ((s >= cuts) != (said == 1)) & (said != 0)
            table[block][some] = np.column_stack([~wrong.any(axis=1), _precision_at_ranks(s, said)])
    return table


def _packed(s: KnownScores, said: Matrix, thresholds: Floats) -> tuple[scored.Scores, Ternary, Floats]:
    """The known entries of sparse labels, moved together: scores, z and thresholds, [B, M], M the most that an item
    has."""
    known = np.diff(said.indptr)
    row = np.repeat(np.arange(len(known)), known)
    place = np.arange(said.nnz) - np.repeat(said.indptr[:-1], known)
    dense = np.zeros((len(known), known.max(initial=0)), np.int8)
    packed, cuts = np.zeros(dense.shape, s.dtype), np.zeros(dense.shape, thresholds.dtype)
    found = s.data if is_sparse(s) else s[row, said.indices]
    dense[row, place], packed[row, place], cuts[row, place] = said.data, found, thresholds[said.indices]
    return packed, dense, cuts


def _precision_at_ranks(s: scored.Scores, z: Ternary) -> Floats:
    """Precision at RANKS, [B, 3], of items that all have a known entry. s, z: [B, M]."""
    known, yes = z != 0, z == 1
    s = np.where(known, s.astype(np.result_type(s.dtype, np.float32), copy=False), -np.inf)
    deepest = min(max(RANKS), s.shape[1])
    top = np.sort(np.partition(s, -deepest, axis=1)[:, -deepest:], axis=1)
    result = np.empty((len(s), len(RANKS)))
    for column, k in enumerate(RANKS):
        taken = np.minimum(k, known.sum(axis=1))
        last = np.take_along_axis(top, deepest - taken[:, None], axis=1)  # the score at rank k
        above, level = s > last, s == last
        room = taken - above.sum(axis=1)  # what the entries level with rank k may still fill
        drawn = room * (level & yes).sum(axis=1) / (level & known).sum(axis=1)
        result[:, column] = ((above & yes).sum(axis=1) + drawn) / taken
    return result


# -------------------------------------------------------------------- the door


def _checked_at(scores: Any, labels: Any, threshold: Threshold) -> tuple[KnownScores, Labels, Floats]:
    """thresholds: [L]."""
    scores, labels = scored.checked(scores, labels, known_only=True)
    if np.shape(threshold) not in ((), labels.shape[1:]) or not np.isfinite(threshold).all():
        raise SettingError(f"threshold must be a finite number, or one for each label; got {threshold!r}.")
    exact = scores.dtype if scores.dtype.kind == "f" else np.dtype(np.float64)  # 0.7 is 0.7, also in float32
    thresholds = np.broadcast_to(np.asarray(threshold, exact), labels.shape[1:])
    if ((thresholds > 0) & (thresholds < 1)).all() and len(thresholds):  # a float may round a little past 1
        remedy = "Give probabilities (the sigmoid of logits), or the threshold for logits: threshold=0."
        outside = f"outside 0..1, where the threshold {thresholds[0]:g} takes probabilities"
        scored.refuse_where(lambda s: (s < -1e-6) | (s > 1 + 1e-6), scores, labels, outside, remedy)
    return scores, labels, thresholds
