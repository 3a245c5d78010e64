"""Metrics on known entries only.

Predictions of unknown entries change no score. A score that the known entries do not define is NaN, and is left out of
means.

- AP of a label is step-wise, as `sklearn.metrics.average_precision_score` has it: the mean, over the known yes,
  of the precision at that entry's score; equal scores are one threshold. It needs a known yes and a known no.
  mAP is the mean over the labels that have one.
- An entry is predicted yes where score >= threshold. CP and CR are the means over labels of precision and
  recall, CF1 is their harmonic mean, macro_f1 the mean of the labels' F1: the literature has both, and they
  differ. A label without a known yes is in none of the four: it has no recall, and a precision that could only
  be 0. A label with a known yes of which nothing is predicted has precision 0 (as in ML-GCN, Chen et al. 2019,
  and in scikit-learn).
- OP, OR and OF1 pool all known entries; micro_f1 is OF1 under its other name. They need one known yes.
- Where entries of a label are unknown and none is known to be no, its precision and F1 are undefined: whatever is
  predicted would be right. Where that holds for all labels, OP, OF1, exact_match and P@k are undefined too.
- exact_match is the share of items whose known entries are all predicted rightly.
- P@k is, for one item, the share of yes among its k highest-scored known entries, or among all of them where
  fewer are known; the mean is over the items with a known entry, so an item without a yes counts as the 0 that
  it is. With nothing unknown this is the usual (1/k) * sum of y over the top k. Where equal scores straddle
  rank k, it is the mean over the orders they could have.

Scores on known entries hold for all entries if these are missing at random. `evaluate(..., missing="auto")` tests that,
and corrects or withholds scores if it does not hold (`model_choice.missingness`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.errors import DataError, SettingError, did_you_mean
from partly.labels import Labels, as_labels, scored
from partly.labels.align import align_columns, has_index, match_by_id
from partly.labels.matrix import BLOCK, Matrix, Ternary, blocks
from partly.labels.scored import KnownScores, is_sparse
from partly.model_choice.missingness import EntrySums, Missingness, missingness

Floats = npt.NDArray[np.float64]
Threshold = float | npt.NDArray[np.floating[Any]]  # for all labels, or for each of them [L]
Weights = tuple[Floats, Floats]  # how many entries a known yes and a known no of each label stand for, [L] each
RANKS = (1, 3, 5)
MISSING = ("at-random", "auto")
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
    return weighted_average_precision(scores, labels, None)


def weighted_average_precision(scores: Any, labels: Any, weights: Weights | None) -> Floats:
    """AP of each label, [L], where a known yes and a known no stand for so many entries each."""
    scores, labels = scored.check_scores(scores, labels, known_only=True)
    ratio = np.ones(labels.shape[1]) if weights is None else weights[1] / weights[0]
    pairs = zip(scored.iter_yes_no(scores, labels.ternary()), ratio, strict=True)
    return np.array([scored.average_precision(yes, no, count) for (yes, no), count in pairs], np.float64)


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
        Lowest score that is predicted yes.

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
    scores, labels, thresholds = _check_threshold(scores, labels, threshold)
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
        Sort key of the labels.
    groups : int
        Number of groups.

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


def evaluate(scores: Any, labels: Any, threshold: Threshold = 0.5, missing: str = "at-random") -> dict[str, float]:
    """All scores of this module, and how many labels, items and entries they rest on. scores: [N, L].

    Scores are probabilities; with a threshold outside (0, 1), as 0 for logits, any scores on its scale. There may be
    one threshold for all labels, or one for each, [L].
    mAP rests on `labels_counted` labels (`labels_undefined` have no AP), CR on `labels_with_yes`, CP, CF1 and macro_f1
    on those of them whose precision is defined, OP, OR and OF1 on `entries_known` (`yes` + `no`), exact_match and P@k
    on `items_counted`.

    Parameters
    ----------
    scores : array [N, L], or iterator over blocks of it
        Logits or probabilities.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    threshold : float, or array of [L]
        Lowest score that is predicted yes.
    missing : "at-random" or "auto"
        "auto" tests whether entries are missing at random. If yes and no are known at different rates, known entries
        are weighted, and exact_match and P@k, which cannot be, are NaN. If known entries do not look like unknown
        ones, all scores are NaN. `missing_p` is the p-value of the test. Needs scores of all entries.

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
    if missing not in MISSING:
        raise SettingError(f"missing = {missing!r}.{did_you_mean(str(missing), MISSING)}")
    if missing == "at-random":
        return both(scores, labels, threshold)[0]
    scores, labels, found = _check_missingness(scores, labels)
    return both(scores, labels, threshold, found)[0] | {"missing_p": found.p_value}


