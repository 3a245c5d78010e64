"""Input and output of the checks: `CheckContext` and `Finding`."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from partly.calibration.samples import estimate_shares
from partly.errors import SettingError
from partly.estimators.classifier import Classifier
from partly.items import Items
from partly.labels import Labels
from partly.networks import backbones
from partly.registry import Needs

MIN_ITEMS = 50  # for a check that trains a model
AUTO_BUDGET = "10x"  # of `auto`: enough for all but very large forests
FOLDS = 5  # for a method without out-of-fold scores of its own
ITEMS_PER_BLOCK = 1024  # hashed at a time

Level = Literal["problem", "warning", "note", "fine"]  # fine: worth reporting, nothing to do


@dataclass(frozen=True)
class Finding:
    """Result of a check: the finding (`words`), what to do about it (`remedy`), and where it applies."""

    level: Level
    words: str
    remedy: str = ""
    labels: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    entries: tuple[dict[str, Any], ...] = ()  # item, label, given, probability

    def to_dict(self, check: str) -> dict[str, Any]:
        """Return the non-empty fields as plain data for JSON."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {"check": check} | {name: value for name, value in values.items() if value}


@dataclass(frozen=True, eq=False)
class CheckContext:
    """Labels, with their items and the items of a test set where given."""

    labels: Labels
    items: Items | None = None
    test_items: Items | None = None
    method: str = "auto"
    seed: int = 0

    def find_missing_input(self, needs: Needs) -> str:
        """Return why a check with these needs (`About.needs`) cannot run; '' where it can."""
        if needs == "labels":
            return ""
        if self.items is None:
            return "needs the items: give features"
        if needs == "test" and self.test_items is None:
            return "needs a test set"
        if needs == "features" and (reason := self._find_missing_features()):
            return reason
        if needs == "features" and len(self.items) < MIN_ITEMS:
            return f"needs at least {MIN_ITEMS} items"
        if needs == "features" and not self.labels.counts()[0].any():
            return "needs known yes to learn from"
        return ""

    def _find_missing_features(self) -> str:
        """Return why there are no features to learn from; '' where there are, or a default backbone computes them."""
        assert self.items is not None
        try:
            has_features = self.items.kind == "features" or backbones.default(self.items) is not None
        except SettingError as error:
            return f"needs features: {error}"
        return "" if has_features else f"needs features, and no pretrained network is available for {self.items.kind}"

    @cached_property
    def features(self) -> Items:
        """Features that models learn from: the items, or the output of the default backbone."""
        assert self.items is not None
        return Classifier(self.method, progress=False, seed=self.seed).precompute_features(self.items)

    @cached_property
    def scores(self) -> npt.NDArray[np.floating]:
        """Out-of-fold logits, [N, L]."""
        budget = AUTO_BUDGET if self.method == "auto" else None
        model = Classifier(self.method, progress=False, budget=budget, folds=FOLDS, seed=self.seed)
        return model.fit(self.features, self.labels).out_of_fold_

    @cached_property
    def shares(self) -> npt.NDArray[np.floating]:
        """Estimated share of yes of each label, [L]."""
        return estimate_shares(self.scores, self.labels)

    @cached_property
    def fingerprints(self) -> list[bytes]:
        return compute_fingerprints(self.items)

    @cached_property
    def groups(self) -> list[list[int]]:
        """Positions of identical items, in groups of two or more."""
        positions = defaultdict(list)
        for position, fingerprint in enumerate(self.fingerprints):
            positions[fingerprint].append(position)
        return [group for group in positions.values() if len(group) > 1]


def compute_fingerprints(items: Items | None) -> list[bytes]:
    """Hash each item: its numbers, as a network gets them."""
    hashes: list[bytes] = []
    for start in range(0, 0 if items is None else len(items), ITEMS_PER_BLOCK):
        assert items is not None
        rows = items.take(slice(start, start + ITEMS_PER_BLOCK)).contiguous().numpy()
        hashes += [hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=16).digest() for row in rows]
    return hashes
