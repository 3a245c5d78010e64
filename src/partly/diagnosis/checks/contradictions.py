"""Items that are the same, of which a label is known to be yes for one and no for another."""

from __future__ import annotations

from typing import Any

import numpy as np

from partly.diagnosis.finding import Finding
from partly.diagnosis.patient import Patient

NEEDS = "items"


def check(patient: Patient) -> list[Finding]:
    labels = patient.labels
    entries: list[dict[str, Any]] = []
    for group in patient.groups:
        z = labels.rows(np.array(group))
        for j in np.flatnonzero((z == 1).any(axis=0) & (z == -1).any(axis=0)):
            said = {1: "yes", -1: "no"}
            told = {labels.id_at(i): said[int(value)] for i, value in zip(group, z[:, j], strict=True) if value}
            entries.append({"label": labels.names[j], "said": told})
    if not entries:
        return []
    first = "; ".join(f"{one['label']}: {', '.join(f'{i} {v}' for i, v in one['said'].items())}" for one in entries[:3])
    words = f"Items that are the same contradict each other in {len(entries)} labels: {first}."
    return [
        Finding("problem", words, "Ask somebody, and give all of them the same answer.", entries=tuple(entries[:100]))
    ]
