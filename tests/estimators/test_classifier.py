"""Classifier: scikit-learn's contract, what it refuses and with which words, saving and going on."""

# Long because it is a table of what scikit-learn asks and of what is refused at the door, a line or two each.

from __future__ import annotations

import pickle
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from partly import Classifier, Labels, PartlyError, metrics
from partly.clock import Clock
from partly.engine import pipeline
from partly.errors import CheckpointError, DataError, LabelError, SettingError, Stopped
from partly.items import as_items
from scikit_learn_checks import EXPECTED_FAILURES, SHAPE

Floats = npt.NDArray[np.float64]
N, D, L = 40, 5, 3


def items(seed: int = 0, count: int = N, width: int = D) -> Floats:
    return np.random.default_rng(seed).normal(size=(count, width))


def truth(X: Floats) -> Floats:
    return (X @ np.random.default_rng(9).normal(size=(X.shape[1], L)) > 0).astype(float)


def partly_known(X: Floats, seed: int = 0) -> Floats:
    return np.where(np.random.default_rng(seed).random((len(X), L)) < 0.7, truth(X), np.nan)


X = items()
Y = partly_known(X)


def model(**more: Any) -> Classifier:
    small = {"method": "partial-bce", "head": "linear", "epochs": 3, "batch_size": 16, "lr": 0.1, "progress": False}
    return Classifier(**(small | more))


# -------------------------------------------------------------------- scikit-learn's own checks


@parametrize_with_checks(
    [model()], expected_failed_checks=lambda _: EXPECTED_FAILURES | {"check_classifiers_one_label": SHAPE}
)
def test_scikit_learn_checks(estimator: Classifier, check: Callable[[Classifier], None]) -> None:
    check(estimator)


def test_outputs_agree_with_each_other() -> None:
    """What the multi-output check above would see further on."""
    fitted = model().fit(X, truth(X))
    logits, probabilities, predicted = fitted.decision_function(X), fitted.predict_proba(X), fitted.predict(X)
    assert logits.shape == probabilities.shape == predicted.shape == (N, L)
    assert predicted.dtype.kind == "i"
    np.testing.assert_allclose(probabilities, 1 / (1 + np.exp(-logits)), rtol=1e-6)
    assert (predicted == (probabilities >= 0.5)).all()
    assert [c.tolist() for c in fitted.classes_] == [[0, 1]] * L


# -------------------------------------------------------------------- working with scikit-learn


def test_parameters_are_got_set_and_cloned() -> None:
    given = {"method": "bce", "head": "linear", "epochs": 2, "settings": {}, "run_dir": "x", "seed": 4}
    original = Classifier(**given)
    assert {key: original.get_params()[key] for key in given} == given
    assert clone(original).get_params() == original.get_params()
    assert original.set_params(lr=0.5) is original
    assert original.lr == 0.5
    with pytest.raises(ValueError, match="rate"):
        original.set_params(rate=0.5)


def test_a_clone_of_a_fitted_model_is_not_fitted_and_learns_the_same() -> None:
    fitted = model().fit(X, Y)
    again = clone(fitted)
    with pytest.raises(NotFittedError):
        again.predict(X)
    assert (again.fit(X, Y).predict_proba(X) == fitted.predict_proba(X)).all()


def test_a_pipeline() -> None:
    pipeline = make_pipeline(StandardScaler(), model(epochs=20)).fit(X * 100 + 7, Y)
    assert pipeline.predict(X * 100 + 7).shape == (N, L)
    assert pipeline.score(X * 100 + 7, Y) > 0.8


@pytest.mark.parametrize(
    "wrap",
    [lambda y: y, Labels.from_nan, lambda y: Labels.from_nan(y, ids=range(1000, 1000 + N))],
    ids=["array", "labels", "labels with ids"],
)
def test_cross_validation_on_partly_known_labels(wrap: Callable[[Floats], Any]) -> None:
    folds = KFold(4, shuffle=True, random_state=0)
    scores = cross_val_score(model(), X, wrap(Y), cv=folds, scoring=metrics.scorer())
    assert len(scores) == 4
    for score, (train, test) in zip(scores, folds.split(X), strict=True):
        fitted = model().fit(X[train], Y[train])
        probabilities = fitted.predict_proba(X[test])
        by_hand = []
        for j in range(L):
            known = ~np.isnan(Y[test, j])
            if len(set(Y[test, j][known])) == 2:  # without a known yes and a known no there is no AP
                by_hand.append(average_precision_score(Y[test, j][known], probabilities[known, j]))
        assert score == pytest.approx(np.mean(by_hand))
        assert score == fitted.score(X[test], Y[test])
    assert (cross_val_score(model(), X, wrap(Y), cv=folds) == scores).all()  # `score` is the same mAP


