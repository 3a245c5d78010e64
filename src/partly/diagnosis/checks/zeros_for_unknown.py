"""Labels in which nothing is unknown, and no is so frequent that 0 may have meant that nobody said."""

from __future__ import annotations

import numpy as np

from partly.diagnosis.finding import Finding
from partly.diagnosis.patient import Patient

NEEDS = "labels"
SPARSE = 0.02  # share of yes below which wholly known labels are strange
BARE = 0.5  # share of items without any yes
FEWEST = 5  # labels, from which on one yes for each item is strange


def check(patient: Patient) -> list[Finding]:
    labels = patient.labels
    yes, no = labels.counts()
    size = labels.shape[0] * labels.shape[1]
    if not size or yes.sum() + no.sum() < size or not yes.any():
        return []
    per_item = np.concatenate([(labels.rows(slice(i, i + 4096)) == 1).sum(axis=1) for i in range(0, len(labels), 4096)])
    share, bare = float(yes.sum() / size), float((per_item == 0).mean())
    signs = [f"only {share:.2%} of the entries are yes"] if share < SPARSE else []
    signs += [f"{bare:.0%} of the items have no yes at all"] if bare > BARE else []
    if labels.shape[1] >= FEWEST and len(labels) > 1 and (per_item == 1).all():
        signs.append("every item has exactly one yes")
    if not signs:
        return []
    words = f"Nothing is unknown, yet {' and '.join(signs)}: a 0 may mean that nobody said, and not no."
    remedy = (
        "If so, blank the zeros (in Python: Labels.from_positives). If each 0 was looked at, or exactly one label "
        "applies, all is well."
    )
    return [Finding("warning", words, remedy, numbers={"share_of_yes": share, "items_without_yes": bare})]
