"""Splits of items and of entries, and scores by models that have not seen them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.model_selection import cross_val_predict as of_scikit_learn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import partly
from partly import Classifier, Labels, PerLabel, metrics
from partly.errors import LabelError, SettingError
from partly.model_selection import EntrySplit, YesStratifiedKFold, cross_val_predict

N, L = 60, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
TRUTH = (X[:, :L] > 0.3).astype(float)
Y = np.where(RNG.random((N, L)) < 0.7, TRUTH, np.nan)
MODEL = Classifier("bce", head="linear", progress=False)


@st.composite
def partly_known(draw: st.DrawFn) -> Labels:
    shape = draw(st.integers(4, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    z = rng.integers(-1, 2, shape)
    z[0, 0], z[1, 0] = 1, -1
    return Labels.from_ternary(sp.csr_array(z) if draw(st.booleans()) else z)


@given(partly_known(), st.integers(2, 4), st.integers(0, 9))
def test_every_item_is_held_out_once(labels: Labels, folds: int, seed: int) -> None:
    splits = list(YesStratifiedKFold(folds, seed).split(None, labels))
    assert sorted(np.concatenate([out for _, out in splits]).tolist()) == list(range(len(labels)))
    for learned, judged in splits:
        assert sorted([*learned, *judged]) == list(range(len(labels)))
    again = YesStratifiedKFold(folds, seed).split(None, labels)
    assert all((a[1] == b[1]).all() for a, b in zip(splits, again, strict=True))


@given(partly_known(), st.integers(2, 4), st.integers(0, 9))
def test_every_known_entry_is_held_out_once_and_nothing_is_made_up(labels: Labels, folds: int, seed: int) -> None:
    z, total = labels.rows(slice(None)), np.zeros(labels.shape, int)
    if np.count_nonzero(z) < folds:
        return
    for learned, judged in EntrySplit(folds, seed).split(None, labels):
        a, b = learned.rows(slice(None)), judged.rows(slice(None))
        assert (a + b == z).all()
        assert not (a * b).any()
        total += b != 0
        for value in (1, -1):  # of each label, yes and no are dealt out evenly
            held = (b == value).sum(axis=0)
            share = (z == value).sum(axis=0) / folds
            assert (np.abs(held - share) < 1).all()
    assert (total == (z != 0)).all()


def test_rare_yes_are_spread_over_the_folds() -> None:
    """100 items of which 10 have a rare yes, and 5 of these one that is rarer still."""
    z = np.zeros((100, 3))
    z[:10, 0], z[:5, 1], z[50:, 2] = 1, 1, 1
    splits = list(YesStratifiedKFold(5).split(None, Labels.from_positives(z)))
    assert [z[out].sum(axis=0).tolist() for _, out in splits] == [[2, 1, 10]] * 5
    assert [len(out) for _, out in splits] == [20] * 5


@pytest.mark.parametrize("seed", range(5))
def test_yes_are_spread_also_where_folds_have_unequal_room(seed: int) -> None:
    """7 items of a rarer label leave folds of 5 with unequal room; the 10 yes of the next are spread all the same."""
    z = np.zeros((40, 2))
    z[:7, 0], z[7:17, 1] = 1, 1
    splits = YesStratifiedKFold(5, seed).split(None, Labels.from_positives(z))
    assert [int(z[out, 1].sum()) for _, out in splits] == [2] * 5


def test_scikit_learn_takes_the_splitter_of_items_where_a_number_fails() -> None:
    with pytest.raises(ValueError, match="NaN"), np.errstate(invalid="ignore"):
        cross_val_score(MODEL, X, Y, cv=3)
    with pytest.raises(LabelError, match="YesStratifiedKFold"):
        cross_val_score(MODEL, X, Labels.from_nan(Y), cv=3)
    folds = YesStratifiedKFold(3)
    scores = cross_val_score(MODEL, X, Labels.from_nan(Y), cv=folds, scoring=metrics.scorer())
    for score, (learned, judged) in zip(scores, folds.split(X, Y), strict=True):
        assert score == clone(MODEL).fit(X[learned], Y[learned]).score(X[judged], Y[judged])
    search = GridSearchCV(MODEL, {"seed": [0, 1]}, cv=folds, scoring=metrics.scorer()).fit(X, Y)
    assert search.n_splits_ == 3


@pytest.mark.parametrize("method", ["predict_proba", "decision_function", "predict"])
@pytest.mark.parametrize("labels", [1, 2, 3])
def test_of_complete_labels_it_is_what_scikit_learn_does(method: str, labels: int) -> None:
    y = TRUTH[:, :labels]
    wanted = of_scikit_learn(MODEL, X, y, cv=KFold(3), method=method)
    assert wanted.shape == (N, labels)
    assert (cross_val_predict(MODEL, X, y, cv=KFold(3), method=method) == wanted).all()


def test_unknown_entries_stay_unknown() -> None:
    """scikit-learn numbers the classes of a column, unknown as one of them."""
    with pytest.raises(LabelError, match=r"take that of partly\.model_selection"):
        of_scikit_learn(MODEL, X, Y, cv=KFold(3), method="predict_proba")
    for wrap in (lambda y: y, Labels.from_nan, pd.DataFrame):
        found = cross_val_predict(MODEL, X, wrap(Y), cv=KFold(3))
        for learned, judged in KFold(3).split(X):
            assert (found[judged] == clone(MODEL).fit(X[learned], Y[learned]).predict_proba(X[judged])).all()
    found = cross_val_predict(MODEL, pd.DataFrame(X), Y, sample_weight=np.arange(N))
    assert metrics.evaluate(found, Y)["mAP"] > 0.8
    assert not (found == cross_val_predict(MODEL, X, Y)).all()


def test_entries_are_scored_by_who_has_not_seen_them() -> None:
    split, labels = EntrySplit(3), Labels.from_nan(Y)
    found = cross_val_predict(MODEL, X, labels, cv=split)
    each = []
    for learned, judged in split.split(X, labels):
        each.append(clone(MODEL).fit(X, learned).predict_proba(X))
        at = judged.rows(slice(None)) != 0
        assert (found[at] == each[-1][at]).all()
    unknown = np.isnan(Y)
    np.testing.assert_allclose(found[unknown], np.mean(each, axis=0)[unknown], rtol=1e-6)
    with pytest.raises(SettingError, match="Ask for scores"):
        cross_val_predict(MODEL, X, Y, cv=split, method="predict")


@pytest.mark.parametrize("splitter", [YesStratifiedKFold, EntrySplit])
@pytest.mark.parametrize("count", [1, 0, 1000, 2.5, True])
def test_impossible_numbers_of_folds(splitter: Any, count: Any) -> None:
    with pytest.raises(SettingError, match="n_splits"):
        list(splitter(count).split(X, Y))


# -------------------------------------------------------------------- the rest of scikit-learn's contract


def test_weights_and_validation_are_routed() -> None:
    weight = np.where(np.arange(N) < 30, 1.0, 0.0)
    steps = Classifier("bce", head="linear", head_settings={"solve": False}, epochs=3, lr=0.1, progress=False)
    with config_context(enable_metadata_routing=True):
        asked = clone(steps).set_fit_request(sample_weight=True, validation=True)
        routed = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asked).fit(
            X, Y, sample_weight=weight, validation=(X, Y)
        )
        scores = cross_val_score(
            clone(MODEL).set_fit_request(sample_weight=True), X, Y, cv=KFold(3), params={"sample_weight": weight}
        )
    by_hand = clone(steps).fit(StandardScaler().fit_transform(X), Y, sample_weight=weight, validation=(X, Y))
    assert (routed.predict_proba(X) == by_hand.predict_proba(StandardScaler().fit(X).transform(X))).all()
    assert routed[-1].best_epoch_ is not None
    for score, (learned, judged) in zip(scores, KFold(3).split(X), strict=True):
        fitted = clone(MODEL).fit(X[learned], Y[learned], sample_weight=weight[learned])
        assert score == fitted.score(X[judged], Y[judged])


@pytest.mark.parametrize("model", [MODEL, PerLabel(LogisticRegression(), progress=False)])
def test_predictions_as_tables(model: Any) -> None:
    rows = pd.DataFrame(X, index=[f"item {i}" for i in range(N)], columns=list("abcd"))
    known = pd.DataFrame(Y, index=rows.index, columns=["cat", "dog", "boat"])
    fitted = clone(model).fit(rows, known)
    arrays = {name: getattr(fitted, name)(rows) for name in ("predict", "predict_proba", "decision_function")}
    fitted.set_output(transform="pandas")
    for name, array in arrays.items():
        table = getattr(fitted, name)(rows)
        assert isinstance(array, np.ndarray)
        assert list(table.columns) == ["cat", "dog", "boat"]
        assert list(table.index) == list(rows.index)
        assert (table.to_numpy() == array).all()
    assert fitted.score(rows, known) == clone(fitted).fit(rows, known).score(rows, known)
    assert isinstance(clone(fitted).fit(rows, known).predict(rows), pd.DataFrame)  # clones keep it
    assert isinstance(fitted.set_output(transform="default").predict(rows), np.ndarray)
    with pytest.raises(SettingError, match="polars"):
        fitted.set_output(transform="polars")


@pytest.mark.parametrize("model", [MODEL, PerLabel(LogisticRegression(), progress=False)])
def test_one_dimension_is_one_label(model: Any) -> None:
    column = clone(model).fit(X, Y[:, :1]).predict_proba(X)
    assert column.shape == (N, 1)
    for y in (Y[:, 0], Y[:, 0].tolist(), pd.Series(Y[:, 0])):
        assert (clone(model).fit(X, y).predict_proba(X) == column).all()
    named = clone(model).fit(X, pd.Series(Y[:, 0], name="cat"))
    assert named.label_names_ == ("cat",)
    assert named.score(X, Y[:, 0]) == metrics.evaluate(column, Y[:, :1])["mAP"]


@pytest.mark.parametrize("model", [MODEL, PerLabel(LogisticRegression(), progress=False)])
def test_partial_fit_is_not_there_and_says_what_is(model: Any) -> None:
    assert not hasattr(model, "partial_fit")  # tools that look for it find none
    with pytest.raises(AttributeError, match=r"Give all of them to fit.*partly\.active\.Loop"):
        model.partial_fit(X, Y)


def test_scores_by_folds_take_a_number_of_folds_and_a_name() -> None:
    """scikit-learn's own function stops at NaN with either."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    y = np.where(rng.random((60, 2)) < 0.6, (x[:, :2] > 0).astype(float), np.nan)
    model = partly.Classifier("bce", head="linear", progress=False)
    scores = partly.model_selection.cross_val_score(model, x, y, scoring="f1_macro", cv=3)
    folds = partly.model_selection.YesStratifiedKFold(3).split(x, partly.Labels.from_nan(y))
    by_hand = []
    for train, test in folds:
        probabilities = clone(model).fit(x[train], y[train]).predict_proba(x[test])
        known = ~np.isnan(y[test])
        f1 = [f1_score(y[test][k, j], probabilities[k, j] >= 0.5) for j, k in enumerate(known.T)]
        by_hand.append(np.mean(f1))
    np.testing.assert_allclose(scores, by_hand)
    with pytest.raises(SettingError, match="f1_macro"):
        partly.model_selection.cross_val_score(model, x, y, scoring="f1_makro")
