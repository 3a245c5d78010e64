"""`partly evaluate`: probabilities in a file, or those that a run gives, against labels.

Scores are of known entries alone, so these are all that is kept of the probabilities. A file is gone through once, some
rows at a time and in whatever order they are; a run predicts block after block. That is exact, and takes by what is
known, not by items x labels. Blocks of labels would keep less, but take a pass over the file, or a prediction, each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import data as files
from partly import metrics
from partly.cli.opening import open_data
from partly.data.matching import find_positions
from partly.engine import load
from partly.errors import SettingError, within
from partly.images.progress import track_progress
from partly.labels import Labels
from partly.labels.scored import enumerate_rows, gather_known
from partly.model_choice.missingness import EntrySums
from partly.report.words import ONLY_YES, only_yes


def evaluate(
    scores: Path,
    labels: str,
    threshold: float = 0.5,
    run: Path | None = None,
    meaning: files.LabelSemantics = files.LabelSemantics(),  # noqa: B008 (it is frozen)
    observed: Path | None = None,
) -> tuple[dict[str, float], list[str]]:
    """Return scores, corrected where entries are not missing at random, and sentences that qualify them.

    Items and labels are matched by id and by name; only known entries count. scores: a table of them, or a run, whose
    model then scores the items of the data set `labels` (with the labels `observed`, where it has none of its own).
    run: whose thresholds are taken.
    """
    within(0, 1, threshold=threshold)  # scores in files are probabilities
    if scores.is_dir():
        found, truth, entries = _predicted(scores, labels, observed, meaning)
    elif observed is not None:
        raise SettingError(f"--labels is for a run that scores DATA; {scores} holds scores. Give the labels after it.")
    else:
        test = files.read(labels, **vars(meaning)).test if files.is_whole(labels) else None
        truth = files.read_labels(labels, **vars(meaning)) if test is None else test.labels
        entries = EntrySums(truth)
        found = gather_known(entries.passing(files.read_score_blocks(scores, truth.ids, truth.names)), truth)
    cuts = threshold if run is None else _thresholds(run, truth.names)
    missing = entries.missingness
    return metrics.both(found, truth, cuts, missing)[0], missing.describe() + ([ONLY_YES] if only_yes(truth) else [])


def _predicted(
    run: Path, data: str, observed: Path | None, meaning: files.LabelSemantics
) -> tuple[Any, Labels, EntrySums]:
    """Probabilities that a run gives, and the labels of the items: of the test part, where there is one."""
    fitted, opened = load(run), open_data(data, observed, meaning=meaning)
    part = opened.test or opened
    columns = find_positions(part.labels.names, fitted.names, run, "label")
    whole = np.array_equal(columns, np.arange(len(fitted.names)))
    blocks = track_progress(fitted.predict_blocks(part.items), len(part.items), data, weight=len)
    chosen = (block if whole else block[:, columns] for block in blocks)
    entries = EntrySums(part.labels)
    return gather_known(entries.passing(enumerate_rows(chosen)), part.labels), part.labels, entries


def _thresholds(run: Path, names: Sequence[str]) -> npt.NDArray[np.float32]:
    """Of these labels."""
    fitted = load(run)
    if not fitted.chooses:
        raise SettingError(
            f"{run}: {fitted.recipe.method} chooses no thresholds. Leave out --run, give --threshold, or "
            "let some be chosen: the same `partly train` with --thresholds f1."
        )
    return fitted.thresholds[find_positions(names, fitted.names, run, "label")]
