"""Estimate the share of yes of each label among all items (class prior), where few or no no's are known.

Scores must be held-out or out-of-fold: on training items, known yes would score too high. Estimators by name:

- `observed`: the share of yes among known entries, smoothed by two entries with the share of all labels together. Needs
  known no's, and entries that are missing at random.
- `mixture`: known and hidden yes, where the scores of unknown entries are a mixture of those of known yes and known no
  (`model_choice.missingness`). Needs known no's, and yes and no that are each missing at random within a label.
- `elkan-noto`: the mean predicted probability to be known, over known yes, is the chance c that a yes is known; the
  share is that of known yes / c. (C. Elkan, K. Noto. Learning Classifiers from Only Positive and Unlabeled Data. KDD
  2008, estimator e1.) Correct where yes and no do not overlap, else too high.
  Scores are recalibrated first (`model_choice.recalibration`).
- `tice`: in any set of items at most a share c is known, and exactly c where all are yes. So c is the largest known
  share, less a margin for chance, among the prefixes of the ranking. (J. Bekker, J. Davis. Estimating the Class Prior
  in Positive and Unlabeled Data through Decision Tree Induction. AAAI 2018. There the sets are leaves of a
  tree; here they are prefixes of the ranking, and the margin is one standard deviation of the known number.)
- `best-bin`: the ratio of unknown items to known yes in a prefix of the ranking, each as a share of its kind, for the
  prefix with the smallest upper bound of that ratio. (S. Garg, Y. Wu, A. Smola, S. Balakrishnan, Z. Lipton. Mixture
  Proportion Estimation and PU Learning: A Modern Approach. NeurIPS 2021.)

The last three assume that, within each label, known yes are a random sample of all yes. They are biased upwards where
yes and no overlap. So the ratio of the estimate to the share of known yes is shrunk towards the lower quartile over
labels, more strongly for labels with few known yes. If all labels are named with the same probability, every ratio is
an upper bound of the common one, and labels that are easy to predict give the tightest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import SettingError, did_you_mean
from partly.labels import Labels, scored
from partly.model_choice.missingness import estimate_hidden_yes, missingness
from partly.model_choice.recalibration import collect_entries, fit_scale, standardize

Floats = npt.NDArray[np.float64]

SMOOTHING_ENTRIES = 2.0  # that `observed` adds to each label, with the share of all labels together
SHRINKAGE_YES = 100.0  # known yes with which a label's own ratio counts as much as the common one
QUARTILE = 0.25
MIN_YES = 3  # known yes, below which a label has no ratio of its own
RISK = 0.1  # of `best-bin`: probability that its bound does not hold


def estimate(scores: Any, labels: Any, method: str = "auto") -> Floats:
    """Estimate the share of yes of each label, at least the share of known yes and at most 1.

    `auto` is `tice` where no no is known; else `mixture` where a test rejects that entries are missing at random, and
    `observed` otherwise. See docs/choosing.md for their accuracy.

    Parameters
    ----------
    scores : array [N, L], or iterator over blocks of it
        Logits or probabilities of held-out items.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    method : str
        `auto`, or a name of `partly.priors.names()`.

    Returns
    -------
    array, [L]
        Share of yes of each label.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((500, 2)) < [0.2, 0.4]
    >>> scores = rng.normal(size=truth.shape) + 3 * truth
    >>> known = partly.scenarios.uniform(truth, 0.5, seed=0)
    >>> partly.priors.estimate(scores, known).round(1)
    array([0.2, 0.4])
    """
    scores, labels = scored.check_scores(scores, labels)
    yes, no = labels.counts()
    floor = yes / max(len(labels), 1)
    if method == "auto":
        method = "tice"
        if no.any():
            method = "mixture" if missingness(scores, labels).biased else "observed"
    if method in ("observed", "mixture"):
        if not no.any() and len(labels):
            raise SettingError(f"priors: {method!r} needs known no's, but there are none. Use method='tice'.")
        shares = among_known(labels) if method == "observed" else _mixture(scores, labels)
    elif method in RATIOS:
        shares = _shrink(RATIOS[method](scores, labels), yes) * np.maximum(floor, 0.5 / max(len(labels), 1))
    else:
        raise SettingError(f"There is no estimator {method!r}.{did_you_mean(method, names())}")
    return np.clip(shares, floor, 1)


def names() -> list[str]:
    """Return the names of the estimators."""
    return ["auto", "observed", "mixture", *RATIOS]


def among_known(labels: Labels) -> Floats:
    """Share of yes among the known entries of each label [L], smoothed by that of all labels together."""
    yes, no = labels.counts()
    known = yes + no
    pooled = yes.sum() / max(known.sum(), 1)
    return np.asarray((yes + SMOOTHING_ENTRIES * pooled) / (known + SMOOTHING_ENTRIES), np.float64)


def _mixture(scores: scored.Scores, labels: Labels) -> Floats:
    """Share of known and hidden yes of each label, [L]; the share among known entries where one kind is missing."""
    yes, no = labels.counts()
    hidden = estimate_hidden_yes(scores, labels)
    both = (yes > 0) & (no > 0) & (yes + no < len(labels))
    return np.where(both, (yes + hidden) / max(len(labels), 1), among_known(labels))


def _shrink(ratios: Floats, yes: npt.NDArray[np.int64]) -> Floats:
    """Shrink each label's ratio of yes to known yes to the lower quartile over all known yes."""
    logs = np.log(np.maximum(ratios, 1))
    defined = ~np.isnan(logs) & (yes >= MIN_YES)
    if not defined.any():
        return np.ones(len(yes))
    order = np.flatnonzero(defined)[np.argsort(logs[defined], kind="stable")]
    below = np.cumsum(yes[order])
    pooled = logs[order[np.searchsorted(below, below[-1] * QUARTILE)]]
    weight = np.where(defined, yes / (yes + SHRINKAGE_YES), 0)
    return np.asarray(np.exp(weight * np.where(defined, logs, 0) + (1 - weight) * pooled), np.float64)


