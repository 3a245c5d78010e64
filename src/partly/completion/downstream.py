"""Test whether completing helps: compare a model trained on completed labels with one trained on observed labels.

Both train on three quarters of the items and are scored on known entries of the others. These items have no influence
on what is filled in: the certified thresholds are kept, but scores are recomputed without these items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from partly import model_choice
from partly.binary_relevance.inputs import select_rows
from partly.completion.entry_scores import build_entry_scores, compute_out_of_fold, without_run_folder
from partly.completion.result import Completion, compute_filling
from partly.data import split_holdout
from partly.labels import Hierarchy, Labels

TEST_SHARE = 0.25  # of the items
BOOTSTRAP_DRAWS = 100


@dataclass(frozen=True)
class Benefit:
    """Scores of both models by a criterion (higher is better), and a 95 % interval of the difference."""

    criterion: str
    observed: float
    completed: float
    low: float
    high: float

    @property
    def subject(self) -> str:
        """Outcome that the criterion measures. A log loss may differ although the order of the items does not."""
        return "the predicted probabilities" if self.criterion == "log-loss" else "the ranking"

    @property
    def words(self) -> str:
        scores = (
            f"On held-out known entries ({self.criterion}, higher is better), a model trained on completed labels "
            f"scores {self.completed:.4f} and one trained on observed labels {self.observed:.4f}"
        )
        difference = self.completed - self.observed
        interval = f"difference {difference:+.4f}, 95 % interval {self.low:+.4f} to {self.high:+.4f}"
        if self.high < 0:
            return f"{scores} ({interval}): completing HURT {self.subject}. Train on the observed labels."
        verdict = f"completing helped {self.subject}" if self.low > 0 else "no significant difference"
        return f"{scores} ({interval}): {verdict}."


def measure_benefit(
    model: Any, X: Any, observed: Labels, completion: Completion, hierarchy: Hierarchy | None = None, seed: int = 0
) -> Benefit:
    """Fit two models, one on the observed labels and one on the completed ones, and compare them."""
    first, second, test = score_both(model, X, observed, completion, hierarchy, seed)
    return compare_scores(first, second, completion.known[test], seed)


def score_both(
    model: Any, X: Any, observed: Labels, completion: Completion, hierarchy: Hierarchy | None, seed: int
) -> tuple[Any, Any, Any]:
    """Return the held-out probabilities of both models, and the held-out items."""
    train, test = split_holdout(len(observed), TEST_SHARE, seed, "completion")
    known = completion.known[train]
    plain, scores = compute_out_of_fold(without_run_folder(model), select_rows(X, train), known, None)
    entries = build_entry_scores(scores, observed[train], known, hierarchy, completion.entry_scores.audited, seed)
    z = compute_filling(entries, completion.sides, known)
    rows, columns = np.nonzero(z)
    filled = known.with_entries(rows, columns, z[rows, columns])
    completed = clone(without_run_folder(model)).fit(select_rows(X, train), filled)
    first, second = (fitted.predict_proba(select_rows(X, test)) for fitted in (plain, completed))
    return first, second, test


def compare_scores(observed: Any, completed: Any, labels: Labels, seed: int) -> Benefit:
    """Compare the scores [N, L] of both models on known entries; the interval is a bootstrap over items."""
    criterion = model_choice.default(labels)
    pair = np.asarray(observed), np.asarray(completed)
    rng = np.random.default_rng(seed)
    differences = []
    for _ in range(BOOTSTRAP_DRAWS):
        rows = rng.integers(len(labels), size=len(labels))
        drawn = Labels.from_ternary(labels.rows(rows), names=labels.names)
        before, after = (model_choice.score(criterion, scores[rows], drawn) for scores in pair)
        differences.append(after - before)
    low, high = np.nanquantile(differences, [0.025, 0.975])
    before, after = (model_choice.score(criterion, scores, labels) for scores in pair)
    return Benefit(criterion, before, after, float(low), float(high))