def test_scorers_by_name() -> None:
    fitted = model().fit(X, Y)
    everything = metrics.evaluate(fitted.predict_proba(X), Y)
    for name in ("mAP", "CF1", "P@3", "exact_match"):
        assert metrics.scorer(name)(fitted, X, Y) == everything[name]
    with pytest.raises(SettingError, match=re.escape("There is no score 'map'. Did you mean 'mAP'?")):
        metrics.scorer("map")


def test_a_scorer_can_be_sent_to_other_processes() -> None:
    fitted = model().fit(X, Y)
    scorer = metrics.scorer("OF1")
    sent = pickle.loads(pickle.dumps(scorer))  # noqa: S301
    assert sent(fitted, X, Y) == scorer(fitted, X, Y)


def test_a_grid_search() -> None:
    search = GridSearchCV(
        model(head_settings={"solve": False}), {"lr": [1e-6, 0.1]}, cv=KFold(2), scoring=metrics.scorer()
    ).fit(X, Y)
    assert search.best_params_ == {"lr": 0.1}


@pytest.mark.parametrize("labels", [2, 3])
def test_scorers_of_scikit_learn_work_where_everything_is_known(labels: int) -> None:
    full = truth(X)[:, :labels].astype(int)
    fitted = model().fit(X[:30], full[:30])
    scored = cross_val_score(
        model(), X, full, cv=[(np.arange(30), np.arange(30, 40))], scoring="average_precision", error_score="raise"
    )
    assert scored[0] == pytest.approx(average_precision_score(full[30:], fitted.predict_proba(X[30:])))
    assert cross_val_predict(model(), X, full, cv=KFold(2)).shape == full.shape


# -------------------------------------------------------------------- fitting


def test_fit_returns_self_and_says_what_it_did() -> None:
    fitted = model(method="auto")
    assert fitted.fit(X, Labels.from_nan(Y, names=["a", "b", "c"]), validation=(X[:20], Y[:20])) is fitted
    assert fitted.method_ == "partial-bce"
    assert "known to be yes" in fitted.reason_
    assert fitted.label_names_ == ("a", "b", "c")
    assert fitted.n_features_in_ == D
    assert [line["epoch"] for line in fitted.history_] == [1, 2, 3]
    scores = [line["validation_mAP"] for line in fitted.history_]
    assert fitted.best_epoch_ == 1 + int(np.argmax(scores))
    assert fitted.score(X[:20], Y[:20]) == pytest.approx(max(scores), abs=1e-6)
    assert fitted.beliefs_ is None
    assert model().fit(X, Y).reason_ == "as requested"


def test_fitting_again_starts_anew() -> None:
    fitted = model().fit(items(3, 30, 7), truth(items(3, 30, 7))[:, :2])
    assert fitted.predict(items(4, 6, 7)).shape == (6, 2)
    fitted.fit(X, Y)
    assert (fitted.predict_proba(X) == model().fit(X, Y).predict_proba(X)).all()
    assert fitted.n_features_in_ == D


def test_the_form_of_the_data_changes_no_bit() -> None:
    """Arrays of any order and type that hold the same numbers, lists and tables; Y as array, table or Labels."""
    rounded = X.astype(np.float32).astype(float)
    expected = model().fit(rounded, Y).predict_proba(rounded)
    for form in (
        rounded.astype(np.float32),
        np.asfortranarray(rounded),
        np.repeat(rounded, 2, axis=0)[::2],
        rounded.tolist(),
        rounded.astype(object),
    ):
        assert (model().fit(form, Y).predict_proba(form) == expected).all()
    for labels in (Labels.from_nan(Y), pd.DataFrame(Y), Y.tolist(), Labels.from_ternary(Labels.from_nan(Y).ternary())):
        assert (model().fit(rounded, labels).predict_proba(rounded) == expected).all()


