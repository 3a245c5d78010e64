"""Evaluate scores on known entries: all metrics together, each label, and groups of labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import DataError, SettingError, did_you_mean
from partly.labels import Labels, scored
from partly.labels.matrix import BLOCK
from partly.metrics.counts import label_table, pooled
from partly.metrics.top_ranks import RANKS, item_table
from partly.metrics.validation import Floats, Threshold, Weights, check_missingness, check_threshold
from partly.model_choice.missingness import Missingness

MISSING = ("at-random", "auto")


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
    scores, labels, thresholds = check_threshold(scores, labels, threshold)
    return label_table(scores, labels.ternary(), thresholds)


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
    scores, labels, found = check_missingness(scores, labels)
    return both(scores, labels, threshold, found)[0] | {"missing_p": found.p_value}


def both(
    scores: Any, labels: Any, threshold: Threshold = 0.5, missing: Missingness | None = None
) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
    """Compute `evaluate` and `by_label` in one pass; `missing` corrects or withholds scores."""
    scores, labels, thresholds = check_threshold(scores, labels, threshold)
    weights = None if missing is None else missing.weights
    table = label_table(scores, labels.ternary(), thresholds, weights)
    if missing is not None and missing.withheld:
        table |= {key: np.full(labels.shape[1], np.nan) for key in ("AP", "precision", "recall", "F1")}
    cp, cr, macro_f1 = (scored.mean(table[key]) for key in ("precision", "recall", "F1"))
    op, overall_recall, of1 = pooled(table, len(labels), weights, missing)
    yes, no = (table[key].sum() for key in ("yes", "no"))
    counted = int(np.count_nonzero(~np.isnan(table["AP"])))
    items = item_table(scores, labels.ternary(), thresholds)
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
