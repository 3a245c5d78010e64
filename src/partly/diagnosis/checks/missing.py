"""How entries are missing: by chance, by item, or by label.

If every entry were known by chance, known entries per item would vary as sums of independent draws with the labels'
shares do, and known entries per label as those with the items' shares do. Their variance is compared with that by a
chi-square test of dispersion, corrected for the kurtosis of such sums, and two-sided: as many known of each item as of
any other is no chance either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from partly.diagnosis.finding import Finding
from partly.diagnosis.patient import Patient

NEEDS = "labels"
RISK = 0.001  # of calling chance something else
REMEDY = {
    ("item", True): "Some items were looked at more than others. Split train and test by item, and look at what sets "
    "the well known items apart: scores on known entries speak for items like these.",
    (
        "item",
        False,
    ): "Each item was given about as many answers (one yes each, say): unknown entries of an item are not "
    "free to be anything. Take a method that knows it (partly methods), or let `auto`.",
    ("label", True): "Some labels were asked about more often. Look at AP label by label, and ask about the others.",
    ("label", False): "Each label was asked about equally often: nothing to do.",
}


def check(patient: Patient) -> list[Finding]:
    labels = patient.labels
    yes, no = labels.counts()
    size = labels.shape[0] * labels.shape[1]
    if not 0 < yes.sum() + no.sum() < size:
        return []
    known = {"item": labels.known_per_item(), "label": yes + no}
    found = []
    for what, other in (("item", "label"), ("label", "item")):
        p = dispersion(known[what], known[other] / len(known[what]))
        if p is not None:
            found.append(_told(what, *p, only_yes=not no.any()))
    return found


def dispersion(counts: npt.NDArray[np.int64], chances: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    """(p-value, variance / that of chance) of counts [K] that would be sums of draws with these chances; None where
    chance has no say."""
    spread = chances * (1 - chances)
    variance, df = float(spread.sum()), len(counts) - 1
    if variance < 1e-9 or df < 1:
        return None
    kurtosis = float((spread * (1 - 6 * spread)).sum()) / variance**2
    ratio = float(((counts - counts.mean()) ** 2).sum()) / variance / df
    shrunk = max((ratio * df - df) * np.sqrt(2 / max(2 + kurtosis, 0.1)) + df, 0.0)
    return float(min(1.0, 2 * min(chi2.cdf(shrunk, df), chi2.sf(shrunk, df)))), ratio


def _told(what: str, p: float, ratio: float, only_yes: bool) -> Finding:
    numbers: dict[str, Any] = {"by": what, "p": p, "variance_ratio": ratio}
    test = f"dispersion test, variance {ratio:.2f} times that of chance, p = {p:.2g}"
    if p >= RISK:
        return Finding("fine", f"Known entries per {what} vary as by chance ({test}).", numbers=numbers)
    words = (
        f"Entries are not known by chance: known entries per {what} vary {'more' if ratio > 1 else 'less'} ({test})."
    )
    if only_yes and what == "label":
        words += " Only yes is known, so this also shows how frequent labels are."
    return Finding("note", words, REMEDY[what, ratio > 1], numbers=numbers)