# ------------------------------------------------------- ratio of yes to known yes of each label: [L]


def _elkan_noto(scores: scored.Scores, labels: Labels) -> Floats:
    rows, columns, values = labels.entries()
    rows, columns = rows[values == 1], columns[values == 1]
    z = standardize(scores.T)
    targets = np.zeros(z.shape, np.int8)
    targets[columns, rows] = 1
    fit = fit_scale(collect_entries(z, None, targets, np.full(len(z), len(scores))))
    likely = 1 / (1 + np.exp(-(fit.scale * z[columns, rows] + fit.biases[columns])))
    count = np.bincount(columns, minlength=len(z))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(count / np.bincount(columns, likely, minlength=len(z)), np.float64)


def _tice(scores: scored.Scores, labels: Labels) -> Floats:
    return np.array([_prefix_ratio(yes, rest) for yes, rest in scored.iter_yes_rest(scores, labels)], np.float64)


def _prefix_ratio(yes: scored.Scores, rest: scored.Scores) -> float:
    """Smallest ratio of items to known yes, as shares, over prefixes of the ranking that end with a known yes.

    As in the paper, a margin is subtracted from the known number, so that short prefixes do not win by chance.
    """
    if len(yes) < MIN_YES:
        return np.nan
    hits, size = _count_prefixes(yes, rest)
    enough = hits >= (5 if len(yes) >= 10 else max(2, len(yes) // 2))
    chance = ((hits - np.sqrt(hits)) / size)[enough].max()
    return float(1 / max(chance, 1e-9))


def _best_bin(scores: scored.Scores, labels: Labels) -> Floats:
    return np.array([_best_bin_ratio(yes, rest) for yes, rest in scored.iter_yes_rest(scores, labels)], np.float64)


def _best_bin_ratio(yes: scored.Scores, rest: scored.Scores) -> float:
    """Ratio of yes to known yes, from the share of yes among unknown items in the best prefix."""
    if len(yes) < MIN_YES or not len(rest):
        return np.nan
    hits, size = _count_prefixes(yes, rest)
    of_yes, of_rest = hits / len(yes), (size - hits) / len(rest)
    doubt = np.sqrt(np.log(4 / RISK) / 2) * (len(yes) ** -0.5 + len(rest) ** -0.5)
    best = np.argmin((of_rest + 1.01 * doubt) / of_yes)
    return float(1 + min(of_rest[best] / of_yes[best], 1) * len(rest) / len(yes))


def _count_prefixes(yes: scored.Scores, rest: scored.Scores) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Count known yes and items in each prefix of the ranking that ends with a known yes."""
    yes, rest = np.sort(yes), np.sort(rest)
    hits = len(yes) - np.searchsorted(yes, yes)
    return hits, hits + len(rest) - np.searchsorted(rest, yes)


RATIOS: dict[str, Callable[[scored.Scores, Labels], Floats]] = {
    "elkan-noto": _elkan_noto,
    "tice": _tice,
    "best-bin": _best_bin,
}
