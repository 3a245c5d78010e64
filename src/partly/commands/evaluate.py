"""`partly evaluate`: probabilities in a file against labels in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from partly import data as files
from partly import metrics
from partly.data.matching import positions


def evaluate(scores: Path, labels: str, threshold: float = 0.5) -> dict[str, float]:
    """Items and labels are matched by id and by name; only known entries count."""
    test = files.read(labels).test if files.is_whole(labels) else None
    truth = files.read_labels(labels) if test is None else test.labels
    there = files.read_scores(scores)
    rows, columns = (
        positions(truth.ids, there.ids, scores, "item"),
        positions(truth.names, there.names, scores, "label"),
    )
    return metrics.evaluate(there.values[np.ix_(rows, columns)], truth, threshold)
