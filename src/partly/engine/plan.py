"""Plan: a resolved configuration with its prepared data. `fit` trains it, and computes nothing of it again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from partly.config import ResolvedConfig
from partly.engine.resolution import build_method
from partly.engine.training import Validation
from partly.items import Items, prepare_for_training
from partly.labels import Labels
from partly.labels.weights import Weights
from partly.method import Method
from partly.method.prior import Prior


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that training needs for entries, known before anything is allocated."""

    entries: int  # at the peak: state of the method, working memory, and scores of the validation part
    beliefs: int  # one copy of the beliefs

    def total(self, copies: int = 0) -> int:
        """Return the peak with so many copies of the beliefs: one if they stay in memory, one if a start is read. All
        are added up, since freed memory is not always returned."""
        return self.entries + copies * self.beliefs


@dataclass(frozen=True)
class Plan:
    """A resolved configuration with its data: the result of `resolve`."""

    config: ResolvedConfig  # nothing is left open
    items: Items  # as the network takes them: features computed, encoded and conditioned, images at their size
    labels: Labels  # with everything that the hierarchy implies
    validation: Validation | None
    weights: Weights | None  # of items [N, 1] or of entries [N, L]
    reason: str  # for the chosen method
    memory: MemoryEstimate
    prior: Prior | None = None  # of the teachers, for methods that hold beliefs

    def build(self) -> Method:
        """Return the untrained method."""
        config, labels = self.config, self.labels
        return build_method(config, self.items, labels.shape[1], labels, weights=self.weights, prior=self.prior)

    def subset(self, rows: npt.NDArray[np.int64]) -> Plan:
        """Return the plan for some of the items, without a validation part."""
        weights = None if self.weights is None else self.weights[rows]
        items, labels = prepare_for_training(self.items[rows]), self.labels[rows]
        prior = None if self.prior is None else self.prior.take(rows)
        return replace(self, items=items, labels=labels, validation=None, weights=weights, prior=prior)
