"""View of a fitted model on labeled items, for the report: each item is predicted once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from partly.engine import FittedModel
from partly.items import Items
from partly.labels import Labels
from partly.labels.scored import enumerate_rows, gather_known
from partly.model_choice.missingness import EntrySums
from partly.report.page import RunView, view_run

Rows = Iterator[tuple[slice, npt.NDArray[np.float32]]]  # row numbers and probabilities, block by block


def view_model(
    title: str,
    fitted: FittedModel,
    items: Items,
    labels: Labels,
    privilege: str = "",
    observe: Callable[[Rows], Rows] = lambda blocks: blocks,
) -> RunView:
    """Describe a model by its scores of known entries.

    privilege: labels that it saw and others do not; observe: sees all probabilities pass, block by block.
    """
    entries = EntrySums(labels)
    blocks = entries.pass_through(enumerate_rows(fitted.taught_by(ids=labels.given_ids).predict_blocks(items)))
    known = gather_known(observe(blocks), labels)
    thresholds = fitted.thresholds if fitted.has_thresholds else None
    notes = () if fitted.calibration is None else fitted.calibration.describe(fitted.names)
    view = view_run(
        title, fitted.description, fitted.progress, fitted.reason, known, privilege, thresholds, notes, entries
    )
    return view if fitted.teaching is None else replace(view, teacher=fitted.teaching.combination.weights())
