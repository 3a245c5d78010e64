"""Recalibrate a language model's probabilities on entries that people have answered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from partly.labels import Labels

MIN_ANSWERS = 20  # yes and no together
MIN_OF_EACH = 3  # yes, and as many no
MIN_DISTANCE = 1e-3  # of a probability from 0 and 1


def recalibrate(
    chance: npt.NDArray[np.float32], known: Labels, ids: Sequence[str], names: Sequence[str]
) -> npt.NDArray[np.float32]:
    """Return probabilities [N, L] under one Platt map for all labels; unchanged where too few entries are known.

    The map is fitted to people's answers, because the model's own probabilities say nothing about its accuracy.
    """
    z = match(known, ids, names)
    answered = (z != 0) & np.isfinite(chance)
    answers = z[answered] == 1
    if len(answers) < MIN_ANSWERS or min(answers.sum(), (~answers).sum()) < MIN_OF_EACH:
        return chance
    fitted = LogisticRegression(C=1.0).fit(_logits(chance[answered]), answers)
    result = chance.copy()
    finite = np.isfinite(chance)
    result[finite] = fitted.predict_proba(_logits(chance[finite]))[:, 1]
    return result


def match(known: Labels, ids: Sequence[str], names: Sequence[str]) -> npt.NDArray[np.int8]:
    """Return z [N, L] of these items and labels; 0 where `known` has no such item or label."""
    z = np.zeros((len(ids), len(names)), np.int8)
    rows, columns = ({name: k for k, name in enumerate(part)} for part in (ids, names))
    row, column, value = known.entries()
    for i, j, code in zip(row.tolist(), column.tolist(), value.tolist(), strict=True):
        position = rows.get(known.ids[i]), columns.get(known.names[j])
        if None not in position:
            z[position] = 1 if code == 1 else -1
    return z


def _logits(chance: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    clipped = np.clip(chance.astype(np.float64), MIN_DISTANCE, 1 - MIN_DISTANCE)
    logits: npt.NDArray[np.float64] = np.log(clipped / (1 - clipped))[:, None]
    return logits
