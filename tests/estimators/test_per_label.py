"""PerLabel: what scikit-learn gives label by label, its contract, what is refused, saving and going on."""

# Long because it is a table of what scikit-learn asks and of what is refused at the door, a line or two each.

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from partly import Classifier, Labels, PerLabel, metrics
from partly.clock import seed_for
from partly.errors import CheckpointError, DataError, LabelError, PartlyError, SettingError, Stopped
from partly.items import as_items, features
from scikit_learn_checks import EXPECTED_FAILURES

Floats = npt.NDArray[np.float64]
N, D, L = 60, 5, 3
X: Floats = np.random.default_rng(0).normal(size=(N, D))
TRUTH = (X @ np.random.default_rng(9).normal(size=(D, L)) > 0).astype(float)
Y = np.where(np.random.default_rng(1).random((N, L)) < 0.6, TRUTH, np.nan)
POSITIVES = np.where(np.random.default_rng(2).random((N, L)) < 0.5, np.where(TRUTH == 1, 1, np.nan), np.nan)


def model(estimator: Any = None, **more: Any) -> PerLabel:
    return PerLabel(LogisticRegression() if estimator is None else estimator, **{"progress": False} | more)


# -------------------------------------------------------------------- scikit-learn's own checks


@parametrize_with_checks([model()], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_checks(estimator: PerLabel, check: Callable[[PerLabel], None]) -> None:
    check(estimator)


def test_cross_validation_and_a_search_over_what_is_inside() -> None:
    scores = cross_val_score(model(), X, Y, cv=KFold(3), scoring=metrics.scorer())
    assert len(scores) == 3
    assert scores.min() > 0.7
    search = GridSearchCV(model(), {"estimator__C": [1e-9, 1.0]}, cv=KFold(2), scoring=metrics.scorer("CF1"))
    assert search.fit(X, Y).best_params_ == {"estimator__C": 1.0}
    assert clone(search.best_estimator_).get_params()["estimator__C"] == 1.0


# -------------------------------------------------------------------- the slow, obvious way


def by_hand(estimator: Any, label: int, unknown: str, weight: Floats, pseudo: Floats | None = None) -> Any:
    """Entry by entry."""
    rows, targets, weights = [], [], []
    for i in range(N):
        if not np.isnan(Y[i, label]):
            said = [(Y[i, label], 1.0)]
        elif pseudo is not None and not np.isnan(pseudo[i, label]):
            said = [(1, pseudo[i, label] * weight[i, label]), (0, (1 - pseudo[i, label]) * weight[i, label])]
        else:
            said = [(0, weight[i, label])] if unknown == "no" else []
        for target, w in said:
            rows, targets, weights = [*rows, i], [*targets, target], [*weights, w]
    return clone(estimator).fit(X[rows], np.array(targets), sample_weight=weights)


@pytest.mark.parametrize("unknown", ["ignore", "no"])
@pytest.mark.parametrize("with_pseudo", [False, True])
@pytest.mark.parametrize("form", ["number", "matrix"])
def test_each_label_is_what_scikit_learn_gives(unknown: str, with_pseudo: bool, form: str) -> None:
    rng = np.random.default_rng(3)
    weight = 0.3 if form == "number" else rng.uniform(0, 2, (N, L))
    pseudo = np.where(rng.random((N, L)) < 0.5, rng.random((N, L)), np.nan) if with_pseudo else None
    tight = LogisticRegression(tol=1e-9, max_iter=1000)  # the order of the rows is another one
    fitted = model(tight, unknown=unknown, weight_unknown=weight).fit(X, Y, pseudo_labels=pseudo)
    for j in range(L):
        expected = by_hand(tight, j, unknown, np.broadcast_to(weight, (N, L)), pseudo).predict_proba(X)[:, 1]
        np.testing.assert_allclose(fitted.predict_proba(X)[:, j], expected, atol=1e-5)


def test_what_is_known_wins_over_pseudo_labels() -> None:
    against = np.where(np.isnan(Y), np.nan, 1 - Y)
    assert (model().fit(X, Y, pseudo_labels=against).predict_proba(X) == model().fit(X, Y).predict_proba(X)).all()


def test_scores_of_the_other_labels_are_features() -> None:
    scores = np.random.default_rng(4).normal(size=(N, L)) + TRUTH
    fitted = model().fit(X, Y, scores=scores)
    sparse = model().fit(sp.csr_array(X), Y, scores=scores)
    for j in range(L):
        others = [k for k in range(L) if k != j]
        wide, known = np.hstack([X, scores[:, others]]), ~np.isnan(Y[:, j])
        expected = LogisticRegression().fit(wide[known], Y[known, j]).predict_proba(wide)[:, 1]
        np.testing.assert_allclose(fitted.predict_proba(X, scores)[:, j], expected, rtol=1e-9)
        np.testing.assert_allclose(sparse.predict_proba(sp.csr_array(X), scores)[:, j], expected, rtol=1e-3)
    with pytest.raises(DataError, match=r"fitted with scores of another model, and here none are given"):
        fitted.predict(X)
    with pytest.raises(DataError, match=r"fitted without scores of another model, and here some are given"):
        model().fit(X, Y).predict(X, scores)


def test_bags_hold_every_yes_and_as_many_unknown() -> None:
    fitted = model(unknown="no", bags=4, seed=5).fit(X, POSITIVES)
    for j in range(L):
        p, own = np.zeros(N), seed_for(5, "per-label", j)
        yes, unknown = np.flatnonzero(POSITIVES[:, j] == 1), np.flatnonzero(np.isnan(POSITIVES[:, j]))
        for bag in range(4):
            rng = np.random.default_rng(seed_for(own, "bag", bag))
            rows = np.sort(np.concatenate([yes, rng.choice(unknown, min(len(yes), len(unknown)), replace=False)]))
            p += LogisticRegression().fit(X[rows], np.isin(rows, yes)).predict_proba(X)[:, 1] / 4
        np.testing.assert_allclose(fitted.predict_proba(X)[:, j], p, atol=1e-9)


def test_a_label_that_says_only_one_thing_is_a_smoothed_constant() -> None:
    y = Y.copy()
    y[:, 0] = np.where(y[:, 0] == 1, 1, np.nan)
    fitted = model().fit(X, y)
    yes = np.nansum(y[:, 0])
    assert (fitted.predict_proba(X)[:, 0] == (yes + 1) / (yes + 2)).all()
    np.testing.assert_allclose(fitted.decision_function(X)[:, 0], np.log(yes + 1))
    auto = model(unknown="auto").fit(X, y)
    expected = LogisticRegression().fit(X, y[:, 0] == 1).predict_proba(X)[:, 1]
    np.testing.assert_allclose(auto.predict_proba(X)[:, 0], expected)
    assert (auto.predict_proba(X)[:, 1:] == fitted.predict_proba(X)[:, 1:]).all()


def test_outputs_agree_with_each_other() -> None:
    fitted = model().fit(X, Labels.from_nan(Y, names=["a", "b", "c"]))
    p = fitted.predict_proba(X)
    assert fitted.label_names_ == ("a", "b", "c")
    assert (fitted.predict(X) == (p >= 0.5)).all()
    np.testing.assert_allclose(fitted.decision_function(X), np.log(p / (1 - p)), rtol=1e-6)
    assert fitted.score(X, TRUTH) == metrics.evaluate(p, TRUTH)["mAP"]


# -------------------------------------------------------------------- any estimator, any items


@pytest.mark.parametrize(
    "estimator",
    [
        ExtraTreesClassifier(5),
        HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3),
        GaussianNB(),
        KNeighborsClassifier(),
        LinearSVC(),
        RidgeClassifier(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_of_scikit_learn_are_fitted_saved_and_loaded(estimator: Any, tmp_path: Path) -> None:
    fitted = model(estimator).fit(X, Y)
    assert fitted.score(X, TRUTH) > 0.75
    again = model(estimator).fit(X, Y)  # whoever draws random numbers draws the same
    assert (again.predict_proba(X) == fitted.predict_proba(X)).all()
    fitted.save(tmp_path)
    assert (PerLabel.load(tmp_path).predict_proba(X) == fitted.predict_proba(X)).all()


def test_weights_reach_the_last_step_of_a_pipeline_and_what_is_searched() -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    fitted = model(pipeline, unknown="no", weight_unknown=0.2).fit(X, Y)
    weights = np.where(np.isnan(Y[:, 0]), 0.2, 1.0)
    expected = pipeline.fit(X, Y[:, 0] == 1, logisticregression__sample_weight=weights).predict_proba(X)[:, 1]
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 0], expected)
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2)
    by_search = model(search, unknown="no", weight_unknown=0.2).fit(X, Y).predict_proba(X)
    assert (by_search == model(unknown="no", weight_unknown=0.2).fit(X, Y).predict_proba(X)).all()


