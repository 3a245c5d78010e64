"""Scores of training entries by models that have not seen the item: by hand, after a kill, and through `Classifier`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from partly import Classifier, engine
from partly.clock import Clock, seed_for
from partly.engine import pipeline
from partly.errors import CheckpointError, SettingError
from partly.items import Items, as_items
from partly.labels import Labels
from plans import fit_config, plan_of

RECIPE = engine.make_config(
    "bce", "mlp", epochs=2, batch_size=8, lr=0.05, head_settings={"hidden": 6, "dropout": 0.0, "solve": False}
)
N, L, FOLDS = 23, 3, 3


def data() -> tuple[Items, Labels]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 4)).astype(np.float32)
    return as_items(x), Labels.from_nan(np.where(rng.random((N, L)) < 0.7, x[:, :L] > 0, np.nan))


def folds_of(count: int = FOLDS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed_for(seed, "cross-fit")).permutation(np.arange(N) % count)


def model(**more: Any) -> Classifier:
    settings = {"hidden": 6, "dropout": 0.0, "solve": False}
    plain = {"method": "bce", "head": "mlp", "head_settings": settings, "epochs": 2, "batch_size": 8, "lr": 0.05}
    return Classifier(**(plain | {"progress": False} | more))


# -------------------------------------------------------------------- by hand


def test_each_fold_is_scored_by_a_fit_to_the_rest() -> None:
    x, labels = data()
    found = engine.cross_fit(plan_of(RECIPE, x, labels), FOLDS)
    fold = folds_of()
    assert sorted(np.bincount(fold)) == [7, 8, 8]
    for k in range(FOLDS):
        rest, out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        expected = fit_config(RECIPE, x[rest], labels[rest]).logits(x[out])
        assert (found[out] == expected).all()
    assert found.dtype == np.float32


def test_an_items_own_labels_change_no_bit_of_its_scores() -> None:
    x, labels = data()
    one = engine.cross_fit(plan_of(RECIPE, x, labels), FOLDS)
    own = folds_of() == 1
    z = labels.rows(slice(None))
    other_labels = Labels.from_ternary(np.where(own[:, None], -z, z).astype(np.int8))
    other = engine.cross_fit(plan_of(RECIPE, x, other_labels), FOLDS)
    assert (one[own] == other[own]).all()
    assert (one[~own] != other[~own]).any(axis=1).all()


def test_folds_follow_the_seed() -> None:
    x, labels = data()
    assert (folds_of(seed=0) != folds_of(seed=1)).any()
    other = replace(RECIPE, seed=1)
    found = engine.cross_fit(plan_of(other, x, labels), FOLDS)
    out = np.flatnonzero(folds_of(seed=1) == 0)
    rest = np.flatnonzero(folds_of(seed=1) != 0)
    assert (found[out] == fit_config(other, x[rest], labels[rest]).logits(x[out])).all()


def test_one_item_at_a_time() -> None:
    x, labels = data()
    recipe = replace(RECIPE, epochs=1)
    found = engine.cross_fit(plan_of(recipe, x, labels), N)
    rest = np.arange(N) != 4
    assert (found[4:5] == fit_config(recipe, x[rest.nonzero()[0]], labels[rest.nonzero()[0]]).logits(x[4:5])).all()


@pytest.mark.parametrize("folds", [-1, 0, 1, N + 1])
def test_folds_that_cannot_be_are_refused(tmp_path: Path, folds: int) -> None:
    with pytest.raises(SettingError, match=rf"folds = {folds} must be a whole number from 2 to .* items, {N}\."):
        model(folds=folds, run_dir=tmp_path / "run").fit(_x(), data()[1])
    assert not (tmp_path / "run").exists()


# -------------------------------------------------------------------- in a folder


class Interrupted(Exception):
    pass


def test_after_a_kill_it_goes_on_where_it_was(tmp_path: Path) -> None:
    x, labels = data()
    whole = engine.cross_fit(plan_of(RECIPE, x, labels), FOLDS)
    steps: list[tuple[int, int]] = []

    def watch(clock: Clock, _: object) -> None:
        steps.append((clock.epoch, clock.step))
        if len(steps) == 5:  # each fold has 2 x 2 steps: this is the first of the second
            raise Interrupted

    with pytest.raises(Interrupted):
        engine.cross_fit(plan_of(RECIPE, x, labels), FOLDS, folder=tmp_path, callback=watch)
    assert engine.load(tmp_path / f"fold-1-of-{FOLDS}").progress.finished
    assert not (tmp_path / "out_of_fold.npy").exists()
    again: list[int] = []
    found = engine.cross_fit(
        plan_of(RECIPE, x, labels), FOLDS, folder=tmp_path, callback=lambda clock, _: again.append(clock.epoch)
    )
    assert again == [0, 0, 1, 1] * 2  # the first fold was done
    assert (found == whole).all()
    assert (np.load(tmp_path / "out_of_fold.npy") == whole).all()
    assert (engine.cross_fit(plan_of(RECIPE, x, labels), FOLDS, folder=tmp_path, callback=_nobody) == whole).all()


def _nobody(*_: object) -> None:
    raise AssertionError("nothing is left to train")


def test_other_folds_in_the_same_folder_are_other_scores(tmp_path: Path) -> None:
    """What was made of other folds is never taken for what is asked for now."""
    x, labels = data()
    first = engine.cross_fit(plan_of(RECIPE, x, labels), FOLDS, folder=tmp_path)
    found = engine.cross_fit(plan_of(RECIPE, x, labels), FOLDS + 1, folder=tmp_path)
    assert (found == engine.cross_fit(plan_of(RECIPE, x, labels), FOLDS + 1)).all()
    assert (found != first).any()


def test_what_was_written_is_checked_before_it_is_believed(tmp_path: Path) -> None:
    x, labels = data()
    fit_config(RECIPE, x, labels, folder=tmp_path)
    assert engine.load(tmp_path).out_of_fold is None
    scores = engine.cross_fit(plan_of(RECIPE, x, labels), FOLDS, folder=tmp_path)
    found = engine.load(tmp_path).out_of_fold
    assert isinstance(found, np.memmap)
    assert (found == scores).all()
    path = tmp_path / "out_of_fold.npy"
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:140] + bytes([whole[140] ^ 1]) + whole[141:], None):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        loaded = engine.load(tmp_path)
        assert loaded.predict(x).shape == (N, L)  # predicting needs none of it
        with pytest.raises(CheckpointError, match=r"out_of_fold.npy: missing or damaged"):
            loaded.out_of_fold  # noqa: B018


# -------------------------------------------------------------------- Classifier


def _x() -> np.ndarray:
    return data()[0].take(slice(None)).numpy()


def test_a_classifier_with_folds_has_scores_out_of_fold(tmp_path: Path) -> None:
    x, labels = data()
    fitted = model(folds=FOLDS).fit(_x(), labels)
    expected = engine.cross_fit(plan_of(fitted.fitted_.config, x, labels), FOLDS)
    assert (fitted.out_of_fold_ == expected).all()
    assert (fitted.decision_function(_x()) == model().fit(_x(), labels).decision_function(_x())).all()
    in_folder = model(folds=FOLDS, run_dir=tmp_path).fit(_x(), labels)
    for one in (in_folder, Classifier.load(tmp_path), model(folds=FOLDS, run_dir=tmp_path).fit(_x(), labels)):
        assert (one.out_of_fold_ == expected).all()


def test_without_folds_it_says_how_to_get_them() -> None:
    fitted = model().fit(_x(), data()[1])
    with pytest.raises(AttributeError, match=r"out_of_fold_: bce trains no such models by itself\. Fit with folds=5\."):
        fitted.out_of_fold_  # noqa: B018
    assert not hasattr(fitted, "out_of_fold_")


def test_what_is_solved_has_them_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "cross_fit", _nobody)
    labels = data()[1]
    solved, asked = (model(head="linear", head_settings=None, folds=f).fit(_x(), labels) for f in (None, 4))
    assert solved.out_of_fold_.shape == (N, L)
    assert (solved.out_of_fold_ == asked.out_of_fold_).all()


@pytest.mark.parametrize("attribute", ["portfolio_", "criterion_"])
def test_only_a_portfolio_tells_of_one(attribute: str) -> None:
    fitted = model().fit(_x(), data()[1])
    with pytest.raises(AttributeError, match=rf"{attribute}: only a portfolio .* has one; this is bce"):
        getattr(fitted, attribute)
    with pytest.raises(NotFittedError):
        getattr(model(), attribute)


@pytest.mark.parametrize("attribute", ["out_of_fold_", "beliefs_"])
def test_nothing_is_told_before_fitting(attribute: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(model(), attribute)


def test_thresholds_decide_what_is_called_yes() -> None:
    fitted = model().fit(_x(), data()[1])
    assert fitted.thresholds_.tolist() == [0.5] * L
    p = fitted.predict_proba(_x())
    assert (fitted.predict(_x()) == (p >= 0.5)).all()
    middle = np.sort(p, axis=0)
    fitted.thresholds_ = ((middle[5] + middle[6]) / 2).astype(np.float32)  # between two items of each label
    assert fitted.predict(_x()).sum(axis=0).tolist() == [N - 6] * L
    fitted.thresholds_ = np.array([0.0, 1.0, 0.5], np.float32)
    assert fitted.predict(_x())[:, :2].tolist() == [[1, 0]] * N
