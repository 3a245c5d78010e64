"""Metrics of labels with a hierarchy, on known entries.

Before anything is counted, known labels are completed by the hierarchy (yes above a yes, no below a no), and the score
of a label becomes the largest among its own and those of its descendants. An item counts if it has a known yes.

- hP, hR, hF1: precision and recall pooled over all known entries, each item with all ancestors of its labels
  (S. Kiritchenko, S. Matwin, F. Famili. Functional annotation of genes using hierarchical text categorization. 2005).
- Fmax = max over thresholds t of 2 P(t) R(t) / (P(t) + R(t)). P(t) is the mean precision over items with a known entry
  predicted yes at t, R(t) the mean recall over all items (P. Radivojac et al. A large-scale evaluation of computational
  protein function prediction. Nature Methods 10, 2013).
- Smin = min over t of sqrt(ru(t)^2 + mi(t)^2). ru is the mean over items of the information of labels that are missed,
  mi of those that are wrongly predicted (W. Clark, P. Radivojac. Information-theoretic evaluation of predicted
  ontological annotations. Bioinformatics 29, 2013). The information of a label is -log2 of the share of items with it
  among those that have all its parents.

With unknown entries, hP, hR, hF1 and Fmax assume that entries are missing at random within each item. Smin sums over
known entries only, so compare it only between models on the same labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import LabelError, SettingError, within
from partly.labels import Hierarchy, Labels, as_labels, scored
from partly.labels.hierarchy import as_hierarchy
from partly.labels.matrix import blocks
from partly.metrics.intervals import jackknife_interval
from partly.metrics.validation import Floats, check_threshold
from partly.model_choice.missingness import GROUPS

THRESHOLDS = np.arange(1, 101) / 100  # as in CAFA
WITH_INTERVAL = ("hP", "hR", "hF1", "Fmax", "Smin")


def hierarchical(
    scores: Any,
    labels: Any,
    hierarchy: Any,
    threshold: float = 0.5,
    information: Any = None,
    confidence: float | None = None,
) -> dict[str, Any]:
    """Return hierarchical precision, recall and F1, and Fmax and Smin over the thresholds 0.01, 0.02, ..., 1.

    Parameters
    ----------
    scores : array [N, L], or iterator over (rows, array [B, L])
        Probabilities.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown. The names of a `Labels` are matched with those of the hierarchy.
    hierarchy : Hierarchy or {child: parent, or list of parents}
        Hierarchy of the labels. Names without a column are skipped.
    threshold : float
        Threshold of hP, hR and hF1.
    information : array [L], optional
        Information of each label in bits, for Smin; default: estimated from `labels`.
    confidence : float, optional
        Level of confidence intervals, such as 0.95. The result then has `intervals`: name -> (low, high).

    Returns
    -------
    dict
        hP, hR, hF1, Fmax, Fmax_threshold, Smin, Smin_threshold, and items, the number of items with a known yes.

    Raises
    ------
    LabelError
        If labels contradict the hierarchy, or no two labels are related by it.

    Examples
    --------
    >>> import partly
    >>> labels = partly.Labels.from_full([[1, 0, 1], [0, 1, 1]], names=["cat", "dog", "animal"])
    >>> scores = [[0.9, 0.2, 0.3], [0.4, 0.3, 0.8]]
    >>> found = partly.metrics.hierarchical(scores, labels, {"cat": "animal", "dog": "animal"})
    >>> {name: round(found[name], 3) for name in ("hP", "hR", "Fmax", "Smin")}
    {'hP': 1.0, 'hR': 0.75, 'Fmax': 0.909, 'Smin': 0.5}
    """
    score_blocks: Any = scores
    if not isinstance(scores, Iterator):
        scores, labels, _ = check_threshold(scores, labels, threshold)
        if scored.is_sparse(scores):
            raise SettingError("Hierarchical metrics need the scores of all entries; these are of known entries alone.")
        score_blocks = ((block, scores[block]) for block in blocks(labels.shape))
    labels = as_labels(labels, "labels")
    restricted = as_hierarchy(hierarchy).restrict(labels.names)
    if restricted is None:
        raise LabelError(f"The hierarchy relates no two of these {labels.shape[1]} labels.")
    labels = restricted.deduce(labels)
    bits = estimate_information(labels, restricted) if information is None else np.asarray(information, np.float64)
    if bits.shape != labels.shape[1:] or not (bits >= 0).all():
        raise SettingError(f"information must be one number >= 0 for each of the {labels.shape[1]} labels.")
    sums = _Sums.count(score_blocks, labels, restricted, threshold, bits)
    result: dict[str, Any] = dict(sums.result())
    if confidence is not None:
        within(0, 1, confidence=confidence)
        others = [sums.without(group).result() for group in range(GROUPS)]
        result["intervals"] = {
            name: jackknife_interval(result[name], [other[name] for other in others], confidence, name != "Smin")
            for name in WITH_INTERVAL
        }
    return result


def federated_average_precision(scores: Any, labels: Any, hierarchy: Any = None) -> Floats:
    """AP of each label [L] as in the federated evaluation of Open Images and LVIS, on image-level labels.

    An item counts for a label if the entry is known. With a hierarchy, known labels are completed first: yes above a
    yes, no below a no (the expansion of Open Images). Precision at a recall is the largest at that recall or a higher
    one, as in the evaluation code of Open Images, so that values are at least those of `average_precision`.

    Parameters
    ----------
    scores : array [N, L]
        Logits or probabilities.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    hierarchy : Hierarchy or {child: parent, or list of parents}, optional
        Hierarchy of the labels.

    Returns
    -------
    array, [L]
        NaN where a label has no known yes.

    Examples
    --------
    >>> import partly
    >>> labels = partly.Labels.from_nan([[1, None], [None, 0], [None, 1]], names=["cat", "animal"])
    >>> scores = [[0.2, 0.9], [0.8, 0.1], [0.5, 0.5]]
    >>> partly.metrics.federated_average_precision(scores, labels, {"cat": "animal"})  # no animal, so no cat
    array([0.5, 1. ])
    """
    scores, labels = scored.check_scores(scores, labels, known_only=hierarchy is None)
    if hierarchy is not None:
        part = as_hierarchy(hierarchy).restrict(labels.names)
        labels = labels if part is None else part.deduce(labels)
    return np.array([_interpolate_precision(yes, no) for yes, no in scored.iter_yes_no(scores, labels.ternary())])


def federated_mean(scores: Any, labels: Labels, confidence: float) -> tuple[float, tuple[float, float]]:
    """Return the mean federated AP of the labels with a known yes, and its interval."""
    group = np.arange(len(labels)) % GROUPS

    def mean_ap(rows: npt.NDArray[np.int64]) -> float:
        return scored.mean(federated_average_precision(scores[rows], labels[rows]))

    value = scored.mean(federated_average_precision(scores, labels))
    others = [mean_ap(np.flatnonzero(group != k)) for k in range(GROUPS)] if len(labels) >= GROUPS else [float("nan")]
    return value, jackknife_interval(value, others, confidence)


def raise_to_descendants(scores: npt.NDArray[Any], names: tuple[str, ...], hierarchy: Hierarchy) -> npt.NDArray[Any]:
    """Return scores [B, L] in which each label scores at least what its descendants score."""
    raised = scores.copy()
    for descendant, ancestor in hierarchy.lines(names):
        np.maximum(raised[:, ancestor], scores[:, descendant], out=raised[:, ancestor])
    return raised


def estimate_information(labels: Labels, hierarchy: Hierarchy) -> Floats:
    """Return -log2 P(label | all its parents) for each label [L], from items in which all of these are known."""
    at = {name: j for j, name in enumerate(labels.names)}
    counts = np.zeros((2, labels.shape[1]))
    for block in blocks(labels.shape):
        z = labels.rows(block)
        for j, name in enumerate(labels.names):
            parents = [at[parent] for parent in hierarchy.parents_of(name) if parent in at]
            inside = (z[:, j] != 0) & (z[:, parents] == 1).all(axis=1)
            counts[:, j] += (z[inside, j] == 1).sum(), inside.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = -np.log2(counts[0] / counts[1])
    return np.where(counts[0] > 0, np.abs(bits), 0)  # a label without a yes costs only the information of its ancestors


def _interpolate_precision(yes: npt.NDArray[Any], no: npt.NDArray[Any]) -> float:
    """Return the AP with the largest precision at this or a higher recall."""
    if not len(yes):
        return float("nan")
    values = np.unique(yes)[::-1]
    true = len(yes) - np.searchsorted(np.sort(yes), values)
    false = len(no) - np.searchsorted(np.sort(no), values)
    precision = np.maximum.accumulate((true / (true + false))[::-1])[::-1]
    return float((precision * np.diff(true, prepend=0)).sum() / len(yes))


@dataclass
class _Sums:
    """Sums over the items of each group, [..., GROUPS]; per threshold [T, GROUPS] where curves are drawn."""

    items: Floats
    pooled: Floats  # true positives, predicted yes, known yes at the one threshold
    predicted: Floats  # items with a predicted entry
    precision: Floats
    recall: Floats
    missed: Floats  # bits
    wrong: Floats  # bits

    @classmethod
    def count(
        cls, parts: Iterator[tuple[Any, Any]], labels: Labels, hierarchy: Hierarchy, threshold: float, bits: Floats
    ) -> _Sums:
        curves = (np.zeros((len(THRESHOLDS), GROUPS)) for _ in range(5))
        sums, every = cls(np.zeros(GROUPS), np.zeros((3, GROUPS)), *curves), np.arange(len(labels))
        for rows, block in parts:
            z = labels.rows(rows)
            counted = (z == 1).any(axis=1)
            s = raise_to_descendants(np.asarray(block, np.float64), labels.names, hierarchy)[counted]
            sums._add(s, z[counted], every[rows][counted] % GROUPS, threshold, bits)
        return sums

    def without(self, group: int) -> _Sums:
        """Return the sums without the items of a group."""
        keep = np.arange(GROUPS) != group
        return _Sums(*(getattr(self, part.name)[..., keep] for part in fields(self)))

    def _add(self, s: Floats, z: npt.NDArray[np.int8], group: Any, threshold: float, bits: Floats) -> None:
        def by_group(values: Any) -> Floats:
            return np.bincount(group, np.asarray(values, np.float64), minlength=GROUPS).astype(np.float64)

        yes, known = z == 1, z != 0
        self.items += by_group(np.ones(len(z)))
        called = (s >= threshold) & known
        self.pooled += np.stack([by_group(part.sum(axis=1)) for part in (called & yes, called, yes)])
        for k, cut in enumerate(THRESHOLDS):
            called = (s >= cut) & known
            right, count = (called & yes).sum(axis=1), called.sum(axis=1)
            self.predicted[k] += by_group(count > 0)
            self.precision[k] += by_group(right / np.maximum(count, 1))
            self.recall[k] += by_group(right / yes.sum(axis=1))
            self.missed[k] += by_group((yes & ~called) @ bits)
            self.wrong[k] += by_group((called & ~yes) @ bits)

    def result(self) -> dict[str, float]:
        items, pooled, predicted, precision_sum, recall_sum, missed, wrong = (
            getattr(self, part.name).sum(axis=-1) for part in fields(self)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            right, called, yes = pooled
            precision, recall = np.divide(right, called), np.divide(right, yes)
            p, r = precision_sum / predicted, recall_sum / items
            f = np.where(p + r > 0, 2 * p * r / (p + r), 0.0)
            s = np.hypot(missed, wrong) / items
            f1 = 2 * right / (called + yes)
        best_f, best_s = int(np.argmax(f)), int(np.argmin(s)) if items else 0
        fmax = float(f[best_f]) if items else float("nan")
        return {
            "hP": float(precision), "hR": float(recall), "hF1": float(f1),
            "Fmax": fmax, "Fmax_threshold": float(THRESHOLDS[best_f]),
            "Smin": float(s[best_s]), "Smin_threshold": float(THRESHOLDS[best_s]), "items": int(items),
        }  # fmt: skip
