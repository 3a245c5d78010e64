"""`partly evaluate`: probabilities in a file against labels in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from partly import data as files
from partly import metrics
from partly.data.matching import positions
from partly.errors import SettingError, within
from partly.run import load


def evaluate(
    scores: Path,
    labels: str,
    threshold: float = 0.5,
    run: Path | None = None,
    meaning: files.Meaning = files.Meaning(),  # noqa: B008 (it is frozen)
) -> dict[str, float]:
    """Items and labels are matched by id and by name; only known entries count. run: whose thresholds are taken."""
    within(0, 1, threshold=threshold)  # scores in files are probabilities
    absent, uncertain = meaning.absent, meaning.uncertain
    test = files.read(labels, absent=absent, uncertain=uncertain).test if files.is_whole(labels) else None
    truth = files.read_labels(labels, absent=absent, uncertain=uncertain) if test is None else test.labels
    there = files.read_scores(scores)
    rows, columns = (
        positions(truth.ids, there.ids, scores, "item"),
        positions(truth.names, there.names, scores, "label"),
    )
    cuts = threshold if run is None else _thresholds(run, truth.names)
    return metrics.evaluate(there.values[np.ix_(rows, columns)], truth, cuts)


def _thresholds(run: Path, names: Sequence[str]) -> npt.NDArray[np.float32]:
    """Of these labels."""
    fitted = load(run)
    if not fitted.chooses:
        raise SettingError(
            f"{run}: {fitted.recipe.method} chooses no thresholds. Leave out --run, give --threshold, or "
            "let some be chosen: the same `partly train` with --thresholds f1."
        )
    return fitted.thresholds[positions(names, fitted.names, run, "label")]