def test_weights_are_missed_only_where_they_are_needed() -> None:
    assert model(KNeighborsClassifier(), unknown="no").fit(X, Y).predict(X).shape == (N, L)
    with pytest.raises(SettingError, match=r"label '0': KNeighborsClassifier takes no sample_weight"):
        model(KNeighborsClassifier(), unknown="no", weight_unknown=0.5).fit(X, Y)


def test_items_and_labels_are_matched_by_id() -> None:
    ids = [f"i{i}" for i in range(N)]
    table, turned = pd.DataFrame(X, ids, list("abcde")), pd.DataFrame(Y, ids).sample(frac=1, random_state=0)
    found, expected = model().fit(table, turned), model().fit(X, Y)
    np.testing.assert_allclose(found.predict_proba(table), expected.predict_proba(X), rtol=1e-9)
    assert found.score(table, turned) == pytest.approx(expected.score(X, Y))


def test_items_of_every_form_give_the_same() -> None:
    x = X.astype(np.float32).astype(float)
    expected = model().fit(x, Y).predict_proba(x)
    for form in (sp.csr_array(x), sp.coo_matrix(x), as_items(x), as_items(sp.csr_array(x)), x.tolist()):
        np.testing.assert_allclose(model().fit(form, Y).predict_proba(form), expected, rtol=1e-3)
    table = pd.DataFrame(x, columns=list("abcde"))
    fitted = model().fit(table, Labels.from_nan(Y))
    np.testing.assert_allclose(fitted.predict_proba(table), expected, rtol=1e-9)
    assert list(fitted.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(fitted.predict(table[list("edcba")]), fitted.predict(table))
    with pytest.raises(DataError, match="missing, 1:\n  'c'\nGive exactly"):
        fitted.predict(table.drop(columns="c"))
    named = features(x, names=tuple("abcde"))
    fitted = model().fit(named, Y)
    turned = features(x[:, ::-1], names=tuple("edcba"))
    np.testing.assert_array_equal(fitted.predict(turned), fitted.predict(named))
    with pytest.raises(DataError, match="X has 4 features, but PerLabel is expecting 5"):
        fitted.predict(as_items(x[:, :4]))
    pictures = np.random.default_rng(0).integers(0, 256, (N, 16, 16, 3), dtype=np.uint8)
    tree = model(ExtraTreesClassifier(2)).fit(as_items(pictures), Y)
    assert tree.n_features_in_ == 16 * 16 * 3


def test_texts_and_tables_are_left_to_the_estimator(tmp_path: Path) -> None:
    words = np.array(["cat", "dog", "sun"])
    texts = [" ".join(words[row == 1]) or "nothing" for row in TRUTH]
    fitted = model(make_pipeline(TfidfVectorizer(), LogisticRegression()), run_dir=tmp_path).fit(texts, Y)
    assert fitted.score(texts, TRUTH) == 1.0
    assert (PerLabel.load(tmp_path).predict_proba(np.array(texts)) == fitted.predict_proba(texts)).all()
    table = pd.DataFrame({"words": texts, "number": X[:, 0]})
    one_hot = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["words"]), remainder="passthrough")
    assert model(make_pipeline(one_hot, LogisticRegression())).fit(table, Y).score(table, TRUTH) == 1.0


