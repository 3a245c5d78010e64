"""Input of the checks: labels, their items, a test part, and results that several checks share."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from partly.calibration.judged import shares
from partly.errors import SettingError
from partly.estimators.classifier import Classifier
from partly.items import Items
from partly.labels import Labels
from partly.networks import backbones
from partly.registry import Needs

MIN_ITEMS = 50  # for a check that trains a model
BUDGET = "10x"  # of `auto`: enough for all but very large forests
FOLDS = 5  # of a method that has no such scores by itself
BLOCK = 1024  # items hashed at a time


@dataclass(frozen=True, eq=False)
class CheckContext:
    """Labels, and where given, their items and those of a test part."""

    labels: Labels
    items: Items | None = None
    test_items: Items | None = None
    method: str = "auto"
    seed: int = 0

    def lacks(self, needs: Needs) -> str:
        """Return why a check with these needs (`About.needs`) cannot run; '' where it can."""
        if needs == "labels":
            return ""
        if self.items is None:
            return "needs the items: give features"
        if needs == "test" and self.test_items is None:
            return "needs a test part"
        if needs == "features" and (reason := self._unlearnable()):
            return reason
        if needs == "features" and len(self.items) < MIN_ITEMS:
            return f"needs {MIN_ITEMS} items or more to tell anything"
        if needs == "features" and not self.labels.counts()[0].any():
            return "needs known yes to learn from"
        return ""

    def _unlearnable(self) -> str:
        """Return why there are no features to learn from; '' where there are, or a default backbone makes them."""
        assert self.items is not None
        try:
            made = self.items.kind == "features" or backbones.default(self.items) is not None
        except SettingError as error:
            return f"needs features: {error}"
        return "" if made else f"needs features, and these are {self.items.kind} that no pretrained network is for"

    @cached_property
    def features(self) -> Items:
        """Features that models learn from: the items, or those that the default backbone makes of them."""
        assert self.items is not None
        return Classifier(self.method, progress=False, seed=self.seed).precompute_features(self.items)

    @cached_property
    def scores(self) -> npt.NDArray[np.floating]:
        """Logits of every entry by a model that has not seen the item, [N, L]."""
        budget = BUDGET if self.method == "auto" else None
        model = Classifier(self.method, progress=False, budget=budget, folds=FOLDS, seed=self.seed)
        return model.fit(self.features, self.labels).out_of_fold_

    @cached_property
    def shares(self) -> npt.NDArray[np.floating]:
        """The estimated share of yes of each label, [L]."""
        return shares(self.scores, self.labels)

    @cached_property
    def fingerprints(self) -> list[bytes]:
        return fingerprints(self.items)

    @cached_property
    def groups(self) -> list[list[int]]:
        """Positions of identical items, in groups of two or more."""
        same = defaultdict(list)
        for position, fingerprint in enumerate(self.fingerprints):
            same[fingerprint].append(position)
        return [group for group in same.values() if len(group) > 1]


def fingerprints(items: Items | None) -> list[bytes]:
    """Hash each item: its numbers, as a network gets them."""
    hashes: list[bytes] = []
    for start in range(0, 0 if items is None else len(items), BLOCK):
        assert items is not None
        rows = items.take(slice(start, start + BLOCK)).contiguous().numpy()
        hashes += [hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=16).digest() for row in rows]
    return hashes