def test_data_are_not_changed() -> None:
    x, y = X.copy(), Y.copy()
    x.setflags(write=False)
    y.setflags(write=False)
    model().fit(x, y, validation=(x, y)).predict(x)
    assert (x == X).all()
    np.testing.assert_array_equal(y, Y)


def test_zeros_and_ones_are_fully_known() -> None:
    full = truth(X)
    for form in (full, full.astype(int), full.astype(bool), Labels.from_full(full)):
        fitted = model(method="auto").fit(X, form)
        assert fitted.method_ == "bce"
        assert (fitted.predict_proba(X) == model(method="bce").fit(X, full).predict_proba(X)).all()


def test_small_data_has_a_defined_result() -> None:
    one = model().fit(X[:1], [[1.0, 0.0, np.nan]])
    assert np.isfinite(one.predict_proba(X)).all()
    assert model().fit(X, Y[:, :1]).predict(X).shape == (N, 1)
    assert model(batch_size=1).fit(X[:3], Y[:3]).predict_proba(X).shape == (N, L)
    gaps = Y.copy()
    gaps[3] = np.nan  # an item without a known entry
    gaps[:, 1] = np.nan  # a label without one
    gaps[gaps[:, 2] == 1, 2] = np.nan  # a label without yes
    assert np.isfinite(model().fit(X, gaps).predict_proba(X)).all()


# -------------------------------------------------------------------- tables with names


def test_the_columns_of_a_table_are_matched_by_name(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=list("abcde"))
    fitted = model().fit(table, Y, validation=(table, Y))
    assert fitted.feature_names_in_.tolist() == list("abcde")
    fitted.save(tmp_path)
    for known in (fitted, Classifier.load(tmp_path)):
        assert (known.predict_proba(table) == fitted.predict_proba(table)).all()
        for other in (table[list("edcba")], pa.Table.from_pandas(table[list("edcba")])):
            assert (known.predict_proba(other) == fitted.predict_proba(table)).all()
        with pytest.raises(DataError, match=r"missing, 1:\n  'b'\nnot in training, 1:\n  'B'\nGive exactly"):
            known.predict(table.rename(columns={"b": "B"}))
        with pytest.raises(DataError, match="missing, 1:\n  'c'\nGive exactly"):
            known.predict(table.drop(columns="c"))
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            known.predict(X)


def test_validation_in_another_order_of_columns_is_the_same() -> None:
    table = pd.DataFrame(X, columns=list("abcde"))
    one, other = (model(epochs=2).fit(table, Y, validation=(t, Y)) for t in (table, table[list("cabed")]))
    assert one.fitted_.progress.best_score == other.fitted_.progress.best_score is not None


def test_a_table_of_labels_gives_them_their_names() -> None:
    fitted = model().fit(X, pd.DataFrame(Y, columns=["cat", "dog", "cow"]))
    assert fitted.label_names_ == ("cat", "dog", "cow")


# -------------------------------------------------------------------- tables with ids


def test_items_and_labels_are_matched_by_id() -> None:
    """In `fit`, as validation, as what is known, and in `score`; a shuffled table is the same table."""
    ids = [f"i{i}" for i in range(N)]
    table, said = pd.DataFrame(X, ids), pd.DataFrame(Y, ids)
    turned = said.sample(frac=1, random_state=0)
    expected = model().fit(X, Y, validation=(X, Y))
    for other in (turned, Labels.from_nan(turned)):
        found = model().fit(table, other, validation=(table, other))
        assert (found.predict_proba(table) == expected.predict_proba(X)).all()
        assert found.fitted_.progress.best_score == expected.fitted_.progress.best_score
        assert found.score(table, other) == expected.score(X, Y)
    head = {"head": "label-transformer", "epochs": 1}
    asked = model(**head).fit(table, turned)
    assert (asked.predict_proba(table, known=turned) == asked.predict_proba(X, known=Y)).all()


