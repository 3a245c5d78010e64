"""The share of yes of each label among all items, where few or no no's are known.

scores are those of held-out items (out of fold, or another model's): of items that were trained on, known yes would
stand too high. Estimators by name:

- `observed`: the share of yes among known entries, with two entries more of the share that all labels have together.
  Needs known no's, and entries that are missing at random.
- `mixture`: known and hidden yes, where the scores of unknown entries are a mixture of those of known yes and known no
  (`choosing.missingness`). Needs known no's, and yes and no that are each missing at random within a label.
- `elkan-noto`: the mean predicted probability to be known, over known yes, is the chance c that a yes is known; the
  share is that of known yes / c. (C. Elkan, K. Noto. Learning Classifiers from Only Positive and Unlabeled Data. KDD
  2008, estimator e1.) Right where yes and no do not overlap; too high where they do, since then a yes looks uncertain.
  Scores are calibrated anew for it (`choosing.recalibration`).
- `tice`: among any items at most c are known, and just c where all are yes; so c is the largest share known, less an
  allowance for chance, in the top of the list, wherever that ends. (J. Bekker, J. Davis. Estimating the Class Prior
  in Positive and Unlabeled Data through Decision Tree Induction. AAAI 2018. There the sets of items are leaves of a
  tree; here tops of the list, and the allowance is one deviation of the number known.)
- `best-bin`: the ratio of unknown items to known yes in a top of the list, each as a share of its kind, at the top
  where an upper bound of that ratio is smallest. (S. Garg, Y. Wu, A. Smola, S. Balakrishnan, Z. Lipton. Mixture
  Proportion Estimation and PU Learning: A Modern Approach. NeurIPS 2021.)

The last three take yes as known by chance, within each label. They err upwards: where yes cannot be told from no,
hidden yes could be anywhere. So the ratio of the estimate to the share of known yes is drawn towards the lower quartile
of the labels' ratios, the more, the fewer yes of a label are known. If all labels have the same chance to be named,
every ratio is a bound for this one, and those of labels that are easy to tell come nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import SettingError, did_you_mean
from partly.labels import Labels, scored
from partly.model_choice.missingness import hidden_yes, missingness
from partly.model_choice.recalibration import entries, fitted, standardised

Floats = npt.NDArray[np.float64]

ALLOWANCE = 2.0  # entries, of the share that all labels have together, that `observed` adds to each label
TOWARDS_ALL = 100.0  # known yes: with as many, a label's own ratio counts as much as that of all labels
QUARTILE = 0.25
FEWEST = 3  # known yes, below which a label has no ratio of its own
RISK = 0.1  # of `best-bin`: the chance that its bound does not hold


def estimate(scores: Any, labels: Any, method: str = "auto") -> Floats:
    """Share of yes of each label, [L]: at least that of known yes among all items, at most 1, always a number.

    scores: [N, L], logits or probabilities of held-out items. labels: `Labels`, or an array of 1 yes, 0 no, NaN
    unknown.
    method: `auto` is `tice` where no no is known; else `mixture` where a test rejects that entries are missing at
    random, and `observed` where it does not. docs/choosing.md says how good they are.

    Parameters
    ----------
    scores : array [N, L], or iterator over blocks of it
        Logits or probabilities.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    method : str
        `auto`, or a name of `partly.priors.names()`.

    Returns
    -------
    array, [L]
        The share of yes of each label.

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
            raise SettingError(
                f"priors: {method!r} needs entries that are known to be no, and there are none; take method='tice'."
            )
        found = among_known(labels) if method == "observed" else _mixture(scores, labels)
    elif method in RATIOS:
        found = _drawn_together(RATIOS[method](scores, labels), yes) * np.maximum(floor, 0.5 / max(len(labels), 1))
    else:
        raise SettingError(f"There is no estimator {method!r}.{did_you_mean(method, names())}")
    return np.clip(found, floor, 1)


def names() -> list[str]:
    """The estimators."""
    return ["auto", "observed", "mixture", *RATIOS]


def among_known(labels: Labels) -> Floats:
    """The share of yes among the known entries of each label [L], drawn a little to that of all labels together."""
    yes, no = labels.counts()
    known = yes + no
    pooled = yes.sum() / max(known.sum(), 1)
    return np.asarray((yes + ALLOWANCE * pooled) / (known + ALLOWANCE), np.float64)


