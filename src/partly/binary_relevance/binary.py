"""A fitted label: one estimator, the mean of several (bags), or a constant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from partly.binary_relevance.archive import pack, unpack
from partly.binary_relevance.entries import Entries, Positions
from partly.binary_relevance.safety import check_classifier
from partly.clock import seed_for
from partly.errors import CheckpointError, DataError, SettingError

Floats = npt.NDArray[np.float64]
Take = Callable[[Positions], Any]  # selects rows of items for an estimator
MIN_PROBABILITY = 1e-6  # probabilities are clipped to [MIN_PROBABILITY, 1 - MIN_PROBABILITY]


@dataclass(frozen=True)
class LabelModel:
    """Probability of a label: the mean of its estimators, or a constant if there are none."""

    constant: float | None
    estimators: tuple[Any, ...] = ()

    def probabilities(self, x: Any, count: int) -> Floats:
        """Return the probability of yes for the `count` items x, [N]."""
        if not self.estimators:
            return np.full(count, self.constant, np.float64)
        mean: Floats = np.mean(
            [_probabilities(estimator, x) for estimator in self.estimators], axis=0, dtype=np.float64
        )
        return mean

    def loss(self, take: Take, entries: Entries) -> float:
        """Return the weighted mean cross-entropy on the training entries."""
        if not len(entries.rows):
            return 0.0
        p = np.clip(self.probabilities(take(entries.rows), len(entries.rows)), MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
        return float(np.average(-np.log(np.where(entries.yes, p, 1.0 - p)), weights=entries.weights))

    def to_bytes(self) -> bytes:
        return pack({"constant": self.constant, "estimators": list(self.estimators)})

    @classmethod
    def from_bytes(
        cls, content: bytes, where: str, trusted: Iterable[str] = (), way_out: str = "", width: int | None = None
    ) -> LabelModel:
        """Load the result of `to_bytes` from an untrusted file. width: number of features, if known."""
        loaded = unpack(content, where, trusted, way_out)
        whole = isinstance(loaded, dict) and set(loaded) == {"constant", "estimators"}
        if not whole or not isinstance(loaded["estimators"], list):
            raise CheckpointError(f"{where}: not a label that was saved. Restore it from a copy.")
        constant, estimators = loaded["constant"], tuple(loaded["estimators"])
        if not estimators and not (isinstance(constant, float) and 0 <= constant <= 1):
            raise CheckpointError(f"{where}: neither a classifier nor a probability. Restore it from a copy.")
        for estimator in estimators:
            check_classifier(estimator, width, where)
        return cls(constant, estimators)


def fit_label(estimator: Any, take: Take, entries: Entries, bags: int, seed: int, where: str) -> LabelModel:
    """Fit one label: a clone of the estimator, or one per bag. `where` names the label in errors."""
    if not entries.has_both_classes:
        return LabelModel(entries.prior)
    if not bags or not entries.assumed.any():
        return LabelModel(None, (_fit(estimator, take, entries, seed, where),))
    fitted = []
    for number in range(bags):
        bag_seed = seed_for(seed, "bag", number)
        bag = entries.bag(np.random.default_rng(bag_seed))
        fitted.append(_fit(estimator, take, bag, bag_seed, where))
    return LabelModel(None, tuple(fitted))


def log_odds(p: Floats) -> Floats:
    logits: Floats = logit(np.clip(p, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY))
    return logits


def _fit(estimator: Any, take: Take, entries: Entries, seed: int, where: str) -> Any:
    unfitted = _clone_with_seed(estimator, seed)
    weights: dict[str, Floats] = {}
    if (entries.weights != 1.0).any():
        argument = _weight_argument(unfitted)
        if argument is None:
            raise SettingError(
                f"{where}: {type(estimator).__name__} takes no sample_weight, and some entries count less than others. "
                "Take an estimator that does, or weight_unknown=1, no sample_weight and no soft pseudo-labels."
            )
        weights[argument] = entries.weights
    try:
        return unfitted.fit(take(entries.rows), entries.yes.astype(np.int64), **weights)
    except ValueError as error:
        yes = int(entries.yes.sum())
        raise DataError(f"{where} ({yes} yes, {len(entries.yes) - yes} no): {error}") from error


def _probabilities(estimator: Any, x: Any) -> Floats:
    if hasattr(estimator, "predict_proba"):
        found: Floats = estimator.predict_proba(x)[:, list(estimator.classes_).index(1)]
        return found
    if hasattr(estimator, "decision_function"):  # not a probability, but it ranks like one
        squeezed: Floats = expit(estimator.decision_function(x))
        return squeezed
    raise SettingError(
        f"{type(estimator).__name__} has neither predict_proba nor decision_function: it gives no scores. "
        "Take another one, or wrap it in sklearn.calibration.CalibratedClassifierCV."
    )


def _clone_with_seed(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy, with this seed where no random_state is set."""
    from sklearn.base import clone

    copy = clone(estimator)
    names = [name for name in copy.get_params() if name.rpartition("__")[2] == "random_state"]
    parameters = copy.get_params()
    return copy.set_params(**{name: seed % (1 << 32) for name in names if parameters[name] is None})


def _weight_argument(estimator: Any) -> str | None:
    """Return the name of the weight argument of `fit`, or None. Pipelines and searches pass it on."""
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = _weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        return _weight_argument(estimator.estimator)
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