def _check_missingness(scores: Any, labels: Any) -> tuple[KnownScores, Labels, Missingness]:
    """Check scores and labels, and test how entries are missing."""
    labels = match_by_id(as_labels(labels, "labels"), scores, "labels", has_index(labels))
    if scored.is_sparse(scores):
        raise DataError("missing='auto' needs the scores of all entries; these are of known entries alone.")
    if not isinstance(scores, Iterator):
        scores, labels = scored.check_scores(scores, labels)
        return scores, labels, missingness(scores, labels)
    sums = EntrySums(labels)
    return scored.gather_known(sums.passing(scored.enumerate_rows(scores)), labels), labels, sums.missingness


def both(
    scores: Any, labels: Any, threshold: Threshold = 0.5, missing: Missingness | None = None
) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
    """Compute `evaluate` and `by_label` in one pass; `missing` corrects or withholds scores."""
    scores, labels, thresholds = _check_threshold(scores, labels, threshold)
    weights = None if missing is None else missing.weights
    table = _label_table(scores, labels.ternary(), thresholds, weights)
    if missing is not None and missing.withheld:
        table |= {key: np.full(labels.shape[1], np.nan) for key in ("AP", "precision", "recall", "F1")}
    cp, cr, macro_f1 = (scored.mean(table[key]) for key in ("precision", "recall", "F1"))
    op, overall_recall, of1 = pooled(table, len(labels), weights, missing)
    yes, no = (table[key].sum() for key in ("yes", "no"))
    counted = int(np.count_nonzero(~np.isnan(table["AP"])))
    items = _item_table(scores, labels.ternary(), thresholds)
    one_sided = not no and yes < len(labels) * labels.shape[1]
    withheld = one_sided or (missing is not None and missing.biased)  # what is of items cannot be weighted by label
    exact, *at_ranks = (math.nan if withheld else scored.mean(column) for column in items.T)
    result = {
        "mAP": scored.mean(table["AP"]),
        "CF1": 2 * cp * cr / (cp + cr) if cp + cr else 0.0,
        "OF1": of1,
        "CP": cp,
        "CR": cr,
        "OP": op,
        "OR": overall_recall,
        "macro_f1": macro_f1,
        "micro_f1": of1,
        "exact_match": exact,
        **{f"P@{k}": value for k, value in zip(RANKS, at_ranks, strict=True)},
        "labels_counted": counted,
        "labels_undefined": labels.shape[1] - counted,
        "labels_with_yes": int(np.count_nonzero(table["yes"])),
        "items_counted": int(np.count_nonzero(~np.isnan(items[:, 0]))),
        "entries_known": int(yes + no),
        "yes": int(yes),
        "no": int(no),
    }
    return result, table