def test_missing_features_are_left_to_the_estimator() -> None:
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    assert model(HistGradientBoostingClassifier(max_iter=3)).fit(holes, Y).predict(holes).shape == (N, L)
    with pytest.raises(DataError, match=r"label '0' \(\d+ yes, \d+ no\): Input X contains NaN"):
        model().fit(holes, Y)


# -------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"estimator": LinearRegression()}, "estimator = LinearRegression() must be a scikit-learn classifier"),
        ({"estimator": LogisticRegression}, "an object, not a class"),
        ({"unknown": "ignored"}, "There is no unknown = 'ignored'. Did you mean 'ignore'?"),
        ({"weight_unknown": -1.0}, "weight_unknown = -1.0 must be a number, 0 or more"),
        ({"weight_unknown": "1"}, "weight_unknown = '1' must be a number"),
        ({"weight_unknown": np.ones((2, L))}, "weight_unknown: has shape [2, 3], and the labels have [60, 3]"),
        ({"weight_unknown": -np.ones((N, L))}, "weight_unknown: should be 0 or more\n  item 0, label 0: -1.0"),
        ({"bags": 2}, "bags = 2 take unknown entries for no, but unknown='ignore'. Say unknown='no'."),
        ({"bags": 1.5, "unknown": "no"}, "bags = 1.5 must be a whole number, 0 or more"),
        ({"seed": None}, "seed = None must be a whole number"),
    ],
)
def test_parameters_that_cannot_be_are_refused(tmp_path: Path, parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(PartlyError, match=re.escape(words)):
        model(run_dir=tmp_path / "run", **parameters).fit(X, Y)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y to be passed"),
        (Y[:-1], "X has 60 items and Y 59"),
        (
            POSITIVES,
            "with unknown='ignore' there is nothing to tell yes from. unknown='no' takes what is unknown for no",
        ),
        (np.full((N, L), np.nan), "0 are known to be yes, 0 no: every label has one class only"),
        (np.where(Y == 0, 0, np.nan), "0 are known to be yes, "),
        (np.where(np.isnan(Y), -1, Y).astype(int), "Labels.from_ternary"),
    ],
)
def test_labels_of_which_nothing_can_be_learned_are_refused(y: Any, words: str) -> None:
    with pytest.raises(LabelError, match=re.escape(words)):
        model().fit(X, y)


