"""The meaning of `weight_decay` where a head is solved, where it is refused; `random_state`, an alias of `seed`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from partly import Classifier, metrics
from partly.errors import SettingError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 6)) * [1, 2, 3, 1, 1, 1]
Y = (X[:, :2] + RNG.normal(size=(150, 2)) > 0).astype(float)


def model(**more: Any) -> Classifier:
    return Classifier(**{"method": "bce", "head": "linear", "progress": False, **more})


@pytest.mark.parametrize("decay", [0.001, 0.1, 3.0])
def test_a_solved_head_has_the_penalty_that_is_asked_for(decay: float) -> None:
    """The mean loss and decay / 2 * |w|^2: scikit-learn's C is one over decay and the number of items."""
    fitted = model(weight_decay=decay).fit(X, Y)
    x = StandardScaler().fit_transform(X)
    for label in range(2):
        yardstick = LogisticRegression(C=1 / (decay * len(X)), tol=1e-8).fit(x, Y[:, label])
        np.testing.assert_allclose(fitted.predict_proba(X)[:, label], yardstick.predict_proba(x)[:, 1], atol=1e-2)
    assert fitted.history_[0]["strength"] == pytest.approx(1 / (decay * len(X)))


@pytest.mark.parametrize("head", ["linear", "kernel", "auto"])
def test_left_open_it_is_found_by_folds(head: str) -> None:
    method = "auto" if head == "auto" else "bce"
    found = model(method=method, head=head).fit(X, Y).predict_proba(X)
    weak, strong = (model(method=method, head=head, weight_decay=d).fit(X, Y).predict_proba(X) for d in (1e-4, 10))
    assert not np.allclose(weak, strong, atol=0.01)
    assert not np.allclose(found, strong, atol=0.01)


def test_no_decay_is_next_to_none() -> None:
    x = np.r_[X, X][:, :1]
    assert np.isfinite(model(weight_decay=0).fit(x, (x > 0).astype(float)).predict_proba(x)).all()


def test_a_search_sees_the_difference() -> None:
    grid = {"weight_decay": [1e-3, 100.0]}
    search = GridSearchCV(model(), grid, scoring=metrics.scorer("CF1"), cv=KFold(3)).fit(X, Y)
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0.01
    assert search.best_params_ == {"weight_decay": 1e-3}


@pytest.mark.parametrize(("method", "setting"), [("per-label", "c"), ("leml", "ridge")])
def test_methods_with_a_penalty_of_their_own_refuse_it(method: str, setting: str) -> None:
    with pytest.raises(SettingError, match=rf"weight_decay = 0.1: {method} .*--setting {setting}="):
        model(method=method, weight_decay=0.1).fit(X, Y)


@pytest.mark.parametrize("decay", [None, 0.05])
def test_a_loaded_model_fits_again_to_the_same_bits(decay: float | None, tmp_path: Path) -> None:
    fitted = model(weight_decay=decay).fit(X, Y)
    fitted.save(tmp_path / "m")
    loaded = Classifier.load(tmp_path / "m")
    assert loaded.weight_decay == decay
    np.testing.assert_array_equal(clone(loaded).fit(X, Y).predict_proba(X), fitted.predict_proba(X))


def test_another_penalty_is_another_run(tmp_path: Path) -> None:
    from partly.errors import CheckpointError

    model(weight_decay=0.1, run_dir=tmp_path).fit(X, Y)
    model(weight_decay=0.1, run_dir=tmp_path).fit(X, Y)
    with pytest.raises(CheckpointError, match=r"recipe\.penalty: 0.1 there, 0.2 now"):
        model(weight_decay=0.2, run_dir=tmp_path).fit(X, Y)


# ---------------------------------------------------------------- random_state


def test_random_state_is_the_seed() -> None:
    def scores(**more: Any) -> Any:
        return model(method="em", head="mlp", epochs=1, **more).fit(X, Y).predict_proba(X)

    np.testing.assert_array_equal(scores(random_state=3), scores(seed=3))
    np.testing.assert_array_equal(scores(random_state=3, seed=3), scores(seed=3))
    np.testing.assert_array_equal(scores(random_state=0), scores())
    assert not np.array_equal(scores(random_state=3), scores(random_state=4))


def test_random_state_is_a_parameter_like_any_other() -> None:
    made = model(random_state=5)
    assert made.get_params()["random_state"] == 5
    assert clone(made).set_params(random_state=6).random_state == 6
    assert made.seed == 0


@pytest.mark.parametrize("state", ["a", 1.5, True, np.random.RandomState(0)])
def test_other_states_are_refused(state: Any) -> None:
    with pytest.raises(SettingError, match=r"random_state = .* must be a whole number"):
        model(random_state=state).fit(X, Y)


def test_two_seeds_are_refused() -> None:
    with pytest.raises(SettingError, match="seed = 1 and random_state = 2 are two names"):
        model(seed=1, random_state=2).fit(X, Y)
