"""What is examined: labels, the items they are of, a test part; and what several checks need of them, made once."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from partly.calling.judged import shares
from partly.errors import SettingError
from partly.estimator import Classifier
from partly.items import Items
from partly.labels import Labels
from partly.networks import backbones

FEWEST = 50  # items from which on scores are made of them
BUDGET = "10x"  # of `auto`: enough for all but very large forests
FOLDS = 5  # of a method that has no such scores by itself
BLOCK = 1024  # items looked at together


@dataclass(frozen=True, eq=False)
class Patient:
    """Labels, and where they are given the items and the test part's."""

    labels: Labels
    items: Items | None = None
    test_items: Items | None = None
    method: str = "auto"
    seed: int = 0

    def lacks(self, needs: str) -> str:
        """Why a check that needs labels, items, features or a test part cannot be made; '' where it can."""
        if needs == "labels":
            return ""
        if self.items is None:
            return "needs the items: give features"
        if needs == "test" and self.test_items is None:
            return "needs a test part"
        if needs == "features" and (reason := self._unlearnable()):
            return reason
        if needs == "features" and len(self.items) < FEWEST:
            return f"needs {FEWEST} items or more to tell anything"
        if needs == "features" and not self.labels.counts()[0].any():
            return "needs known yes to learn from"
        return ""

    def _unlearnable(self) -> str:
        """Why no features can be learned from; '' where there are some, or a default backbone makes them."""
        assert self.items is not None
        try:
            made = self.items.kind == "features" or backbones.default(self.items) is not None
        except SettingError as error:
            return f"needs features: {error}"
        return "" if made else f"needs features, and these are {self.items.kind} that no pretrained network is for"

    @cached_property
    def features(self) -> Items:
        """What models learn from here: the items, or what the default backbone makes of them, once."""
        assert self.items is not None
        return Classifier(self.method, progress=False, seed=self.seed).first_stage(self.items)

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
    def prints(self) -> list[bytes]:
        """A fingerprint of each item."""
        return prints(self.items)

    @cached_property
    def groups(self) -> list[list[int]]:
        """Positions of items that are the same, where there are several."""
        same = defaultdict(list)
        for position, one in enumerate(self.prints):
            same[one].append(position)
        return [group for group in same.values() if len(group) > 1]


def prints(items: Items | None) -> list[bytes]:
    """A fingerprint of each item: of its numbers, as a network gets them."""
    found: list[bytes] = []
    for start in range(0, 0 if items is None else len(items), BLOCK):
        assert items is not None
        rows = items.take(slice(start, start + BLOCK)).contiguous().numpy()
        found += [hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=16).digest() for row in rows]
    return found