def test_what_is_said_beside_the_labels_is_checked() -> None:
    beyond = np.full((N, L), 0.5)
    beyond[2, 1] = 1.5
    with pytest.raises(DataError, match=r"pseudo_labels: should be 0 to 1, or NaN .*\n  item 2, label 1: 1\.5"):
        model().fit(X, Y, pseudo_labels=beyond)
    with pytest.raises(DataError, match=r"scores: should be finite numbers\n  item"):
        model().fit(X, Y, scores=np.where(beyond > 1, np.nan, beyond))
    with pytest.raises(DataError, match=r"scores: has shape \[60, 2\]"):
        model().fit(X, Y, scores=beyond[:, :2])
    with pytest.raises(NotFittedError):
        model().predict(X)
    with pytest.raises(DataError, match="expecting 5 features"):
        model().fit(X, Y).predict(X[:, :3])


# -------------------------------------------------------------------- saving, loading, going on


def test_save_and_load_give_the_same_model(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=list("abcde"))
    how = {"unknown": "no", "weight_unknown": 0.25, "bags": 2, "seed": 3}
    fitted = model(LogisticRegression(C=0.7), **how).fit(table, Labels.from_nan(Y, names=["a", "b", "ü"]))
    fitted.save(tmp_path / "model")
    loaded = PerLabel.load(tmp_path / "model")
    assert (loaded.predict_proba(table) == fitted.predict_proba(table)).all()
    assert {name: loaded.get_params()[name] for name in how} == how
    assert loaded.estimator.C == 0.7
    assert loaded.label_names_ == ("a", "b", "ü")
    assert list(loaded.feature_names_in_) == list("abcde")
    loaded.save(tmp_path / "again")
    files = [sorted(path.name for path in (tmp_path / part).iterdir()) for part in ("model", "again")]
    assert files[0] == files[1]
    for name in (name for name in files[0] if name != "run.json"):  # the same bytes, but for nothing
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    loaded.save(tmp_path / "twice")
    loaded.save(tmp_path / "twice", overwrite=True)
    with pytest.raises(CheckpointError, match="there is a run in this folder already"):
        loaded.save(tmp_path / "model")
    with pytest.raises(CheckpointError, match=r"partly\.PerLabel\.load reads it"):
        Classifier.load(tmp_path / "model")


def test_the_folder_of_a_classifier_is_not_taken_for_one(tmp_path: Path) -> None:
    Classifier("bce", head="linear", epochs=1, progress=False, run_dir=tmp_path).fit(X, Y)
    with pytest.raises(CheckpointError, match=r"partly\.Classifier\.load reads it"):
        PerLabel.load(tmp_path)
    with pytest.raises(CheckpointError, match="holds another run"):
        model(run_dir=tmp_path).fit(X, Y)


class Interrupted(LogisticRegression):
    """Ctrl-C arrives while the label after the first `labels` is fitted."""

    labels = 99
    seen: list[int] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if len(self.seen) == self.labels:
            raise KeyboardInterrupt
        self.seen.append(len(y))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("labels", [0, 1, 2])
def test_ctrl_c_costs_only_the_label_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: int) -> None:
    trusted = [f"{Interrupted.__module__}.Interrupted"]
    monkeypatch.setattr(Interrupted, "labels", labels)
    monkeypatch.setattr(Interrupted, "seen", [])
    with pytest.raises(Stopped, match=f"Stopped after {labels} of 3 labels; saved in"):
        model(Interrupted(), run_dir=tmp_path, trusted=trusted).fit(X, Y)
    with pytest.raises(CheckpointError, match=f"{labels} of 3 labels are fitted. Fit again"):
        PerLabel.load(tmp_path, trusted)
    monkeypatch.setattr(Interrupted, "labels", 99)
    resumed = model(Interrupted(), run_dir=tmp_path, trusted=trusted).fit(X, Y)
    assert len(Interrupted.seen) == L  # none twice
    assert (resumed.predict_proba(X) == model().fit(X, Y).predict_proba(X)).all()


