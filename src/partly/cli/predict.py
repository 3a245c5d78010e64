"""`partly predict`: probabilities of a finished run, or what its method believes of the items it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from partly import data as files
from partly.data.formats.feature_table import BLOCK, write_numbers
from partly.data.matching import find_positions
from partly.data.paths import check_suffix
from partly.data.tables import SUFFIXES
from partly.engine import Fitted, load, read_ids
from partly.errors import SettingError, within
from partly.images.progress import track_progress
from partly.labels import Labels

OWN = "own"  # thresholds


def predict(
    run: Path,
    data: str,
    out: Path,
    known: Path | None = None,
    skip_bad: bool = False,
    meaning: files.LabelSemantics = files.LabelSemantics(),  # noqa: B008 (it is frozen)
    calls: bool = False,
    top: int | None = None,
    above: str | None = None,
) -> int:
    """Probabilities for the test part of a data set, or for items by themselves; how many items there are. Items are
    made and scores are written batch after batch, so that of either no more than that is held.

    known: labels of some of these items, matched by id and by name, for a head that makes use of them. calls: not
    probabilities, but what is called yes by the thresholds of the run. top, above: not all of them, but a row for each
    of the so many strongest of an item, or of those that reach a probability, or the thresholds of the run ("own").
    """
    cuts = _cut(above)
    fitted = load(run)
    # Of the items of a data set nothing is asked but what they are, so what its labels leave open does not matter.
    said = replace(meaning, absent=meaning.absent or "unknown", uncertain="unknown")
    opened = files.read_items(data, _labels_beside(fitted), skip_bad, said)
    part = opened.test or opened
    count, labels = len(part.items), part.labels
    given = None if known is None else _known(known, data, labels.ids, run, fitted.names, meaning)
    made = fitted.predict_blocks(part.items, given)
    if calls:
        made = ((block >= fitted.thresholds).astype(np.float32) for block in made)
    blocks, ids = track_progress(made, count, data, weight=len), map(labels.id_at, range(count))
    if top is None and above is None:
        files.write_scores(out, blocks, ids, fitted.names)
    else:
        files.write_strongest(out, blocks, ids, fitted.names, top, fitted.thresholds if above == OWN else cuts)
    return count


def _labels_beside(fitted: Fitted) -> list[str]:
    """Return the labels that a table of items may hold too; none of them is a feature of the model.

    Labels without names are called by their positions, "0", "1", ..., as features without names often are.
    """
    if fitted.names == tuple(map(str, range(len(fitted.names)))):
        return []
    items = fitted.method.task.items
    encoding = getattr(items, "encoding", None)
    features = {*(items.names or ()), *(() if encoding is None else encoding.column_names)}
    return [name for name in fitted.names if name not in features]


def _cut(above: str | None) -> float | None:
    """The probability that is meant, if it is one."""
    if above in (None, OWN):
        return None
    try:
        cut = float(str(above))
    except ValueError:
        raise SettingError(f"--above {above}: give a probability, or {OWN!r} for the thresholds of the run.") from None
    within(0, 1, above=cut)
    return cut


def beliefs(run: Path, out: Path) -> int:
    """What the method of a run believes of its training entries; how many items there are."""
    fitted = load(run)
    if fitted.beliefs is None:
        raise SettingError(f"{run}: {fitted.recipe.method} holds no beliefs about its training entries.")
    blocks = (fitted.beliefs[i : i + BLOCK] for i in range(0, len(fitted.beliefs), BLOCK))
    check_suffix(out, SUFFIXES)
    write_numbers(out, read_ids(run), fitted.names, blocks)
    return len(fitted.beliefs)


def _known(
    known: Path, data: str, ids: Sequence[str], run: Path, names: Sequence[str], meaning: files.LabelSemantics
) -> Labels:
    """What a file says of items of `data` and labels of `run`; what it does not name is unknown."""
    labels = files.read_labels(known, **vars(meaning))
    rows, columns = (
        find_positions(labels.ids, ids, data, "known item"),
        find_positions(labels.names, names, run, "known label"),
    )
    row, column, values = labels.entries()
    return Labels.from_codes(rows[row], columns[column], values, names, ids)
