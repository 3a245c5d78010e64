"""What is completed: the chance of every entry to be yes, by who has not seen the item, and what people said of which.

Chances are cross-fitted twice. The scores of an item, of its known and of its unknown entries alike, come from a model
that has not seen the item; and the calibration that makes chances of them, label by label, from items of other parts.
So the known entries of an item had no say in its chances, and stand beside its unknown ones as equals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from sklearn.base import clone

from partly.calibration import calibration_of
from partly.clock import seed_for
from partly.diagnosis.checks import DISPERSION_RISK, dispersion
from partly.errors import SettingError
from partly.estimators.classifier import Classifier
from partly.labels import Hierarchy, Labels
from partly.model_selection import cross_val_predict

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

PARTS = 3  # of the items, for calibration
FOLDS = 5  # of a model that has no scores of its own of items it has not seen
RARELY = 5.0  # a label known so many times less often than labels are on the whole is left alone
SURE = 1e-12  # that a probability is kept away from 0 and 1, to be a logit


@dataclass(frozen=True, eq=False)
class EntryScores:
    """All entries [N, L]: the `chance` to be yes, what people `said` (int8), and which are `open` to be filled in.

    What follows from a hierarchy is neither: it is known, but whether it is known depends on what it is. pooled: labels
    without a calibration of their own [L]; audited: whether known entries do not speak for unknown ones.
    """

    chance: Floats
    said: npt.NDArray[np.int8]
    open: Bools
    pooled: Bools
    names: tuple[str, ...]
    audited: bool = False

    @property
    def share(self) -> Floats:
        """How much of each label people spoke of, [L]."""
        return np.asarray((self.said != 0).mean(axis=0), np.float64)

    @property
    def weight(self) -> Floats:
        """How many entries of each label one that is known stands for, [L]; 0 where none is known."""
        return np.divide(1, self.share, out=np.zeros(len(self.names)), where=self.share > 0)

    @property
    def fills(self) -> Bools:
        """Labels that can be filled in, [L]: of which enough is known to speak for the rest, beside the others, or
        anything at all where answers speak for it. A label of which only yes is known where others have no's is not
        known by chance."""
        if self.audited:
            return np.asarray(self.share > 0)
        one_sided = (self.said == 1).any(axis=0) & ~(self.said == -1).any(axis=0)
        return np.asarray((self.share * RARELY >= self.share.mean()) & ~one_sided)

    @cached_property
    def spread(self) -> bool:
        """Whether known entries are spread over items no less evenly than by chance, and over labels as by chance: then
        each is drawn by itself. By the tests of `partly doctor`."""
        known = self.said != 0
        per_item, per_label = known.sum(axis=1), known.sum(axis=0)
        by_item = dispersion(per_item, per_label / len(known))
        by_label = dispersion(per_label, per_item / known.shape[1])
        return all(test is None or test[0] >= DISPERSION_RISK or test[1] < 1 for test in (by_item, by_label))

    def of(self, value: int) -> tuple[Floats, Bools, Bools]:
        """For yes (1) or for no (-1): the chance of it, where it was said, and where the other was said."""
        chance = self.chance if value == 1 else 1 - self.chance
        return chance, self.said == value, self.said == -value


def board_of(
    scores: Floats, said: Labels, known: Labels, hierarchy: Hierarchy | None, audited: bool, seed: int
) -> EntryScores:
    """scores: logits [N, L] by models that have not seen the items; said: by people; known: with all that follows."""
    chance, pooled = chances(scores, said, 1 if audited else PARTS, seed)
    if hierarchy is not None:
        lines = hierarchy.lines(said.names)
        below = chance.copy()
        for child, above in lines:
            below[:, child] = np.minimum(below[:, child], chance[:, above])
        chance = below
    z = said.rows(slice(None))
    return EntryScores(chance, z, known.rows(slice(None)) == 0, pooled, said.names, audited)


def chances(scores: Floats, said: Labels, parts: int, seed: int) -> tuple[Floats, Bools]:
    """The chance of each entry to be yes [N, L], and which labels took the calibration of all labels together [L].

    parts: of the items; those of each have their calibration from the others. One is calibrated by itself, which is
    enough where known entries have no say in what is certified.
    """
    part = np.random.default_rng(seed_for(seed, "calibrate")).permutation(np.arange(len(said)) % parts)
    chance, pooled = np.empty(scores.shape), np.zeros(scores.shape[1], bool)
    for k in range(parts):
        out = np.flatnonzero(part == k)
        seen = np.flatnonzero(part != k) if parts > 1 else out
        found = calibration_of(scores[seen], said[seen], "platt")
        chance[out] = expit(found(scores[out]))
        pooled |= [label.map_from != "own" for label in found.labels]
    return chance, pooled


def held_out_scores(model: Any, X: Any, labels: Labels, folds: int | None) -> tuple[Any, Floats]:
    """A model that is fitted to everything, and logits [N, L] of all entries by models that have not seen the item:
    the method's own, where it has such and `folds` is None, else those of so many clones."""
    fitted = clone(model).fit(X, labels)
    if folds is None and isinstance(fitted, Classifier) and fitted.fitted_.out_of_fold is not None:
        return fitted, np.asarray(fitted.out_of_fold_, np.float64)
    apart = clone(model)
    if getattr(apart, "run_dir", None) is not None:
        apart.set_params(run_dir=None)  # the folder is that of the model itself
    found = cross_val_predict(apart, X, labels, cv=folds or FOLDS, method="predict_proba")
    return fitted, np.asarray(logit(np.clip(np.asarray(found, np.float64), SURE, 1 - SURE)))


def check_model(model: Any) -> None:
    """Refuse what cannot be cloned and fitted."""
    if not (hasattr(model, "fit") and hasattr(model, "predict_proba") and hasattr(model, "get_params")):
        raise SettingError(
            f"model must be a partly.Classifier, a partly.PerLabel or alike, which is fitted here; got {model!r:.60}."
        )