def scorer(name: str = "mAP") -> Callable[[Any, Any, Any], float]:
    """A score of `evaluate` as scikit-learn's `scoring=`: (estimator, X, Y) -> number, on known entries only.

    Labels with unknown entries cannot be stratified: give `cross_val_score` a splitter, as in cv=KFold(5).

    Parameters
    ----------
    name : str
        Of a score of `evaluate`, or scikit-learn's name for it: f1_macro, f1_micro, precision_micro, recall_micro,
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
    own = SKLEARN_NAMES.get(name, name)
    if own not in names:
        raise SettingError(f"There is no score {name!r}.{did_you_mean(name, [*names, *SKLEARN_NAMES])}")
    return partial(_score, own)  # of a function of this module, so that it can be sent to other processes


def _score(name: str, estimator: Any, items: Any, labels: Any) -> float:
    predicted = getattr(estimator, "predict_proba_blocks", estimator.predict_proba)  # what need not be held, is not
    known, names = match_by_id(as_labels(labels, "labels"), items, "Y", has_index(labels)), _label_names(estimator)
    if names is not None:
        known = align_columns(known, names)
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


def _label_table(
    scores: KnownScores, z: Matrix, thresholds: Floats, weights: Weights | None = None
) -> dict[str, npt.NDArray[Any]]:
    ap = np.empty(z.shape[1])
    yes, no, predicted, hits = np.zeros((4, z.shape[1]), np.int64)
    ratio = np.ones(z.shape[1]) if weights is None else weights[1] / weights[0]
    for j, (s_yes, s_no) in enumerate(scored.iter_yes_no(scores, z)):
        ap[j] = scored.average_precision(s_yes, s_no, ratio[j])
        yes[j], no[j] = len(s_yes), len(s_no)
        hits[j] = np.count_nonzero(s_yes >= thresholds[j])
        predicted[j] = hits[j] + np.count_nonzero(s_no >= thresholds[j])
    precision, recall, f1 = precision_recall_f1(*weighted(hits, predicted, yes, weights))
    one_sided = (no == 0) & (yes < z.shape[0])
    precision, f1 = (np.where(one_sided, np.nan, values) for values in (precision, f1))
    ratios = {"AP": ap, "precision": precision, "recall": recall, "F1": f1}
    return ratios | {"yes": yes, "no": no, "predicted": predicted, "hits": hits}


def weighted(hits: Any, predicted: Any, yes: Any, weights: Weights | None) -> tuple[Any, Any, Any]:
    """Known entries, or the entries that they stand for where weights of yes and of no are given, [L] each."""
    if weights is None:
        return hits, predicted, yes
    return weights[0] * hits, weights[0] * hits + weights[1] * (predicted - hits), weights[0] * yes


def pooled(
    table: dict[str, npt.NDArray[Any]], items: int, weights: Weights | None, missing: Missingness | None = None
) -> tuple[float, float, float]:
    """Precision, recall and F1 of all known entries together; NaN where they are undefined or withheld."""
    parts = weighted(table["hits"], table["predicted"], table["yes"], weights)
    precision, recall, f1 = map(float, precision_recall_f1(*(part.sum() for part in parts)))
    if missing is not None and missing.withheld:
        return math.nan, math.nan, math.nan
    if not table["no"].any() and table["yes"].sum() < items * len(table["yes"]):
        return math.nan, recall, math.nan
    return precision, recall, f1


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
        s, known_z, cuts = scores[block], z[block], np.broadcast_to(thresholds, scores[block].shape)
        s, known_z, cuts = _pack_known(s, known_z, thresholds) if sp.issparse(known_z) else (s, known_z, cuts)
        has_known = known_z.any(axis=1)
        if has_known.any():
            s, known_z, cuts = (
                (s, known_z, cuts) if has_known.all() else (s[has_known], known_z[has_known], cuts[has_known])
            )
            wrong = ((s >= cuts) != (known_z == 1)) & (known_z != 0)
            table[block][has_known] = np.column_stack([~wrong.any(axis=1), _precision_at_ranks(s, known_z)])
    return table


def _pack_known(s: KnownScores, said: Matrix, thresholds: Floats) -> tuple[scored.Scores, Ternary, Floats]:
    """Pack the known entries of sparse labels: scores, z and thresholds [B, M], where M is the most known per item."""
    known = np.diff(said.indptr)
    row = np.repeat(np.arange(len(known)), known)
    place = np.arange(said.nnz) - np.repeat(said.indptr[:-1], known)
    dense = np.zeros((len(known), known.max(initial=0)), np.int8)
    packed, cuts = np.zeros(dense.shape, s.dtype), np.zeros(dense.shape, thresholds.dtype)
    known_scores = s.data if is_sparse(s) else s[row, said.indices]
    dense[row, place], packed[row, place], cuts[row, place] = said.data, known_scores, thresholds[said.indices]
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


# -------------------------------------------------------------------- validation


def _check_threshold(scores: Any, labels: Any, threshold: Threshold) -> tuple[KnownScores, Labels, Floats]:
    """Check scores, labels and threshold; return thresholds [L]."""
    scores, labels = scored.check_scores(scores, labels, known_only=True)
    if np.shape(threshold) not in ((), labels.shape[1:]) or not np.isfinite(threshold).all():
        raise SettingError(f"threshold must be a finite number, or one for each label; got {threshold!r}.")
    exact = scores.dtype if scores.dtype.kind == "f" else np.dtype(np.float64)  # 0.7 is 0.7, also in float32
    thresholds = np.broadcast_to(np.asarray(threshold, exact), labels.shape[1:])
    if ((thresholds > 0) & (thresholds < 1)).all() and len(thresholds):  # a float may round a little past 1
        remedy = "Give probabilities (the sigmoid of logits), or the threshold for logits: threshold=0."
        outside = f"outside 0..1, where the threshold {thresholds[0]:g} takes probabilities"
        scored.refuse_where(lambda s: (s < -1e-6) | (s > 1 + 1e-6), scores, labels, outside, remedy)
    return scores, labels, thresholds
