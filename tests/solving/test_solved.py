"""A linear head under a convex loss is solved, through the contract, the loop and the folder like any other method."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression

from partly import Classifier, Labels, run
from partly.items import as_items
from partly.method import LossMethod, SolvedLinear
from partly.training import Validation

RECIPE = run.Recipe("bce", "linear", epochs=2, batch_size=16)


def data(seed: int = 0, items: int = 80) -> tuple[np.ndarray, Labels]:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(items, 5)) * [1, 10, 100, 1, 1] + [0, 3, -50, 9, 1]).astype(np.float32)
    y = (x - x.mean(axis=0)) / x.std(axis=0) @ rng.normal(size=(5, 3)) + 0.3 * rng.normal(size=(items, 3)) > 0
    return x, Labels.from_nan(np.where(rng.random(y.shape) < 0.7, y, np.nan))


@pytest.mark.parametrize(
    ("recipe", "kind"),
    [
        (RECIPE, SolvedLinear),
        (replace(RECIPE, method="partial-bce", settings={}), SolvedLinear),
        (replace(RECIPE, head_settings={"solve": False}), LossMethod),
        (replace(RECIPE, optimizer="sgd"), LossMethod),
        (replace(RECIPE, method="focal", settings={}), LossMethod),  # not convex
        (run.Recipe("bce", "mlp"), LossMethod),
    ],
)
def test_what_is_solved(recipe: run.Recipe, kind: type) -> None:
    x, labels = data()
    assert type(recipe.build(as_items(x), 3, labels)) is kind


def test_pictures_and_what_is_too_large_are_trained_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = data()
    pictures = as_items(np.zeros((80, 16, 16, 3), np.uint8))
    assert type(replace(RECIPE, backbone="small-conv").build(pictures, 3, labels)) is LossMethod
    monkeypatch.setattr("partly.method.SOLVED_BYTES", 100)
    assert type(RECIPE.build(as_items(x), 3, labels)) is LossMethod


def test_it_is_scikit_learns_minimum_at_the_chosen_strength() -> None:
    x, labels = data()
    fitted = run.fit(RECIPE, as_items(x), labels)
    strength = fitted.progress.history[-1]["strength"]
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    for j in range(3):
        z = labels.rows(slice(None))[:, j]
        other = LogisticRegression(C=strength, tol=1e-8).fit(scaled[z != 0], z[z != 0] > 0)
        expected = other.decision_function(scaled)
        np.testing.assert_allclose(fitted.logits(as_items(x))[:, j], expected, atol=0.05 * np.abs(expected).max())


def test_far_better_than_wandering() -> None:
    """400 x 4 normal features, y = x > 0, all known: what the steps of before ended at 0.71 with."""
    x = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
    model = Classifier("bce", head="linear", progress=False).fit(x[:300], x[:300] > 0)
    assert model.score(x[300:], x[300:] > 0) > 0.99


def test_it_goes_on_and_is_loaded_like_every_run(tmp_path: Path) -> None:
    x, labels = data()
    whole = run.fit(RECIPE, as_items(x), labels, validation=Validation(as_items(x), labels))

    def interrupt(clock: object, logs: object) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        run.fit(RECIPE, as_items(x), labels, folder=tmp_path, save_seconds=0, watch=interrupt)
    again = run.fit(RECIPE, as_items(x), labels, folder=tmp_path)
    loaded = run.load(tmp_path)
    for other in (again, loaded):
        assert torch.equal(whole.method.network.head.weight, other.method.network.head.weight)
    assert (loaded.predict(as_items(x)) == whole.predict(as_items(x))).all()


def test_sparse_features_are_solved_as_dense_ones_are() -> None:
    """They are not centred, but the bias is free: it makes no difference."""
    x, labels = data()
    x[:, 2] = np.where(x[:, 2] > 0, x[:, 2], 0)
    dense, sparse = (run.fit(RECIPE, as_items(kind(x)), labels) for kind in (np.asarray, sp.csr_array))
    expected = dense.logits(as_items(x))
    found = sparse.logits(as_items(sp.csr_array(x)))
    np.testing.assert_allclose(found, expected, atol=0.05 * np.abs(expected).max())


def test_the_strength_is_in_the_history() -> None:
    x, labels = data()
    fitted = run.fit(RECIPE, as_items(x), labels)
    assert {"epoch", "loss", "strength"} <= set(fitted.progress.history[0])
    assert fitted.progress.history[0]["strength"] > 0