def _mixture(scores: scored.Scores, labels: Labels) -> Floats:
    """Known and hidden yes of each label as a share of all items, [L]; of a label without both, that among known."""
    yes, no = labels.counts()
    hidden = hidden_yes(scores, labels)
    both = (yes > 0) & (no > 0) & (yes + no < len(labels))
    return np.where(both, (yes + hidden) / max(len(labels), 1), among_known(labels))


def _drawn_together(ratios: Floats, yes: npt.NDArray[np.int64]) -> Floats:
    """Share of yes / share of known yes: each label's own, drawn to the lower quartile over all known yes."""
    own = np.log(np.maximum(ratios, 1))
    defined = ~np.isnan(own) & (yes >= FEWEST)
    if not defined.any():
        return np.ones(len(yes))
    order = np.flatnonzero(defined)[np.argsort(own[defined], kind="stable")]
    below = np.cumsum(yes[order])
    pooled = own[order[np.searchsorted(below, below[-1] * QUARTILE)]]
    weight = np.where(defined, yes / (yes + TOWARDS_ALL), 0)
    return np.asarray(np.exp(weight * np.where(defined, own, 0) + (1 - weight) * pooled), np.float64)


# ------------------------------------------------------- share of yes / share of known yes, of each label: [L]


def _elkan_noto(scores: scored.Scores, labels: Labels) -> Floats:
    rows, columns, said = labels.entries()
    rows, columns = rows[said == 1], columns[said == 1]
    z = standardised(scores.T)
    targets = np.zeros(z.shape, np.int8)
    targets[columns, rows] = 1
    fit = fitted(entries(z, None, targets, np.full(len(z), len(scores))))
    likely = 1 / (1 + np.exp(-(fit.scale * z[columns, rows] + fit.biases[columns])))
    count = np.bincount(columns, minlength=len(z))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(count / np.bincount(columns, likely, minlength=len(z)), np.float64)


def _tice(scores: scored.Scores, labels: Labels) -> Floats:
    return np.array([_of_tops(yes, rest) for yes, rest in scored.iter_yes_rest(scores, labels)], np.float64)


def _of_tops(yes: scored.Scores, rest: scored.Scores) -> float:
    """The smallest share of items / share of known yes in a top of the list that ends with a known yes.

    As in the paper's use of a bound, a deviation is taken off the number that is known: tops of a few lucky items would
    win otherwise.
    """
    if len(yes) < FEWEST:
        return np.nan
    hits, size = _tops(yes, rest)
    enough = hits >= (5 if len(yes) >= 10 else max(2, len(yes) // 2))
    chance = ((hits - np.sqrt(hits)) / size)[enough].max()
    return float(1 / max(chance, 1e-9))


def _best_bin(scores: scored.Scores, labels: Labels) -> Floats:
    return np.array([_of_best_bin(yes, rest) for yes, rest in scored.iter_yes_rest(scores, labels)], np.float64)


def _of_best_bin(yes: scored.Scores, rest: scored.Scores) -> float:
    """The share of yes among the others at the best top, and from it that among all items / that of known yes."""
    if len(yes) < FEWEST or not len(rest):
        return np.nan
    hits, size = _tops(yes, rest)
    of_yes, of_rest = hits / len(yes), (size - hits) / len(rest)
    doubt = np.sqrt(np.log(4 / RISK) / 2) * (len(yes) ** -0.5 + len(rest) ** -0.5)
    best = np.argmin((of_rest + 1.01 * doubt) / of_yes)
    return float(1 + min(of_rest[best] / of_yes[best], 1) * len(rest) / len(yes))


def _tops(yes: scored.Scores, rest: scored.Scores) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Of each top of the list that ends with a known yes: how many known yes it holds, and how many items."""
    yes, rest = np.sort(yes), np.sort(rest)
    hits = len(yes) - np.searchsorted(yes, yes)
    return hits, hits + len(rest) - np.searchsorted(rest, yes)


RATIOS: dict[str, Callable[[scored.Scores, Labels], Floats]] = {
    "elkan-noto": _elkan_noto,
    "tice": _tice,
    "best-bin": _best_bin,
}
