"""Known entries that are likely wrong: a model that has not seen the item is sure of the contrary.

Paper: C. Northcutt, L. Jiang, I. Chuang. Confident Learning: Estimating Uncertainty in Dataset Labels. JAIR 2021.

Theirs is the idea that out-of-fold scores show where a given label is wrong. They count who is above the mean of a
class, which also finds entries of labels that are merely hard to tell. Here a share of wrong entries is estimated: what
was said is yes with the chance e + (1 - 2 e) sigmoid(slope * score + bias), a line for each label and one e for all.
Only where some e above 0 is much more likely than none (a likelihood ratio) is anything called wrong, and each entry
has its chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from partly.diagnosis.finding import Finding
from partly.diagnosis.patient import Patient
from partly.labels import scored

NEEDS = "features"
SHARES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2)  # of wrong entries, that are tried
EVIDENCE = 15.0  # twice the gain in log likelihood; by chance alone it is above 10.8 once in 2,000 times
FEWEST = 20  # known yes and no of a label that is looked at
SHOWN = 100
Floats = npt.NDArray[np.float64]


def check(patient: Patient) -> list[Finding]:
    labels = patient.labels
    yes, no = labels.counts()
    columns = np.flatnonzero(np.minimum(yes, no) >= FEWEST)
    if not len(columns):
        return []
    pairs = list(scored.columns(patient.scores, labels.ternary()))
    parts = [_standardised(*pairs[j]) for j in columns]
    fits = {share: [_line(s, y, share) for s, y in parts] for share in (0.0, *SHARES)}
    gains = {share: 2 * sum(a[0] - b[0] for a, b in zip(fits[0.0], fits[share], strict=True)) for share in SHARES}
    best = max(gains, key=lambda share: gains[share])
    if gains[best] < EVIDENCE:
        return []
    entries = _doubted(patient, columns, parts, [line for _, line in fits[best]], best)
    known = sum(len(y) for _, y in parts)
    numbers = {"share": best, "evidence": gains[best], "known": known, "doubted": len(entries)}
    first = "; ".join(f"{e['item']} {e['label']} {e['given']}" for e in entries[:3])
    words = (
        f"About {best:.1%} of {known} known entries are likely wrong (likelihood ratio {gains[best]:.0f}); of "
        f"{len(entries)} a model that has not seen the item says so. First: {first}."
    )
    remedy = "Look at the listed entries, the surest first (--json lists them), and mend or blank what is wrong."
    return [Finding("warning", words, remedy, numbers=numbers, entries=tuple(entries[:SHOWN]))]


def _standardised(yes: npt.NDArray[Any], no: npt.NDArray[Any]) -> tuple[Floats, Floats]:
    s = np.concatenate([yes, no]).astype(np.float64)
    return (s - s.mean()) / (s.std() or 1.0), np.repeat([1.0, 0.0], [len(yes), len(no)])


def _line(s: Floats, y: Floats, share: float) -> tuple[float, Floats]:
    """What the most likely line leaves of the log likelihood, negative, and its slope and bias."""

    def loss(line: Floats) -> tuple[float, Floats]:
        p = expit(line[0] * s + line[1])
        q = np.clip(share + (1 - 2 * share) * p, 1e-12, 1 - 1e-12)
        to_logit = (q - y) / (q * (1 - q)) * (1 - 2 * share) * p * (1 - p)
        value = -(y * np.log(q) + (1 - y) * np.log1p(-q)).sum()
        return float(value), np.array([(to_logit * s).sum(), to_logit.sum()])

    found = minimize(loss, np.array([1.0, 0.0]), jac=True, method="BFGS")
    return float(found.fun), np.asarray(found.x)


def _doubted(
    patient: Patient, columns: npt.NDArray[Any], parts: list[tuple[Floats, Floats]], lines: list[Floats], share: float
) -> list[dict[str, Any]]:
    """Entries that are wrong more likely than not, the surest first."""
    labels, z, found = patient.labels, patient.labels.ternary(), []
    for j, (s, y), line in zip(columns, parts, lines, strict=True):
        p = expit(line[0] * s + line[1])
        said = np.where(y == 1, p, 1 - p)
        wrong = share * (1 - said) / (share * (1 - said) + (1 - share) * said)
        column = np.asarray(z[:, [j]].toarray() if labels.sparse else z[:, [j]]).ravel()
        rows = np.concatenate([np.flatnonzero(column == 1), np.flatnonzero(column == -1)])  # as the scores lie
        for k in np.flatnonzero(wrong > 0.5):
            given = "yes" if y[k] == 1 else "no"
            entry = {"item": labels.id_at(int(rows[k])), "label": labels.names[j], "given": given}
            found.append(entry | {"chance_to_be_wrong": round(float(wrong[k]), 4)})
    return sorted(found, key=lambda entry: -entry["chance_to_be_wrong"])