def test_position_counts_where_one_side_has_no_ids() -> None:
    expected = model().fit(X, Y).predict_proba(X)
    odd = pd.DataFrame(Y, np.arange(N) * 2 + 1)  # rows that are left of a larger table
    for x, y in ((X, odd), (pd.DataFrame(X), odd), (pd.DataFrame(X, odd.index), Y), (pd.DataFrame(X, odd.index), odd)):
        assert (model().fit(x, y).predict_proba(X) == expected).all()


def test_ids_that_cannot_be_matched_are_refused() -> None:
    ids = [f"i{i}" for i in range(N)]
    table = pd.DataFrame(X, ids)
    for other in (Labels.from_nan(Y, ids=[*ids[1:], "x"]), pd.DataFrame(Y, [*ids[1:], "x"])):
        with pytest.raises(LabelError, match=r"cannot be matched: 1 of the 40 items of X are not in Y\n  'i0'\n"):
            model().fit(table, other)
        with pytest.raises(LabelError, match="1 of the 40 items of X are not in validation"):
            model().fit(table, Labels.from_nan(Y, ids=ids), validation=(table, other))
    with pytest.raises(LabelError, match="some are in X twice"):
        model().fit(pd.DataFrame(X, ids[:-1] + ids[:1]), pd.DataFrame(Y, ids))


def test_a_plain_range_beside_the_same_numbers_in_another_order_is_not_guessed() -> None:
    """Shuffled rows, or rows that were numbered anew: nobody can tell."""
    turned = pd.DataFrame(Y).sample(frac=1, random_state=0)
    with pytest.raises(LabelError, match=r"the same number: Y.sort_index\(\); if of the same place: Y.reset_index"):
        model().fit(pd.DataFrame(X), turned)
    with pytest.raises(LabelError, match=r"If of the same number: X.sort_index\(\)"):
        model().fit(pd.DataFrame(X).loc[turned.index], pd.DataFrame(Y))


# -------------------------------------------------------------------- refused: X


def test_columns_of_words_are_named() -> None:
    table = pd.DataFrame(X, columns=list("abcde")).assign(colour="red", b=["1.5"] * (N - 1) + ["big"])
    with pytest.raises(DataError, match=r"X: columns that cannot be encoded: 1\n  'b': most cells .* not 'big'"):
        model().fit(table, Y)
    with pytest.raises(DataError, match=r"not numbers, or have missing values: 1\n  'colour': category\nEncode"):
        model(encode=False).fit(table.drop(columns="b"), Y)


def test_items_without_features_are_refused() -> None:
    with pytest.raises(DataError, match="without features"):
        model().fit(as_items(X[:, :0]), Y)


def test_features_that_are_not_finite_are_listed() -> None:
    bad = X.copy()
    bad[3, 1], bad[7, 0], bad[7, 4] = np.nan, np.inf, 1e300
    with pytest.raises(DataError) as caught:
        model(encode=False).fit(bad, Y)
    assert str(caught.value) == (
        "X: 3 of 200 features are missing (NaN), infinite or too large (beyond 1e+37)\n"
        "  item 3, feature 1: nan\n  item 7, feature 0: inf\n  item 7, feature 4: 1e+300\n"
        "Fill them in (sklearn.impute) or leave these items out."
    )
    with pytest.raises(DataError, match="2 of 200 features are infinite or too large"):
        model().fit(bad, Y)
    bad[10:20] = np.nan
    with pytest.raises(DataError, match=r"53 of 200 features.*\n.*\n.*\n.*\n.*\n.*\n  \.\.\. and 48 more"):
        model(encode=False).fit(X, Y).predict(bad)
    with pytest.raises(DataError, match=r"missing values: 5\n  'a': 10 missing"):
        model(encode=False).fit(pd.DataFrame(bad, columns=list("abcde")), Y)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (X[:, 0], "Expected 2D array, got 1D array"),
        (X.reshape(N, D, 1), "Found array with dim 3"),
        (X.astype(complex), "Complex data not supported"),
        (np.full((N, D), "text"), "Convert your data to numeric"),
        (np.empty((0, D)), "Found array with 0 sample"),
        (np.empty((N, 0)), r"0 feature\(s\)"),
        (np.float64(3), "Expected 2D array, got scalar"),
    ],
)
def test_items_of_another_kind_are_refused(bad: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        model().fit(bad, Y)
    if np.shape(bad) != (N, 0):
        with pytest.raises(DataError, match=words):
            model().fit(X, Y).predict(bad)


def test_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="must be a string or a real number"):
        model().fit(np.full((N, D), {}, dtype=object), Y)


