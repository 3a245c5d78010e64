"""`partly simulate`: hide labels as a scenario says, and write what is left."""

from __future__ import annotations

from pathlib import Path

from partly import data as files
from partly import scenarios
from partly.labels import Labels


def simulate(
    data: str,
    scenario: str,
    out: Path,
    seed: int = 0,
    meaning: files.LabelSemantics = files.LabelSemantics(),  # noqa: B008 (it is frozen)
    form: str | None = None,
) -> Labels:
    """Labels of which a scenario has hidden a part, written to a file."""
    whole = files.read(data, **vars(meaning)) if files.is_whole(data) else None
    truth = files.read_labels(data, **vars(meaning)) if whole is None else whole.labels
    observed = scenarios.parse(scenario)(truth, seed, None if whole is None else whole.hierarchy)
    files.write_labels(observed, out, form=form)
    return observed
