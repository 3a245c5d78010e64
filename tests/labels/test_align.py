"""Labels beside scores and models: columns are matched by name, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import partly
from partly import Classifier, Labels, PerLabel, metrics
from partly.calibration import fit_calibration
from partly.errors import LabelError
from partly.labels.align import align_columns

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = pd.DataFrame((X[:, :3] > 0).astype(float), columns=["x", "y", "z"])
Y.iloc[::5, 0] = np.nan
SCORES = pd.DataFrame(np.clip(0.5 + X[:, :3] / 8, 0, 1), columns=["x", "y", "z"])
SHUFFLED = ["z", "x", "y"]


def classifier() -> Classifier:
    return Classifier("bce", head="linear", progress=False)


MODELS: dict[str, Callable[[], Any]] = {
    "Classifier": lambda: classifier().fit(X, Y),
    "PerLabel": lambda: PerLabel(LogisticRegression(), progress=False).fit(X, Y),
    "pipeline": lambda: make_pipeline(StandardScaler(), classifier()).fit(X, Y),
    "search": lambda: GridSearchCV(classifier(), {"seed": [0]}, cv=KFold(2), scoring=metrics.scorer()).fit(X, Y),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("wrap", [lambda y: y, Labels.from_nan], ids=["table", "Labels"])
def test_a_scorer_matches_labels_by_name(name: str, wrap: Callable[[Any], Any]) -> None:
    model = MODELS[name]()
    for score in ("mAP", "OF1"):
        scorer = metrics.scorer(score)
        assert scorer(model, X, wrap(Y[SHUFFLED])) == scorer(model, X, wrap(Y)) > 0.9
    for wrong in (Y.rename(columns={"z": "w"}), Y[["x", "y"]], Y.assign(w=0.0)):
        with pytest.raises(LabelError, match="labels of training"):
            metrics.scorer()(model, X, wrap(wrong))


def test_score_matches_labels_by_name() -> None:
    for model in (MODELS["Classifier"](), MODELS["PerLabel"]()):
        assert model.score(X, Y[SHUFFLED]) == model.score(X, Y)
        assert model.score(X, Y.to_numpy()) == model.score(X, Y)  # without names, position counts


SCORED: dict[str, Callable[[Any, Any], Any]] = {
    "evaluate": lambda s, y: metrics.evaluate(s, y)["mAP"],
    "average_precision": lambda s, y: metrics.average_precision(s, y).tolist(),
    "by_label": lambda s, y: metrics.by_label(s, y, [0.4, 0.5, 0.6])["recall"].tolist(),
    "by_group": lambda s, y: metrics.by_group(s, y, [3, 2, 1], groups=3).tolist(),
    "priors": lambda s, y: partly.priors.estimate(s, y).tolist(),
    "criterion": lambda s, y: partly.model_choice.score("log-loss", s, y),
    "calibration": lambda s, y: fit_calibration(s, y, "platt", "f1").thresholds.tolist(),
}


@pytest.mark.parametrize("name", SCORED)
def test_scores_with_names_meet_labels_by_name(name: str) -> None:
    """What comes back is in the order of the scores."""
    of = SCORED[name]
    expected = of(SCORES.to_numpy(), Y.to_numpy())
    assert of(SCORES, Y[SHUFFLED]) == expected
    assert of(SCORES, Labels.from_nan(Y[SHUFFLED])) == expected
    assert of(SCORES, Y.to_numpy()) == expected  # names that nobody gave contradict none
    with pytest.raises(LabelError, match="missing, 1:\n  'z'\nnot among the scores, 1:\n  'w'"):
        of(SCORES, Y.rename(columns={"z": "w"}))


def test_validation_known_and_calibration_are_matched_by_name() -> None:
    one, other = (classifier().fit(X, Y, validation=(X, y)) for y in (Y, Y[SHUFFLED]))
    assert one.history_ == other.history_
    calls = [partly.calibrate(one, X, y, "platt", thresholds="f1").thresholds_.tolist() for y in (Y, Y[SHUFFLED])]
    assert calls[0] == calls[1]
    teller = Classifier("bce", head="label-transformer", epochs=1, progress=False).fit(X, Y)
    told = [teller.predict_proba(X, known=y) for y in (Y, Y[SHUFFLED])]
    assert (told[0] == told[1]).all()


def test_weights_pseudo_labels_and_scores_are_matched_by_name() -> None:
    weights = pd.DataFrame(rng.random((60, 3)), columns=Y.columns)
    one, other = (classifier().fit(X, Y, sample_weight=w).predict_proba(X) for w in (weights, weights[SHUFFLED]))
    assert (one == other).all()
    part = {"pseudo_labels": SCORES, "scores": SCORES}
    mixed = {name: table[SHUFFLED] for name, table in part.items()}
    fits = [PerLabel(LogisticRegression(), progress=False).fit(X, Y, **given) for given in (part, mixed)]
    found = [model.predict_proba(X, scores=s) for model, s in zip(fits, (SCORES, SCORES[SHUFFLED]), strict=True)]
    assert (found[0] == found[1]).all()


def test_answers_of_complete_are_matched_by_name() -> None:
    said = Labels.from_nan(Y.where(rng.random(Y.shape) < 0.5))
    answers = Labels.from_nan(Y.where(~np.isnan(said.to_nan())))
    done = [
        partly.complete(classifier(), X, said, precision=0.8, missing="not-at-random", answers=align_columns(a, names))
        for a, names in ((answers, said.names), (answers, tuple(SHUFFLED)))
    ]
    assert done[0].labels == done[1].labels


def test_numbers_for_names() -> None:
    """Columns that are numbered are names too, where they are the same numbers."""
    numbered = Labels.from_nan(Y.to_numpy()[:, [2, 0, 1]], names=["2", "0", "1"])
    assert align_columns(numbered, ("0", "1", "2")) == Labels.from_nan(Y.to_numpy())
    named = Labels.from_nan(Y)
    assert align_columns(named, ("0", "1", "2")) is named
    with pytest.raises(LabelError, match="has 2 labels, and there are 3 labels of training"):
        align_columns(Labels.from_nan(Y.to_numpy()[:, :2]), ("x", "y", "z"))