PROGRAM = """
import sys, numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from partly import PerLabel
X = np.random.default_rng(0).normal(size=(60, 5))
Y = np.where(np.random.default_rng(1).random((60, 12)) < 0.6, X[:, [0] * 12] > 0, np.nan)
PerLabel(ExtraTreesClassifier(30), run_dir=sys.argv[1], progress=False).fit(X, Y)
"""


def test_a_kill_in_the_middle_costs_no_finished_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, killed])
    while child.poll() is None and len(list(killed.glob("label-*.json"))) < 2:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    done = {path.name: path.stat().st_mtime_ns for path in killed.glob("label-*.json")}
    assert 2 <= len(done) < 12
    for folder in (killed, straight):
        monkeypatch.setattr(sys, "argv", ["program", folder])
        exec(PROGRAM, {})  # noqa: S102, our own program, in this process
    assert {name: (killed / name).stat().st_mtime_ns for name in done} == done
    for path in straight.glob("label-*.skops"):
        assert (killed / path.name).read_bytes() == path.read_bytes()


def test_a_folder_of_other_data_or_another_estimator_is_refused(tmp_path: Path) -> None:
    model(run_dir=tmp_path).fit(X, Y)
    for change, words in (
        ({"estimator": LogisticRegression(C=2.0)}, r"recipe\.estimator\.C: '1\.0' there, '2\.0' now"),
        ({"estimator": GaussianNB()}, r"recipe\.estimator: '.*LogisticRegression' there, '.*GaussianNB' now"),
        ({"unknown": "no"}, r"recipe\.unknown: 'ignore' there, 'no' now"),
        ({"weight_unknown": np.ones((N, L))}, r"recipe\.weight_unknown_sha256: None there"),
        ({"seed": 1}, r"recipe\.seed"),
    ):
        with pytest.raises(CheckpointError, match=words):
            model(**{"run_dir": tmp_path} | change).fit(X, Y)
    for given, words in (
        (((X + 1, Y), {}), r"data\.sha256"),
        (((X, TRUTH), {}), r"data\.labels_sha256"),
        (((X, Y), {"pseudo_labels": TRUTH}), r"recipe\.pseudo_labels_sha256: None there"),
        (((X, Y), {"scores": TRUTH}), r"recipe\.scores_sha256: None there"),
    ):
        with pytest.raises(CheckpointError, match=words):
            model(run_dir=tmp_path).fit(*given[0], **given[1])


def test_damage_is_noticed(tmp_path: Path) -> None:
    fitted = model(run_dir=tmp_path).fit(X, Y)
    path = tmp_path / "label-00001.skops"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for ask in (lambda: PerLabel.load(tmp_path), lambda: model(run_dir=tmp_path).fit(X, Y)):
        with pytest.raises(CheckpointError, match=r"label-00001\.skops: missing or damaged"):
            ask()
    path.unlink()
    path.with_suffix(".json").unlink()
    assert (model(run_dir=tmp_path).fit(X, Y).predict_proba(X) == fitted.predict_proba(X)).all()
    (tmp_path / "estimator.skops").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"estimator\.skops: missing or damaged"):
        PerLabel.load(tmp_path)


class Own(ClassifierMixin, BaseEstimator):
    """Not scikit-learn's own, and without probabilities or a decision."""

    def fit(self, X: Any, y: Any) -> Own:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Floats:
        return np.tile([0.25, 0.75], (len(X), 1))


def test_types_of_others_are_loaded_only_when_they_are_named(tmp_path: Path) -> None:
    name = f"{Own.__module__}.Own"
    fitted = model(Own()).fit(X, Y)
    fitted.save(tmp_path / "model")
    with pytest.raises(CheckpointError) as caught:
        PerLabel.load(tmp_path / "model")
    assert f"not trusted: {name}." in str(caught.value)
    assert f"PerLabel.load('{tmp_path / 'model'}', trusted=['{name}'])" in str(caught.value)
    assert (PerLabel.load(tmp_path / "model", trusted=[name]).predict_proba(X) == 0.75).all()
    with pytest.raises(SettingError, match=re.escape(f"PerLabel(..., trusted=['{name}']), or leave out run_dir")):
        model(Own(), run_dir=tmp_path / "run").fit(X, Y)
    assert not list((tmp_path / "run").glob("label-*"))
