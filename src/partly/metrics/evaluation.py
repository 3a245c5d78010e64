"""Evaluate scores on known entries: all metrics together, each label, and groups of labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import DataError, SettingError, did_you_mean, within
from partly.labels import Labels, scored
from partly.labels.matrix import BLOCK
from partly.labels.scored import KnownScores
from partly.metrics.counts import label_table, pooled
from partly.metrics.intervals import (
    UNDEFINED,
    Interval,
    difference,
    extreme_interval,
    holm,
    interval,
    interval_from_error,
)
from partly.metrics.measurement import Measurement, measure_further
from partly.metrics.top_ranks import RANKS, item_table
from partly.metrics.units import units_of_labels
from partly.metrics.validation import Floats, Threshold, Weights, check_missingness, check_threshold
from partly.model_choice.missingness import Missingness

MISSING = ("at-random", "auto")
COUNTS = ("labels_counted", "labels_undefined", "labels_with_yes", "items_counted", "entries_known", "yes", "no")


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
    """Return the AP of each label, [L]. weights: number of entries that each known yes and each known no stand for."""
    scores, labels = scored.check_scores(scores, labels, known_only=True)
    ratio = np.ones(labels.shape[1]) if weights is None else weights[1] / weights[0]
    pairs = zip(scored.iter_yes_no(scores, labels.ternary()), ratio, strict=True)
    return np.array([scored.average_precision(yes, no, count) for (yes, no), count in pairs], np.float64)


def memory(labels: Labels) -> int:
    """Return the bytes that AP needs if probabilities come in blocks.

    For sparse labels: scores and values of known entries, by row and by column. Otherwise: all scores, and sorted
    copies of one block.
    """
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
    """Return the `by_group` means of AP values that are computed already."""
    counts = np.asarray(counts)
    if counts.shape != ap.shape:
        raise DataError(f"There are counts of shape {counts.shape} for {len(ap)} labels; one a label is needed.")
    if groups < 1:
        raise SettingError(f"groups = {groups}: should be 1 or more.")
    ordered = np.array_split(np.argsort(counts, kind="stable"), groups)
    return np.array([scored.mean(ap[group]) for group in ordered], np.float64)


def evaluate(
    scores: Any,
    labels: Any,
    threshold: Threshold = 0.5,
    missing: str = "at-random",
    confidence: float | None = None,
    propensity: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """Return all metrics, with the numbers of labels, items and entries behind them.

    Scores are probabilities, or with a threshold outside (0, 1), any scores on the scale of the threshold, such as
    logits with 0. The threshold is one for all labels, or one per label, [L].
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
        are weighted; exact_match and P@k cannot be weighted and are NaN. If known entries do not look like unknown
        ones, all metrics are NaN. `missing_p` is the p-value of the test. Needs scores of all entries.
    confidence : float, optional
        Level of confidence intervals, such as 0.95. The result then has `intervals`: name -> (low, high).
    propensity : array of [L], optional
        Probability that a yes of each label is known, for PSP@k and PSnDCG@k; see `propensities`. By default it is
        computed from the numbers of known yes in `labels`.

    Returns
    -------
    dict
        Metric name -> value.

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
    missingness = None
    if missing == "auto":
        scores, labels, missingness = check_missingness(scores, labels)
    measured = measure(scores, labels, threshold, missingness, propensity, influence=confidence is not None)
    result: dict[str, Any] = measured.values | ({} if missingness is None else {"missing_p": missingness.p_value})
    return result if confidence is None else result | {"intervals": intervals(measured, confidence)}


def measure(
    scores: Any,
    labels: Any,
    threshold: Threshold = 0.5,
    missing: Missingness | None = None,
    propensity: npt.ArrayLike | None = None,
    influence: bool = False,
) -> Measurement:
    """Return all metrics, those of each label and, if `influence`, the influence of each item on each metric.

    If `missing` rejects that entries are missing at random, metrics that cannot be corrected by weights are NaN.

    Parameters
    ----------
    scores, labels, threshold, propensity
        As in `evaluate`.
    missing : Missingness, optional
        Result of the test for entries missing at random.
    influence : bool
        Compute influences, which intervals and `compare` need.

    Returns
    -------
    Measurement
        `values`, `by_label` and `influences`.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> y = np.array([[1, 0], [0, 1], [1, 1]])
    >>> partly.metrics.measure(np.where(y, 0.8, 0.3), y).values["AUROC"]
    1.0
    """
    scores, labels, thresholds = check_threshold(scores, labels, threshold)
    core, table, items = _measure_core(scores, labels, thresholds, missing)
    further = measure_further(scores, labels, thresholds, core, table, items, propensity, influence)
    if missing is not None and missing.biased:
        correct = () if missing.withheld else ("AUROC",)  # AUROC does not depend on the shares of yes and no
        further.values |= dict.fromkeys((name for name in further.values if name not in correct), math.nan)
        further.influences.clear()  # the weights are estimates too
    counts = {name: core.pop(name) for name in COUNTS}
    further.values = core | further.values | counts
    return further


