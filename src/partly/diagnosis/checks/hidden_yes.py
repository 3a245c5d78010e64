"""How many yes are hidden among unknown entries, by an estimate of the share of yes (docs/choosing.md)."""

from __future__ import annotations

import numpy as np

from partly.choosing.missingness import missingness
from partly.diagnosis.finding import Finding
from partly.diagnosis.patient import Patient

NEEDS = "features"
MANY = 0.5  # hidden yes for each known one
RARE = 20  # known yes, below which an estimate is weak
REMEDY = "Do not take unknown for no: `auto` does not, and `partly methods` lists who else does what."


def check(patient: Patient) -> list[Finding]:
    labels = patient.labels
    yes, no = labels.counts()
    unknown = len(labels) - yes - no
    if not unknown.any():
        return []
    missing = missingness(patient.scores, labels)
    if missing.withheld:
        words = (
            f"How many yes are hidden among {unknown.sum()} unknown entries cannot be told: {missing.sentences()[0]}"
        )
        return [Finding("note", words, REMEDY)]
    hidden = np.minimum(np.maximum(patient.shares * len(labels) - yes, 0), unknown)
    weak = int(((yes < RARE) & (unknown > 0)).sum())
    words = f"About {hidden.sum():.0f} yes are hidden among {unknown.sum()} unknown entries, beside {yes.sum()} known."
    if weak:
        words += (
            f" For the {weak} labels with fewer than {RARE} known yes the estimate is weak: it leans on the others."
        )
    if not no.any():
        words += " Where only yes is known and labels are hard to tell, it errs upwards."
    numbers = {"hidden": {name: round(float(h), 1) for name, h in zip(labels.names, hidden, strict=True)}}
    if hidden.sum() < MANY * yes.sum():
        return [Finding("fine", words, numbers=numbers)]
    return [Finding("note", words, REMEDY, numbers=numbers)]
