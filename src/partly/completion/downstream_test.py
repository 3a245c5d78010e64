"""Whether completing helps: a model that learns from completed labels beside one that learns from observed ones.

Both learn from three quarters of the items and are judged by known entries of the others, which had no say in what was
filled in: thresholds are those that were certified, but scores are made anew without these items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from partly import model_choice
from partly.binary_relevance.given import rows_of
from partly.completion.entry_scores import board_of, held_out_scores
from partly.completion.result import Completion, filling
from partly.data import split_holdout
from partly.labels import Hierarchy, Labels

SHARE = 0.25  # of the items, to judge by
DRAWS = 100  # of these items, with replacement, for the interval


@dataclass(frozen=True)
class Worth:
    """What both are worth by a criterion, of which more is better, and a 95 % interval of the difference."""

    criterion: str
    observed: float
    completed: float
    low: float
    high: float

    @property
    def words(self) -> str:
        judged = (
            f"On held-out known entries ({self.criterion}, more is better) a model that learned from completed labels "
            f"has {self.completed:.4f}, one that learned from observed ones {self.observed:.4f}"
        )
        gain = self.completed - self.observed
        interval = f"difference {gain:+.4f}, 95 % interval {self.low:+.4f} to {self.high:+.4f}"
        if self.high < 0:
            return f"{judged} ({interval}): completing HURT. Train on what was observed."
        helped = "completing helped" if self.low > 0 else "no difference is seen"
        return f"{judged} ({interval}): {helped}."


def worth(
    model: Any, X: Any, said: Labels, found: Completion, hierarchy: Hierarchy | None = None, seed: int = 0
) -> Worth:
    """Two fits. said: the labels that were completed; found: what `complete` made of them and of this model."""
    learn, judge = split_holdout(len(said), SHARE, seed, "completion")
    known = found.known[learn]
    plain, scores = held_out_scores(_apart(model), rows_of(X, learn), known, None)
    board = board_of(scores, said[learn], known, hierarchy, found.board.audited, seed)
    z = filling(board, found.sides, known)
    rows, columns = np.nonzero(z)
    full = clone(_apart(model)).fit(rows_of(X, learn), known.with_entries(rows, columns, z[rows, columns]))
    first, second = (one.predict_proba(rows_of(X, judge)) for one in (plain, full))
    return judged(first, second, found.known[judge], seed)


def _apart(model: Any) -> Any:
    """The same model in no folder."""
    return clone(model).set_params(run_dir=None) if hasattr(model, "run_dir") else model


def judged(observed: Any, completed: Any, labels: Labels, seed: int) -> Worth:
    """Scores [N, L] of both, by what is known; the interval is a bootstrap over items."""
    criterion = model_choice.default(labels)
    first, second = np.asarray(observed), np.asarray(completed)
    rng = np.random.default_rng(seed)
    differences = []
    for _ in range(DRAWS):
        rows = rng.integers(len(labels), size=len(labels))
        some = Labels.from_ternary(labels.rows(rows), names=labels.names)
        one, other = (model_choice.score(criterion, part[rows], some) for part in (first, second))
        differences.append(other - one)
    low, high = np.nanquantile(differences, [0.025, 0.975])
    one, other = (model_choice.score(criterion, part, labels) for part in (first, second))
    return Worth(criterion, one, other, float(low), float(high))
