"""A model that learned nothing on its own training data says so."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import partly
from partly.engine.training_check import training_auc
from partly.errors import LearnedNothingWarning


def separable(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(120, 4)).astype(np.float32)
    return x, (x[:, :2] > 0).astype(float)


def hide(y: np.ndarray, share: float) -> np.ndarray:
    return np.where(np.random.default_rng(1).random(y.shape) < share, np.nan, y)


@pytest.mark.parametrize("method", ["auto", "bce", "em"])
def test_a_model_of_constant_features_warns(method: str) -> None:
    _, y = separable()
    with pytest.warns(LearnedNothingWarning, match=rf"{method}.*learned nothing.*0\.5"):
        partly.Classifier(method, epochs=1, progress=False).fit(np.ones((len(y), 3), np.float32), hide(y, 0.3))


@pytest.mark.parametrize("labels", [hide(separable()[1], 0.3), partly.Labels.from_positives(separable()[1])])
def test_a_model_that_learned_does_not_warn(labels: object) -> None:
    x, _ = separable()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        partly.Classifier("auto", progress=False).fit(x, labels)


def test_only_yes_learned_as_yes_warns() -> None:
    """`bce` on labels of which only yes is known says yes to everything."""
    x, y = separable()
    with pytest.warns(LearnedNothingWarning):
        partly.Classifier("bce", head="linear", progress=False).fit(x, partly.Labels.from_positives(y))


def test_per_label_warns_too() -> None:
    x, y = separable()
    with pytest.warns(LearnedNothingWarning, match="DummyClassifier"):
        partly.PerLabel(DummyClassifier(), progress=False).fit(x, hide(y, 0.3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        partly.PerLabel(LogisticRegression(), progress=False).fit(x, hide(y, 0.3))


def test_training_auc_is_the_mean_over_labels_on_known_entries() -> None:
    rng = np.random.default_rng(3)
    y, scores = hide((rng.random((50, 3)) < 0.4).astype(float), 0.5), rng.random((50, 3))
    by_label = [roc_auc_score(y[k, j], scores[k, j]) for j in range(3) for k in [~np.isnan(y[:, j])]]
    auc = training_auc(partly.Labels.from_nan(y), lambda rows: scores[rows])
    assert auc == pytest.approx(np.mean(by_label), abs=1e-12)


def test_training_auc_scores_at_most_the_given_number_of_items() -> None:
    rng, counts = np.random.default_rng(4), []

    def predict(rows: np.ndarray) -> np.ndarray:
        counts.append(len(np.unique(rows)))
        return rng.random((len(rows), 2))

    training_auc(partly.Labels.from_full(rng.integers(0, 2, (500, 2))), predict, max_items=100)
    assert counts == [100]


def test_training_auc_is_undefined_without_both_sides() -> None:
    assert math.isnan(training_auc(partly.Labels.from_full([[1], [1]]), lambda rows: np.ones((len(rows), 1))))
