"""Cross-fitted probabilities of all entries, and the observed values they are tested on.

Probabilities are cross-fitted twice: the scores of an item come from a model that was not trained on it, and the
calibration that turns them into probabilities comes from other items. The known entries of an item therefore have no
influence on its probabilities, and known and unknown entries are exchangeable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from sklearn.base import clone

from partly.calibration import fit_calibration
from partly.clock import seed_for
from partly.doctor.checks import DISPERSION_RISK, measure_dispersion
from partly.errors import SettingError
from partly.estimators.classifier import Classifier
from partly.labels import Hierarchy, Labels
from partly.model_selection import cross_val_predict

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

CALIBRATION_PARTS = 3  # of the items
FOLDS = 5  # for a model without out-of-fold scores of its own
MAX_RARITY = 5.0  # labels known this many times less often than the average are not filled in
MIN_DISTANCE = 1e-12  # of a probability from 0 and 1, to have a finite logit


@dataclass(frozen=True, eq=False)
class EntryScores:
    """All entries [N, L]: the probability of yes (`chance`), the `observed` values, and the `candidates` to fill in.

    Entries that follow from a hierarchy are neither observed nor candidates: whether they are known depends on their
    value; `implied` has their values. pooled: labels without a calibration of their own, [L]; audited: whether known
    entries are not a random sample, so that answers decide.
    """

    chance: Floats
    observed: npt.NDArray[np.int8]
    candidates: Bools
    pooled: Bools
    names: tuple[str, ...]
    audited: bool = False
    implied: npt.NDArray[np.int8] | None = None

    @property
    def known_share(self) -> Floats:
        """Share of each label that is observed, [L]."""
        return np.asarray((self.observed != 0).mean(axis=0), np.float64)

    @property
    def weight(self) -> Floats:
        """Number of entries that an observed one stands for, [L]; 0 where none is observed."""
        return np.divide(1, self.known_share, out=np.zeros(len(self.names)), where=self.known_share > 0)

    @property
    def fillable(self) -> Bools:
        """Labels that can be filled in, [L].

        Without an audit, enough entries must be known compared with other labels, and not only yes where other labels
        have known no's: then its entries are not missing at random.
        """
        if self.audited:
            return np.asarray(self.known_share > 0)
        one_sided = (self.observed == 1).any(axis=0) & ~(self.observed == -1).any(axis=0)
        return np.asarray((self.known_share * MAX_RARITY >= self.known_share.mean()) & ~one_sided)

    @cached_property
    def is_random_sample(self) -> bool:
        """True if observed entries look like a simple random sample, by the dispersion tests of `partly doctor`."""
        known = self.observed != 0
        per_item, per_label = known.sum(axis=1), known.sum(axis=0)
        by_item = measure_dispersion(per_item, per_label / len(known))
        by_label = measure_dispersion(per_label, per_item / known.shape[1])
        return all(test is None or test[0] >= DISPERSION_RISK or test[1] < 1 for test in (by_item, by_label))

    def for_value(self, value: int) -> tuple[Floats, Bools, Bools]:
        """Return the probability of yes (1) or no (-1), where it was observed, and where the opposite was."""
        chance = self.chance if value == 1 else 1 - self.chance
        return chance, self.observed == value, self.observed == -value


def build_entry_scores(
    scores: Floats, observed: Labels, known: Labels, hierarchy: Hierarchy | None, audited: bool, seed: int
) -> EntryScores:
    """Calibrate out-of-fold logits [N, L]. known: the observed labels with everything that follows from them."""
    chance, pooled = calibrate_chances(scores, observed, 1 if audited else CALIBRATION_PARTS, seed)
    if hierarchy is not None:
        bounded = chance.copy()
        for child, ancestors in hierarchy.lines(observed.names):
            bounded[:, child] = np.minimum(bounded[:, child], chance[:, ancestors])
        chance = bounded
    z, everything = observed.rows(slice(None)), known.rows(slice(None))
    implied = np.where(z == 0, everything, 0).astype(np.int8)
    return EntryScores(chance, z, everything == 0, pooled, observed.names, audited, implied)


def calibrate_chances(scores: Floats, observed: Labels, parts: int, seed: int) -> tuple[Floats, Bools]:
    """Return the probability of yes of each entry [N, L], and the labels that took the pooled calibration [L].

    Each part of the items is calibrated on the others. A single part is calibrated on itself, which is enough where
    known entries have no influence on what is certified.
    """
    part = np.random.default_rng(seed_for(seed, "calibrate")).permutation(np.arange(len(observed)) % parts)
    chance, pooled = np.empty(scores.shape), np.zeros(scores.shape[1], bool)
    for k in range(parts):
        target = np.flatnonzero(part == k)
        source = np.flatnonzero(part != k) if parts > 1 else target
        calibration = fit_calibration(scores[source], observed[source], "platt")
        chance[target] = expit(calibration(scores[target]))
        pooled |= [label.map_from != "own" for label in calibration.labels]
    return chance, pooled


def compute_out_of_fold(model: Any, X: Any, labels: Labels, folds: int | None) -> tuple[Any, Floats]:
    """Fit a clone to everything, and return it with out-of-fold logits [N, L].

    The method's own out-of-fold scores are used where it has some and `folds` is None, else those of `folds` clones.
    """
    fitted = clone(model).fit(X, labels)
    if folds is None and isinstance(fitted, Classifier) and fitted.fitted_.out_of_fold is not None:
        return fitted, np.asarray(fitted.out_of_fold_, np.float64)
    probabilities = cross_val_predict(without_run_folder(model), X, labels, cv=folds or FOLDS, method="predict_proba")
    clipped = np.clip(np.asarray(probabilities, np.float64), MIN_DISTANCE, 1 - MIN_DISTANCE)
    return fitted, np.asarray(logit(clipped))


def without_run_folder(model: Any) -> Any:
    """Return a clone that does not write to the run folder of the model."""
    return clone(model).set_params(run_dir=None) if hasattr(model, "run_dir") else clone(model)


def check_model(model: Any) -> None:
    """Refuse what cannot be cloned and fitted."""
    if not (hasattr(model, "fit") and hasattr(model, "predict_proba") and hasattr(model, "get_params")):
        raise SettingError(
            f"model must be a partly.Classifier, a partly.PerLabel or similar, to be fitted here; got {model!r:.60}."
        )
