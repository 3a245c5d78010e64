"""Items that are the same, number by number."""

from __future__ import annotations

from partly.diagnosis.finding import Finding, some
from partly.diagnosis.patient import Patient

NEEDS = "items"


def check(patient: Patient) -> list[Finding]:
    if not patient.groups:
        return []
    ids = tuple(" = ".join(patient.labels.id_at(i) for i in group[:4]) for group in patient.groups)
    count = sum(len(group) - 1 for group in patient.groups)
    words = f"{count} items are the same as another one: {some(ids, 3)}."
    remedy = "Join what is known of them into one item. Held out by chance, they make scores too good."
    return [Finding("warning", words, remedy, items=ids[:100], numbers={"items": count, "groups": len(ids)})]
