"""One scikit-learn classifier per label (binary relevance), fitted to the known entries of that label.

When to use
    As the reference baseline on fixed features: tuned logistic regression is hard to beat. `partly.PerLabel` accepts
    any scikit-learn classifier.

Formula
    for each label: a scikit-learn classifier of its known entries (unknown ignored, or negative)

Reference
    None; the standard baseline "binary relevance". `bags` is bagging of unlabeled entries: F. Mordelet, J.-P. Vert. A
    bagging SVM to learn from positive and unlabeled examples. Pattern Recognition Letters 37, 2014.

Known negatives
    Ordinary negatives. Unknown entries are ignored (`unknown=ignore`) or negatives of weight `weight_unknown` (`no`).
    `auto` ignores them, except for labels with known positives but no known negatives.

Differences from the paper
    Features are standardized for every estimator, and images are rows of pixels. A label with only one known value
    predicts its smoothed share as a constant. Head, optimizer and learning rate are not used. A step is one label,
    and one epoch fits all. `c` is scikit-learn's C for logistic regression. `tuned-logistic-regression` chooses it per
    label by three-fold cross-validation, and uses `c` for labels with too few entries. Fitted estimators are stored as
    skops archives, not as pickles.

Defaults
    c = 0.01 was chosen by validation. Nothing else was searched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from partly.binary_relevance import Entries, EstimatorStore, collect_entries, fit_label, label_columns, log_odds
from partly.clock import Clock, seed_for
from partly.errors import within
from partly.method import About, Method, Task
from partly.networks import Standardize
from partly.pool import Pool

ABOUT = About(search={"c": (0.0001, 1.0)})
FOLDS, PENALTIES = 3, (1e-4, 1e-3, 1e-2, 0.1, 1.0)
Name = Literal[
    "logistic-regression", "tuned-logistic-regression", "extra-trees", "random-forest", "hist-gradient-boosting", "mlp"
]


class PerLabel(Method):
    default_epochs = 1
    own_penalty = "c"
    supports_distributed = False
    kinds = ("features", "pictures")
    seeds: Tensor  # of each label's estimator, [L]
    loss: Tensor  # training loss of each label, [L]

    def __init__(
        self,
        task: Task,
        *,
        estimator: Name = "logistic-regression",
        c: float = 0.01,
        unknown: Literal["auto", "ignore", "no"] = "auto",
        weight_unknown: float = 1.0,
        bags: int = 0,
    ) -> None:
        super().__init__(task)
        within(1e-9, math.inf, c=c)
        within(0, math.inf, weight_unknown=weight_unknown, bags=bags)
        self.estimator, self.c = estimator, c
        self.unknown, self.weight_unknown, self.bags = unknown, weight_unknown, bags
        self.standardise = Standardize(task.items.statistics.keeping_size, task.items.shape)
        self.shelf = EstimatorStore(task.labels, math.prod(task.items.shape))
        seeds = [seed_for(task.config.seed, "per-label", label) for label in range(task.labels)]
        self.register_buffer("seeds", torch.tensor(seeds, dtype=torch.int64))
        self.register_buffer("loss", torch.zeros(task.labels))

    def sample_weight_support(self) -> str:
        return "entries"

    def steps(self, pool: Pool) -> int:
        return self.task.labels

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        if clock.epoch == 0 and clock.step < self.task.labels:
            x = self._features(pool)
            z = label_columns(pool.labels)
        for label in range(clock.step, self.task.labels):
            if clock.epoch == 0:
                weights = None if pool.weights is None else pool.weights[:, label % pool.weights.shape[1]]
                entries = collect_entries(z(label), self.unknown, self.weight_unknown).reweight(weights)
                self._fit(label, x, entries, pool.labels.names[label])
            yield {"loss": self.loss[label].item()}

    def _features(self, pool: Pool) -> Any:
        x = self.standardized_features(pool.items, pool.batch_size, self.standardise)
        return x.reshape(len(pool), -1) if x.ndim > 2 else x

    def _fit(self, label: int, x: Any, entries: Entries, name: str) -> None:
        def take(rows: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
            return x[rows].astype(np.float64)  # only selected rows are float64, which halves the memory

        unfitted = ESTIMATORS[self.estimator](self.c, min(FOLDS, int(entries.yes.sum()), int((~entries.yes).sum())))
        fitted = fit_label(unfitted, take, entries, self.bags, int(self.seeds[label]), f"label {name!r}")
        self.shelf.put(label, fitted)
        self.loss[label] = fitted.loss(take, entries)

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        rows = self.standardise(x).flatten(1).double().cpu().numpy()
        p = [self.shelf.get(label).probabilities(rows, len(rows)) for label in range(self.task.labels)]
        return torch.from_numpy(log_odds(np.stack(p, axis=1)).astype(np.float32)).to(x.device)


# ------------------------------------- the estimators that there are; folds: how many the entries of a label allow


def _logistic_regression(c: float, folds: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=c, max_iter=1000)


def _make_tuned_logistic_regression(c: float, folds: int) -> Any:
    from sklearn.linear_model import LogisticRegressionCV

    if folds < 2:
        return _logistic_regression(c, folds)
    how: dict[str, Any] = {"l1_ratios": (0.0,), "use_legacy_attributes": False}  # the default of later versions
    return LogisticRegressionCV(Cs=PENALTIES, cv=folds, scoring="neg_log_loss", max_iter=1000, **how)


def _extra_trees(c: float, folds: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(200, min_samples_leaf=2)


def _random_forest(c: float, folds: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(200, min_samples_leaf=2)


def _hist_gradient_boosting(c: float, folds: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(early_stopping=False)


def _mlp(c: float, folds: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((100,), alpha=1e-2, max_iter=500)


ESTIMATORS = {
    "logistic-regression": _logistic_regression,
    "tuned-logistic-regression": _make_tuned_logistic_regression,
    "extra-trees": _extra_trees,
    "random-forest": _random_forest,
    "hist-gradient-boosting": _hist_gradient_boosting,
    "mlp": _mlp,
}
