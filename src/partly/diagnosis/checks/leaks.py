"""Items of the test part that are the same as one to learn from."""

from __future__ import annotations

from partly.diagnosis.finding import Finding
from partly.diagnosis.patient import Patient, prints

NEEDS = "test"


def check(patient: Patient) -> list[Finding]:
    there = set(patient.prints)
    tested = prints(patient.test_items)
    count = sum(one in there for one in tested)
    if not count:
        return []
    words = f"{count} of {len(tested)} test items are also among the items to learn from: scores on them are too good."
    remedy = "Take them out of one of the two parts."
    return [Finding("problem", words, remedy, numbers={"items": count, "share": count / len(tested)})]
