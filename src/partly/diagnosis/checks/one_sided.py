"""Labels of which no yes, no no, or next to nothing is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from partly.diagnosis.finding import Finding, Level, some
from partly.diagnosis.patient import Patient

NEEDS = "labels"
FEW = 10  # known yes, below which little can be learned of a label


def check(patient: Patient) -> list[Finding]:
    labels = patient.labels
    yes, no = labels.counts()
    unknown = len(labels) - yes - no
    found = []
    if yes.any() and not no.any() and unknown.any():
        words = "Only yes is known: no entry of any label is known to be no."
        remedy = "Methods then take unknown for no, or weigh it; scores flatter. A few known no's per label help much."
        found.append(Finding("warning", words, remedy))
    kinds: tuple[tuple[Level, npt.NDArray[np.bool_], str, str], ...] = (
        ("problem", (yes == 0) & (no == 0), "nothing is known", "They cannot be learned: ask for some, or drop them."),
        ("problem", (yes == 0) & (no > 0), "no yes is known", "They cannot be learned: ask for some yes."),
        ("warning", (yes > 0) & (no == 0) & no.any(), "no no is known", "Ask for some no's of these labels."),
        (
            "note",
            (yes > 0) & (yes < FEW),
            f"fewer than {FEW} yes are known",
            "Expect little of them; ask for more yes.",
        ),
    )
    for level, where, what, remedy in kinds:
        names = tuple(labels.names[j] for j in np.flatnonzero(where))
        if names:
            found.append(Finding(level, f"Of {len(names)} labels {what}: {some(names)}.", remedy, names))
    return found