def test_sparse_features_are_scaled_and_not_shifted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a mean to take off, features that have none are learned from alike, sparse or not."""
    monkeypatch.setattr(
        "partly.solvers.logistic.TOLERANCE", 1e-9
    )  # else two strengths that are alike may change places
    mixed = X - X.mean(axis=0)
    mixed[:, 1:] /= mixed[:, 1:].std(axis=0)  # of sparse features the relative size is kept
    mixed[:, 0] = 0
    sparse, dense = (model().fit(kind(mixed), Y) for kind in (sp.csr_array, np.asarray))
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_matrix(mixed)), dense.predict_proba(mixed), atol=0.01)
    np.testing.assert_allclose(sparse.predict_proba(mixed), sparse.predict_proba(sp.coo_array(mixed)), atol=1e-6)
    assert sparse.n_features_in_ == D
    with pytest.raises(DataError, match="expecting 5 features"):
        sparse.predict(sp.csr_array(mixed[:, :3]))
    mixed[1, 2] = np.nan
    with pytest.raises(DataError, match="item 1, feature 2: nan"):
        model().fit(sp.csr_array(mixed), Y)


def test_another_width_is_refused() -> None:
    with pytest.raises(DataError, match="X has 4 features, but Classifier is expecting 5"):
        model().fit(X, Y).predict_proba(X[:, :4])


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "decision_function"])
def test_asking_before_fitting_is_refused(ask: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(model(), ask)(X)


def test_scoring_and_saving_before_fitting_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        model().score(X, Y)
    with pytest.raises(NotFittedError):
        model().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


# -------------------------------------------------------------------- refused: Y


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (
            np.where(np.isnan(Y), 0, 2 * Y - 1).astype(int),
            r"-1(?s:.*)Labels\.from_ternary \(\+1 yes, -1 no, 0 unknown\)",
        ),
        (np.where(np.isnan(Y), -100, Y), r"-100(?s:.*)Labels\.from_nan \(1 yes, 0 no, NaN unknown\)"),
        (np.where(np.isnan(Y), 0.5, Y), r"0\.5(?s:.*)Labels\.from_positives"),
        (np.arange(N) % 3, "Only binary classification is supported, label by label"),
        (np.linspace(-3, 3, N), "continuous target"),
        (np.where(np.isnan(Y), np.nan, 0.7), r"soft labels.*sample_weight=numpy.nan_to_num"),
        (Y[:, :, None], "3 dimension"),
        (Y[:-1], "X has 40 items and Y 39"),
        (Y[:, :0], "no labels"),
        (None, "requires y to be passed"),
        (np.full((N, L), np.nan), "of 40 x 3 entries none is known: nothing to learn from"),
        (Labels.from_positives(sp.csr_array((N, L))), "of 40 x 3 entries none is known: nothing to learn from"),
        (np.full((N, L), "maybe"), "tags"),
    ],
)
def test_labels_that_would_have_to_be_guessed_are_refused(bad: Any, words: str) -> None:
    with pytest.raises(LabelError, match=words):
        model().fit(X, bad)


def test_validation_must_be_of_the_same_labels() -> None:
    named = Labels.from_nan(Y, names=["a", "b", "c"])
    fitted = model().fit(X, named, validation=(X, named))
    for unnamed in ((named, Y), (Y, named)):  # names that nobody gave contradict none
        assert model().fit(X, unnamed[0], validation=(X, unnamed[1])).history_ == fitted.history_
    with pytest.raises(LabelError, match=r"validation does not match .* by name:\nmissing, 1:\n  'c'\n"):
        model().fit(X, named, validation=(X, Labels.from_nan(Y[:, :2], names=["a", "b"])))
    with pytest.raises(LabelError, match="validation has 2 labels, and there are 3 labels of training"):
        model().fit(X, named, validation=(X, Y[:, :2]))


@pytest.mark.parametrize(
    ("validation", "error", "words"),
    [
        (0.2, SettingError, r"validation must be a pair \(X, Y\); got float"),
        ((X, Y, Y), SettingError, "validation must be a pair"),
        ((X[:, :4], Y), DataError, "expecting 5 features"),
        ((X[:10], Y), LabelError, "X has 10 items and validation 40"),
        ((np.full((N, D), np.nan), Y), DataError, "missing values: 5\n  'feature 0': 40 missing"),
    ],
)
def test_other_faults_of_validation(validation: Any, error: type[PartlyError], words: str) -> None:
    with pytest.raises(error, match=words):
        model().fit(X, Y, validation=validation)


def test_validation_of_which_nothing_is_known_leaves_the_last_epoch() -> None:
    fitted = model().fit(X, Y, validation=(X, np.full((N, L), np.nan)))
    assert fitted.best_epoch_ is None
    assert (fitted.predict_proba(X) == model().fit(X, Y).predict_proba(X)).all()


# -------------------------------------------------------------------- refused: parameters


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "partial-bec"}, "There is no method 'partial-bec'. Did you mean 'partial-bce'?"),
        ({"method": None}, "method = None must be a name"),
        ({"head": "mpl"}, "There is no head 'mpl'. Did you mean 'mlp'?"),
        ({"optimizer": "SGD"}, "There is no optimizer 'SGD'. Did you mean 'sgd'?"),
        ({"settings": {"gama": 2.0}}, "partial-bce has no setting 'gama'. Did you mean 'gamma'?"),
        ({"settings": {"gamma": "2"}}, "partial-bce: setting gamma = '2' should be of type float"),
        ({"settings": "gamma=2"}, "settings = 'gamma=2' must be a dictionary"),
        ({"lr": 0}, "lr = 0 must be a number above 0"),
        ({"lr": 1e9}, "lr = 1000000000.0: should be from 0 to 100."),
        ({"lr": -1.0}, "lr = -1.0 must be a number above 0"),
        ({"epochs": 0}, "epochs = 0 must be a whole number, 1 or more"),
        ({"epochs": 1.5}, "epochs = 1.5 must be a whole number, 1 or more"),
        ({"batch_size": 0}, "batch_size = 0 must be a whole number, 1 or more"),
        ({"weight_decay": -1}, "weight_decay = -1 must be a number, 0 or more"),
        ({"seed": None}, "seed = None must be a whole number"),
        ({"seed": "7"}, "seed = '7' must be a whole number"),
        ({"device": "tpu9"}, "device = 'tpu9' cannot be used here"),
    ],
)
def test_parameters_that_cannot_be_are_refused(tmp_path: Path, parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=re.escape(words)):
        model(run_dir=tmp_path / "run", **parameters).fit(X, Y)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingError, match=r"device = 'cuda' cannot be used here.*'auto' takes what there is"):
        model(device="cuda").fit(X, Y)


def test_numpy_numbers_are_numbers() -> None:
    numbers = {"epochs": np.int64(3), "lr": np.float64(0.1), "seed": np.int32(0)}
    assert (model(**numbers).fit(X, Y).predict_proba(X) == model().fit(X, Y).predict_proba(X)).all()


# -------------------------------------------------------------------- pictures


def pictures(count: int = 12, channels: int = 3, side: int = 16) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, side, side, channels), dtype=np.uint8)


def picture_model() -> Classifier:
    return model(epochs=1).fit(pictures(), Y[:12])


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_are_learned_saved_and_loaded(tmp_path: Path, channels: int) -> None:
    fitted = model(epochs=1).fit(pictures(channels=channels), Y[:12], validation=(pictures(4, channels), Y[:4]))
    probabilities = fitted.predict_proba(pictures(5, channels))
    assert probabilities.shape == (5, L)
    fitted.save(tmp_path)
    loaded = Classifier.load(tmp_path)
    assert (loaded.predict_proba(pictures(5, channels)) == probabilities).all()
    assert loaded.n_features_in_ == fitted.n_features_in_ == 16 * 16 * channels


@pytest.mark.parametrize(
    "bad",
    [
        pictures().astype(float),
        pictures(channels=4),
        pictures(side=8),
        pictures(count=0),
        pictures().transpose(0, 3, 1, 2),
    ],
)
def test_pictures_of_another_kind_are_refused(bad: npt.NDArray[Any]) -> None:
    with pytest.raises(DataError, match=r"X: images must be uint8 \[N, H, W, 1 or 3\], at least 16 x 16; got"):
        model().fit(bad, Y[: len(bad)])


def test_pictures_and_features_are_not_confused(tmp_path: Path) -> None:
    seen = picture_model()
    with pytest.raises(DataError, match=r"trained on pictures of \[3, 16, 16\]; these are pictures of \[3, 20, 20\]"):
        seen.predict(pictures(side=20))
    with pytest.raises(DataError, match=r"X has 2 dimensions; the model was trained on items of \[3, 16, 16\]"):
        seen.predict(np.zeros((4, 3)))
    with pytest.raises(DataError, match=r"trained on features of \[5\]; these are pictures of \[3, 16, 16\]"):
        model().fit(X, Y).predict(pictures())
    with pytest.raises(DataError, match=r"these are texts of .*\. If they are file names, read the files"):
        model().fit(X, Y).predict(["a.jpg", "b.jpg"])


def test_a_model_of_a_table_can_be_fitted_to_pictures_and_back() -> None:
    fitted = model(epochs=1).fit(pd.DataFrame(X, columns=list("abcde")), Y).fit(pictures(), Y[:12])
    assert (fitted.predict_proba(pictures()) == picture_model().predict_proba(pictures())).all()
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.fit(X, Y).predict(X).shape == (N, L)


# -------------------------------------------------------------------- saving, loading, going on


def test_save_and_load_give_the_same_model(tmp_path: Path) -> None:
    fitted = model(seed=3, settings={"gamma": 0.5}).fit(X, Labels.from_nan(Y, names=["a", "b", "ü"]), validation=(X, Y))
    fitted.save(tmp_path / "model")
    loaded = Classifier.load(tmp_path / "model")
    for ask in ("predict", "predict_proba", "decision_function"):
        assert (getattr(loaded, ask)(X) == getattr(fitted, ask)(X)).all()
    for attribute in ("label_names_", "history_", "best_epoch_", "method_", "n_features_in_", "beliefs_"):
        assert getattr(loaded, attribute) == getattr(fitted, attribute)
    assert loaded.fitted_.config.to_json() == fitted.fitted_.config.to_json()
    given = {name: value for name, value in fitted.get_params().items() if value is not None}
    same = {name: value for name, value in given.items() if name not in ("progress", "settings")}
    assert loaded.get_params() | same == loaded.get_params()
    assert loaded.settings["gamma"] == 0.5  # among all of them, spelled out
    loaded.save(tmp_path / "again")
    assert (Classifier.load(tmp_path / "again").predict_proba(X) == fitted.predict_proba(X)).all()
    with pytest.raises(CheckpointError, match="there is a run in this folder already"):
        loaded.save(tmp_path / "model")
    other = model(seed=4).fit(X, Y)
    other.save(tmp_path / "model", overwrite=True)
    assert (Classifier.load(tmp_path / "model").predict_proba(X) == other.predict_proba(X)).all()
    assert {path.name for path in tmp_path.iterdir()} == {"model", "again"}
    with pytest.raises(DataError, match="expecting 5 features"):
        loaded.predict(X[:, :3])


def test_what_was_saved_stays_where_the_new_model_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = model().fit(X, Y)
    fitted.save(tmp_path / "model")

    def full(*_: Any, **__: Any) -> None:
        raise CheckpointError("disk full")

    monkeypatch.setattr("partly.engine.training.save", full)
    with pytest.raises(CheckpointError, match="disk full"):
        fitted.save(tmp_path / "model", overwrite=True)
    assert (Classifier.load(tmp_path / "model").predict_proba(X) == fitted.predict_proba(X)).all()


def test_the_folder_of_a_training_is_not_overwritten(tmp_path: Path) -> None:
    fitted = model(run_dir=tmp_path / "run").fit(X, Y)
    with pytest.raises(CheckpointError, match=r"holds more than a saved model and is not overwritten: history\.json"):
        fitted.save(tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "history.json").exists()


def test_a_finished_run_is_a_model(tmp_path: Path) -> None:
    fitted = model(run_dir=tmp_path).fit(X, Y)
    assert (Classifier.load(tmp_path).predict_proba(X) == fitted.predict_proba(X)).all()
    with pytest.raises(CheckpointError, match="no run here"):
        Classifier.load(tmp_path / "nowhere")


def test_fitting_again_in_the_folder_takes_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = model(run_dir=tmp_path).fit(X, Y)
    monkeypatch.setattr(pipeline, "progress_callback", _signal_at(step=1))  # would stop at any step
    again = model(run_dir=tmp_path).fit(X, Y)
    assert (again.predict_proba(X) == first.predict_proba(X)).all()
    assert again.history_ == first.history_


def test_a_folder_of_other_data_is_refused(tmp_path: Path) -> None:
    model(run_dir=tmp_path).fit(X, Y)
    with pytest.raises(CheckpointError, match=r"holds another run; these differ:\n  data\.sha256"):
        model(run_dir=tmp_path).fit(X + 1, Y)
    with pytest.raises(CheckpointError, match=r"data\.labels_sha256"):
        model(run_dir=tmp_path).fit(X, partly_known(X, seed=1))
    with pytest.raises(CheckpointError, match=r"recipe\.epochs: 3 there, 4 now"):
        model(run_dir=tmp_path, epochs=4).fit(X, Y)


def _signal_at(step: int) -> Any:
    @contextmanager
    def progress_callback(*_: object) -> Iterator[Callable[[Clock, dict[str, float]], None]]:
        def watch(clock: Clock, _: dict[str, float]) -> None:
            if clock.epoch * clock.steps + clock.step == step:
                signal.raise_signal(signal.SIGINT)

        yield watch

    return progress_callback


@pytest.mark.parametrize("step", [1, 3, 5])
def test_ctrl_c_saves_and_fitting_again_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "progress_callback", _signal_at(step))
        with pytest.raises(Stopped, match="saved in"):
            model(run_dir=tmp_path, head="mlp").fit(X, Y, validation=(X[:9], Y[:9]))
        with pytest.raises(CheckpointError, match="training has not finished"):
            Classifier.load(tmp_path)
    resumed = model(run_dir=tmp_path, head="mlp").fit(X, Y, validation=(X[:9], Y[:9]))
    straight = model(head="mlp").fit(X, Y, validation=(X[:9], Y[:9]))
    assert (resumed.predict_proba(X) == straight.predict_proba(X)).all()
    assert resumed.history_ == straight.history_


def test_what_a_method_keeps_for_each_entry_is_counted_before_the_start() -> None:
    x, y = np.random.default_rng(0).normal(size=(4096, 2)), np.zeros((4096, 64))
    y[::2] = 1
    needed = {}
    for method in ("bce", "curriculum"):  # the latter keeps a byte per entry
        plan = Classifier(method, head="linear", start="random", epochs=1, batch_size=4096).resolve(x, y)
        needed[method] = plan.memory.total(copies=1)
    assert needed["curriculum"] == 3 * 4096 * 64  # and two for its beliefs
    assert needed["bce"] > 4096 * 64  # solved: the features and every entry, for a while
    started = Classifier("curriculum", head="linear", epochs=1).resolve(x, y).memory.total(copies=1)
    assert started > needed["curriculum"] + 4 * 4096 * 64  # it holds out-of-fold scores of its solved start


# -------------------------------------------------------------------- more items than scores can be held of


@pytest.mark.parametrize("calibrate", [None, "platt"])
def test_blocks_are_what_the_whole_is(calibrate: str | None) -> None:
    fitted = model(calibrate=calibrate, folds=2 if calibrate else None).fit(X, Y)
    many = items(seed=1, count=9000)
    blocks = list(fitted.predict_proba_blocks(many))
    assert [len(block) for block in blocks] == [4096, 4096, 808]
    np.testing.assert_array_equal(np.concatenate(blocks), fitted.predict_proba(many))
    np.testing.assert_array_equal(fitted.predict(many), fitted.predict_proba(many) >= 0.5)
    whole = metrics.evaluate(fitted.predict_proba(many), truth(many))
    assert metrics.evaluate(fitted.predict_proba_blocks(many), truth(many)) == whole
    with pytest.raises(DataError, match="X has 4 features"):
        fitted.predict_proba_blocks(many[:, :4])
    with pytest.raises(NotFittedError):
        model().predict_proba_blocks(many)
