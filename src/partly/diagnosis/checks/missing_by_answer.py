"""Whether yes and no are known at different rates: then scores on known entries do not hold for all entries.

By out-of-fold scores: see `choosing.missingness` for the test, the estimate and its assumption.
"""

from __future__ import annotations

from partly.choosing.missingness import missingness
from partly.diagnosis.finding import Finding
from partly.diagnosis.patient import Patient

NEEDS = "features"


def check(patient: Patient) -> list[Finding]:
    found = missingness(patient.scores, patient.labels)
    if found.kind in ("complete", "untested"):
        return []
    numbers = {"p": found.p_value, "yes_known": found.yes_known, "no_known": found.no_known}
    if not found.biased:
        test = f"known and unknown entries score alike, p = {found.p_value:.2g}"
        words = f"No sign that yes and no are known at different rates ({test})."
        return [Finding("fine", words, numbers={"p": found.p_value})]
    done = "withhold" if found.withheld else "correct"
    remedy = (
        f"`train` and `evaluate` {done} scores on such entries. Draw some items at random, label them completely, and "
        "test on them."
    )
    return [Finding("warning", found.sentences()[0], remedy, numbers=numbers)]
