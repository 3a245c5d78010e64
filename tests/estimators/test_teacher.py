"""`Classifier(teacher=...)`: what a caller may give, with arrays in the place of encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from partly import Classifier, Labels, metrics, teachers
from partly.errors import LabelError, SettingError

NAN = np.nan


def data(items: int = 200, known: float = 0.15, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weak features, truth, labels of which a part is known, and the scores of a good teacher."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(items, 4))
    X = np.c_[hidden + 3 * rng.normal(size=hidden.shape), rng.normal(size=(items, 6))]
    truth = (hidden > 0.8).astype(int)
    Y = np.where(rng.random(truth.shape) < known, truth, NAN)
    return X, truth, Y, 5 + 3 * hidden + 2 * rng.normal(size=hidden.shape)


def mean_ap(scores: Any, truth: np.ndarray) -> float:
    return float(np.nanmean(metrics.average_precision(np.asarray(scores, np.float32), Labels.from_full(truth))))


def test_an_array_teaches_and_new_items_bring_their_own() -> None:
    X, truth, Y, scores = data()
    model = Classifier(teacher=scores[:120], progress=False).fit(X[:120], Y[:120])
    assert model.teacher_ is not None
    assert model.teacher_["pooled"]["teachers"][0] > 0.3
    new, rest = X[120:], truth[120:]
    with pytest.raises(Exception, match="scores of 120 items, but the data has 80"):
        model.predict_proba(new)
    taught, alone = model.predict_proba(new, teacher=scores[120:]), model.predict_proba(new, teacher="none")
    assert mean_ap(taught, rest) > mean_ap(alone, rest) + 0.1
    np.testing.assert_array_equal(model.predict(new, teacher=scores[120:]), (taught >= model.thresholds_).astype(int))
    assert mean_ap(model.out_of_fold_, truth[:120]) > mean_ap(alone, rest)


def test_the_model_alone_is_the_one_without_a_teacher() -> None:
    X, _, Y, scores = data()
    taught = Classifier(teacher=scores, progress=False).fit(X, Y)
    plain = Classifier(progress=False).fit(X, Y)
    assert plain.teacher_ is None
    np.testing.assert_array_equal(taught.predict_proba(X, teacher="none"), plain.predict_proba(X))


def test_a_useless_teacher_changes_nothing() -> None:
    X, _, Y, scores = data()
    shuffled = scores[np.random.default_rng(1).permutation(len(scores))]
    taught = Classifier(teacher=shuffled, progress=False).fit(X, Y)
    assert taught.teacher_ is not None
    assert taught.teacher_["used"] == []
    plain = Classifier(progress=False).fit(X, Y)
    np.testing.assert_array_equal(taught.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(taught.thresholds_, plain.thresholds_)


def test_no_labels_at_all() -> None:
    X, truth, _, scores = data()
    nothing = np.full(truth.shape, NAN)
    with pytest.raises(LabelError, match=r"none is known.*teacher='names'"):
        Classifier(progress=False).fit(X, nothing)
    model = Classifier(teacher=scores, progress=False).fit(X, nothing)
    assert mean_ap(model.predict_proba(X), truth) > 2 * truth.mean()
    assert 0.2 < model.predict(X).mean() < 0.6


def test_a_method_trained_by_steps_gets_folds_for_its_teacher() -> None:
    X, truth, Y, scores = data()
    model = Classifier("partial-bce", head="mlp", epochs=3, teacher=scores, progress=False).fit(X, Y)
    assert model.teacher_ is not None
    assert model.teacher_["used"] == ["scores"]
    assert mean_ap(model.predict_proba(X), truth) > 0.5


def test_calibration_comes_after_the_teacher() -> None:
    X, _, Y, scores = data(known=0.4)
    model = Classifier(teacher=scores, calibrate="platt", thresholds="f1", progress=False).fit(X, Y)
    plain = Classifier(teacher=scores, progress=False).fit(X, Y)
    order = np.argsort(plain.predict_proba(X)[:, 0], kind="stable")
    assert (np.diff(model.predict_proba(X)[order, 0]) >= -1e-6).all()


def test_save_and_load(tmp_path: Path) -> None:
    X, _, Y, scores = data()
    path = tmp_path / "scores.npz"
    np.savez(path, scores=scores)
    model = Classifier(teacher=path, progress=False, run_dir=tmp_path / "run").fit(X, Y)
    model.save(tmp_path / "saved")
    for folder in ("run", "saved"):
        back = Classifier.load(tmp_path / folder)
        np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(back.thresholds_, model.thresholds_)
    np.testing.assert_array_equal(Classifier.load(tmp_path / "run").out_of_fold_, model.out_of_fold_)
    again = Classifier(teacher="none", progress=False, run_dir=tmp_path / "run").fit(X, Y)  # the same run, finished
    assert again.teacher_ is None
    assert not (tmp_path / "run" / "teacher.json").exists()


def test_a_table_is_matched_by_its_index() -> None:
    X, _, Y, scores = data()
    ids, names = [f"i{k}" for k in range(200)], list("abcd")
    table = pd.DataFrame(scores, columns=names, index=ids).sample(frac=1, random_state=0)[["c", "a", "d", "b"]]
    frame = pd.DataFrame(X, index=ids)
    frame.columns = [f"x{k}" for k in range(10)]
    labels = Labels.from_nan(Y, names=names, ids=ids)
    model = Classifier(teacher=table, progress=False).fit(frame, labels)
    other = Classifier(teacher=scores, progress=False).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(frame.iloc[::-1]), other.predict_proba(X)[::-1], atol=1e-5)


def test_a_hierarchy_holds_for_the_combination() -> None:
    X, truth, Y, scores = data()
    truth[:, 0] = truth[:, 0] | truth[:, 1]
    labels = Labels.from_nan(np.where(np.isnan(Y), NAN, truth), names=list("abcd"))
    model = Classifier(teacher=scores, hierarchy={"b": "a"}, progress=False).fit(X, labels)
    found = model.predict_proba(X)
    assert (found[:, 1] <= found[:, 0]).all()


def test_bad_teachers_are_refused() -> None:
    X, _, Y, scores = data()
    with pytest.raises(SettingError, match="there is no such file"):
        Classifier(teacher="nowhere.csv", progress=False).fit(X, Y)
    with pytest.raises(SettingError, match="label names cannot be compared with numbers"):
        Classifier(teacher="names", progress=False).fit(X, Labels.from_nan(Y, names=["cat", "dog", "cow", "hen"]))
    plain = Classifier(progress=False).fit(X, Y)
    with pytest.raises(SettingError, match="trained without one"):
        plain.predict_proba(X, teacher=scores)


def test_parameters_are_those_of_scikit_learn() -> None:
    own = teachers.Scores(np.zeros((2, 2)))
    assert clone(Classifier(teacher=own), safe=False).get_params()["teacher"] is not None
    assert Classifier().get_params()["teacher"] is None
