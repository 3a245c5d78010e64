"""Whether the features of an item tell which of its entries are known: if they do, these are not missing at random.

Logistic regression, out of fold, on "is known" of each label of which some yes and some no are known (of a label of
which only yes is known, "known" and "yes" would be the same); the mean AUC over labels, with an interval by a jackknife
over items.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from partly.diagnosis.finding import Finding
from partly.diagnosis.patient import Patient
from partly.estimator import Classifier
from partly.labels import Labels, scored

NEEDS = "features"
LEAST = 20  # known and unknown entries of a label that is looked at
MOST = 40  # labels that are looked at
GROUPS = 20  # of the jackknife
STRICTER = 1.86  # half an interval of 99.9 % / half of one of 95 %, by 19 degrees of freedom
WORTH = 0.55  # AUC from which on it matters


def check(patient: Patient) -> list[Finding]:
    labels = patient.labels
    yes, no = labels.counts()
    able = (yes > 0) & (no > 0) & (np.minimum(yes + no, len(labels) - yes - no) >= LEAST)
    columns = np.flatnonzero(able)[:MOST]
    if not len(columns):
        return []
    known = np.concatenate([labels.rows(slice(i, i + 4096))[:, columns] != 0 for i in range(0, len(labels), 4096)])
    model = Classifier("bce", head="linear", progress=False, seed=patient.seed)
    scores = model.fit(patient.features, Labels.from_full(known.astype(np.int8))).out_of_fold_
    auc, half = _auc(scores, known)
    numbers = {"auc": auc, "low": auc - half, "high": auc + half, "labels": len(columns)}
    test = f"AUC {auc:.3f}, 95 % interval {auc - half:.3f} to {auc + half:.3f}, out of fold, {len(columns)} labels"
    if auc - STRICTER * half <= 0.5 or auc < WORTH:
        return [Finding("fine", f"Features do not tell which entries are known ({test}).", numbers=numbers)]
    words = f"Features tell which entries are known ({test}): they are not missing at random."
    remedy = (
        "Scores and thresholds on known entries speak for items like these. Have people label some items that are "
        "drawn by chance, and test on them."
    )
    return [Finding("warning", words, remedy, numbers=numbers)]


def _auc(scores: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """The mean over labels, and half of its 95 % interval."""

    def mean(rows: npt.NDArray[np.int64]) -> float:
        pairs = ((s[k], s[~k]) for s, k in zip(scores[rows].T, known[rows].T, strict=True))
        return scored.mean(np.array([scored.auc(*pair) for pair in pairs]))

    every = np.arange(len(scores))
    values = [mean(np.delete(every, slice(group, None, GROUPS))) for group in range(GROUPS)]
    error = np.sqrt((GROUPS - 1) * np.var(values))
    return mean(every), float(stdtrit(GROUPS - 1, 0.975) * error)