def intervals(measured: Measurement, confidence: float) -> dict[str, Interval]:
    """Return the confidence interval of each metric; NaN where it cannot be computed."""
    within(0, 1, confidence=confidence)
    items = measured.values["items_counted"]
    return {
        name: interval(
            name,
            value,
            measured.influences[name] * measured.inflation.get(name, 1.0),
            int(items),
            confidence,
            measured.units.get(name),
        )
        if name in measured.influences
        else UNDEFINED
        for name, value in measured.values.items()
        if name not in COUNTS
    }


def label_intervals(measured: Measurement, confidence: float) -> dict[str, npt.NDArray[np.float64]]:
    """Return the confidence intervals of AP, AUROC and F1 of each label, [L, 2] each; NaN where undefined.

    Parameters
    ----------
    measured : Measurement
        Result of `measure(..., influence=True)`.
    confidence : float
        Level of the intervals.

    Returns
    -------
    dict
        From `AP`, `AUROC` and `F1` to an array [L, 2].

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random((200, 3)) < 0.3
    >>> measured = partly.metrics.measure(np.where(y, 0.6, 0.4) + rng.normal(0, 0.1, y.shape), y, influence=True)
    >>> partly.metrics.label_intervals(measured, 0.95)["AP"].shape
    (3, 2)
    """
    within(0, 1, confidence=confidence)
    table, units = measured.by_label, units_of_labels(measured.by_label)

    def of_label(value: float, error: float, df: float, count: float) -> Interval:
        if value in (0, 1):
            return extreme_interval(value, count, confidence)
        return interval_from_error(value, error, df, confidence) if error > 0 else UNDEFINED

    result = {}
    for name, errors in measured.errors_by_label.items():
        columns = (table[name], errors, measured.freedom_by_label[name], units[name])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        result[name] = np.array([of_label(*row) for row in rows], np.float64).reshape(-1, 2)
    return result


def compare(
    measured: Mapping[str, Measurement], metrics: Sequence[str] = ("mAP",), confidence: float = 0.95
) -> list[dict[str, Any]]:
    """Compare models that were measured on the same items and labels, pair by pair.

    Parameters
    ----------
    measured : {name: Measurement}
        Results of `measure(..., influence=True)`.
    metrics : sequence of str
        Metrics to compare.
    confidence : float
        Level of the intervals.

    Returns
    -------
    list of dict
        metric, a, b, difference (a - b), low, high, p (Holm-adjusted over all pairs and metrics).

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random((200, 3)) < 0.3
    >>> good, poor = (np.clip(0.5 + y * gap + rng.normal(0, 0.2, y.shape), 0, 1) for gap in (0.4, 0.1))
    >>> both = {name: partly.metrics.measure(s, y, influence=True) for name, s in (("good", good), ("poor", poor))}
    >>> row = partly.metrics.compare(both)[0]
    >>> row["a"], row["difference"] > 0, row["p"] < 0.01
    ('good', True, True)
    """
    within(0, 1, confidence=confidence)
    _refuse_unpaired(measured, metrics)
    rows: list[dict[str, Any]] = []
    for metric in metrics:
        for a, b in combinations(measured, 2):
            first, second = measured[a], measured[b]
            gap = first.values[metric] - second.values[metric]
            low = high = p = math.nan
            if metric in first.influences and metric in second.influences:
                of_a, of_b = (m.influences[metric] * m.inflation.get(metric, 1.0) for m in (first, second))
                (low, high), p = difference(of_a, of_b, gap, confidence)
            rows.append({"metric": metric, "a": a, "b": b, "difference": gap, "low": low, "high": high, "p": p})
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p"] = p
    return rows


def _refuse_unpaired(measured: Mapping[str, Measurement], metrics: Sequence[str]) -> None:
    """Refuse unknown metrics, and measurements without influences or on other entries."""
    for name, measurement in measured.items():
        for metric in metrics:
            if metric not in measurement.values:
                raise SettingError(f"There is no score {metric!r}.{did_you_mean(metric, measurement.values)}")
        if not measurement.units:
            raise SettingError(f"{name}: comparisons need influences. Use measure(..., influence=True).")
    items = {len(column) for measurement in measured.values() for column in measurement.influences.values()}
    counts = {(m.by_label["yes"].tobytes(), m.by_label["no"].tobytes()) for m in measured.values()}
    if len(items) > 1 or len(counts) > 1:
        raise DataError(
            "The models were measured on different labels. Measure all of them on the same items and labels."
        )


def both(
    scores: Any, labels: Any, threshold: Threshold = 0.5, missing: Missingness | None = None
) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
    """Compute the main metrics and `by_label` in one pass; `missing` corrects or withholds scores."""
    scores, labels, thresholds = check_threshold(scores, labels, threshold)
    return _measure_core(scores, labels, thresholds, missing)[:2]


def _measure_core(
    scores: KnownScores, labels: Labels, thresholds: Floats, missing: Missingness | None
) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]], Floats]:
    """Return the main metrics, those of each label, and those of each item."""
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
    withheld = one_sided or (missing is not None and missing.biased)  # metrics of items cannot be weighted by label
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
    return result, table, items
