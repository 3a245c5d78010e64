"""Heads that are linear in fixed features are solved, through the contract, the loop and the folder like any other
method."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression

from partly import Classifier, Labels, engine, methods
from partly.clock import Clock, seed_for
from partly.engine.training import Validation, train
from partly.errors import DataError
from partly.items import as_items
from partly.losses import terms
from partly.method import LossMethod
from partly.pool import Pool
from partly.solvers import folds
from partly.solvers.mlp_with_linear_path import MlpWithLinearPath
from partly.solvers.solved_readout import SolvedReadout
from plans import fit_config
from solvers.by_hand import calibrated, z_scored

RECIPE = engine.make_config("bce", "linear", epochs=2, batch_size=16)
KERNEL = engine.make_config("bce", "kernel", epochs=1, batch_size=16)


def data(seed: int = 0, items: int = 80) -> tuple[np.ndarray, Labels]:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(items, 5)) * [1, 10, 100, 1, 1] + [0, 3, -50, 9, 1]).astype(np.float32)
    y = (x - x.mean(axis=0)) / x.std(axis=0) @ rng.normal(size=(5, 3)) + 0.3 * rng.normal(size=(items, 3)) > 0
    return x, Labels.from_nan(np.where(rng.random(y.shape) < 0.7, y, np.nan))


@pytest.mark.parametrize(
    ("recipe", "kind"),
    [
        (RECIPE, SolvedReadout),
        (KERNEL, SolvedReadout),
        (replace(RECIPE, method="partial-bce", settings={}), SolvedReadout),
        (replace(KERNEL, head_settings={"solve": False}), LossMethod),
        (replace(RECIPE, head_settings={"solve": False}), LossMethod),
        (replace(RECIPE, optimizer="sgd"), LossMethod),
        (replace(RECIPE, method="focal", settings={}), LossMethod),  # not convex
        (engine.make_config("bce", "mlp"), MlpWithLinearPath),  # a path of it
        (engine.make_config("bce", "mlp", head_settings={"solve": False}), LossMethod),
    ],
)
def test_what_is_solved(recipe: engine.ResolvedConfig, kind: type) -> None:
    x, labels = data()
    assert type(engine.build_method(recipe, as_items(x), 3, labels)) is kind


def test_pictures_and_what_is_too_large_are_trained_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = data()
    pictures = as_items(np.zeros((80, 16, 16, 3), np.uint8))
    assert (
        type(engine.build_method(engine.make_config("bce", "linear", backbone="small-conv"), pictures, 3, labels))
        is LossMethod
    )
    monkeypatch.setattr("partly.solvers.solved_readout.MAX_BYTES", 100)
    for recipe in (RECIPE, KERNEL, engine.make_config("bce", "mlp")):
        assert type(engine.build_method(recipe, as_items(x), 3, labels)) is LossMethod


def test_it_is_scikit_learns_minimum_at_the_chosen_strength() -> None:
    x, labels = data()
    fitted = fit_config(RECIPE, as_items(x), labels)
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
    whole = fit_config(RECIPE, as_items(x), labels, validation=Validation(as_items(x), labels))

    def interrupt(clock: object, logs: object) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        fit_config(RECIPE, as_items(x), labels, folder=tmp_path, save_seconds=0, callback=interrupt)
    again = fit_config(RECIPE, as_items(x), labels, folder=tmp_path)
    loaded = engine.load(tmp_path)
    for other in (again, loaded):
        assert torch.equal(whole.method.network.head.weight, other.method.network.head.weight)
    assert (loaded.predict(as_items(x)) == whole.predict(as_items(x))).all()


def test_sparse_features_are_solved_as_dense_ones_are() -> None:
    """They are not centred, but the bias is free: it makes no difference. Their scale is common to all features, so the
    features of this test have one."""
    x, labels = data()
    x[:, 2] = np.where(x[:, 2] > 0, x[:, 2], 0)
    x /= x.std(axis=0)
    dense, sparse = (fit_config(RECIPE, as_items(kind(x)), labels) for kind in (np.asarray, sp.csr_array))
    expected = dense.logits(as_items(x))
    found = sparse.logits(as_items(sp.csr_array(x)))
    np.testing.assert_allclose(found, expected, atol=0.05 * np.abs(expected).max())


def test_the_strength_is_in_the_history() -> None:
    x, labels = data()
    fitted = fit_config(RECIPE, as_items(x), labels)
    assert {"epoch", "loss", "strength"} <= set(fitted.progress.history[0])
    assert fitted.progress.history[0]["strength"] > 0


# -------------------------------------------------------------------- time, memory, and what is held out


def test_a_step_for_each_kind_of_features_and_one_epoch() -> None:
    x, labels = data()
    for recipe, kinds in ((RECIPE, 1), (KERNEL, 5)):
        method = engine.build_method(recipe, as_items(x), 3, labels)
        assert method.steps(Pool(as_items(x), labels, 16)) == len(method.spans) == kinds
    for head in ("linear", "kernel"):
        asked = {"method": "bce", "head": head}
        assert engine.resolve_config(engine.TrainConfig(**asked), as_items(x), labels)[0].epochs == 1
        assert engine.resolve_config(engine.TrainConfig(**(asked | {"epochs": 3})), as_items(x), labels)[0].epochs == 3


def test_further_epochs_change_nothing() -> None:
    x, labels = data()
    for recipe in (RECIPE, KERNEL):
        one, three = (fit_config(replace(recipe, epochs=n), as_items(x), labels) for n in (1, 3))
        assert (one.logits(as_items(x)) == three.logits(as_items(x))).all()


@pytest.mark.parametrize(("recipe", "kept"), [(RECIPE, 4), (KERNEL, 20)])
def test_what_is_kept_is_what_is_said(recipe: engine.ResolvedConfig, kept: int) -> None:
    """A held-out score of 4 bytes for every entry and kind of features, and nothing in the model."""
    x, labels = data()
    method = engine.build_method(recipe, as_items(x), 3, labels)
    assert sum(tensor.nbytes for tensor in method.entries().values()) == kept * 80 * 3
    assert methods.find("bce").memory(engine.make_task(recipe, as_items(x), 3, labels), {})[0] == kept * 80 * 3
    assert not any("held_out" in name for name in method.weights())


def test_what_is_held_out_is_what_folds_say() -> None:
    x, labels = data()
    fitted = fit_config(RECIPE, as_items(x), labels)
    z = labels.rows(slice(None)).T
    scaled = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
    fold = folds.assign_folds(80, seed_for(0, "folds"))
    expected = folds.solve(scaled, (z != 0).astype(np.float32), (z > 0).astype(np.float32), fold)
    assert fitted.method.losses.item() == pytest.approx(expected.loss, rel=1e-3)
    assert fitted.out_of_fold is not None
    found = fitted.out_of_fold - fitted.method.bias.numpy()
    np.testing.assert_allclose(found, expected.held_out.T, atol=0.02 * np.abs(expected.held_out).max())


def test_kinds_of_features_are_blended_by_what_each_is_worth() -> None:
    """The logits are the calibrated sum of z-scored held-out scores, and those of new items by the same lines."""
    x, labels = data()
    items, pool = as_items(x), Pool(as_items(x), labels, 16)
    method = engine.build_method(KERNEL, items, 3, labels)
    names = list(method.spans)
    for name in names:
        method.solve(pool, name)
    parts = [method.network.features(torch.from_numpy(x)) @ _only(method, name).T for name in names]
    method.blend(pool)
    z = labels.rows(slice(None)).T
    weights, targets = (z != 0).astype(float), (z > 0).astype(float)
    prior = calibrated(np.zeros(z.shape), weights, targets)[0]
    gains = np.array([1 - calibrated(method.read_held_out(name), weights, targets)[0] / prior for name in names])
    counts = np.exp((gains - gains.max()) / (0.05 * gains.max()))
    counts /= counts.sum()
    np.testing.assert_allclose(method.counts, counts, atol=5e-3)
    together = sum(c * z_scored(method.read_held_out(name)) for c, name in zip(counts, names, strict=True))
    _, slope, biases = calibrated(together, weights, targets)
    expected = slope * z_scored(together) + biases[:, None]
    np.testing.assert_allclose(method.out_of_fold().T, expected, atol=0.05 * np.abs(expected).max())
    by_parts = sum((s * part for s, part in zip(method.slopes, parts, strict=True)), method.bias)
    torch.testing.assert_close(method(torch.from_numpy(x)), by_parts, rtol=1e-3, atol=1e-3)


def _only(method: SolvedReadout, name: str) -> torch.Tensor:
    """The read-out of one kind of features, and 0 for the others."""
    weight = torch.zeros_like(method.network.head.weight)
    weight[:, method.spans[name]] = method.network.head.weight.detach()[:, method.spans[name]]
    return weight


def test_weights_and_targets_are_the_terms_of_the_loss() -> None:
    x, labels = data()
    method = engine.build_method(
        engine.spell_out(replace(RECIPE, method="down-weight", settings={})), as_items(x), 3, labels
    )
    weights, targets = method.weights_and_targets(Pool(as_items(x), labels, 7))
    for found, expected in zip(
        (weights, targets), terms.down_weight(torch.tensor(labels.rows(slice(None)))), strict=True
    ):
        assert found.shape == (3, 80)
        np.testing.assert_array_equal(found.T, expected)


def test_a_learning_rate_of_nothing_learns_nothing() -> None:
    x, labels = data()
    method = engine.build_method(replace(KERNEL), as_items(x), 3, labels)
    object.__setattr__(method.task.config, "lr", 0.0)  # a caller cannot ask for it
    task = method.task
    still = methods.find("bce").build(task, {})
    before = {name: tensor.clone() for name, tensor in still.state().items()}
    train(still, Pool(as_items(x), labels, 16), Clock(0, 1, 5))
    assert all(torch.equal(tensor, before[name]) for name, tensor in still.state().items())


@pytest.mark.parametrize("head", ["linear", "kernel", "mlp"])
def test_the_largest_features_are_solved_and_larger_ones_refused(head: str) -> None:
    """Near the limit of float32 the distance from the mean is infinite, and eigenvectors were asked for of that."""
    x = np.random.default_rng(0).normal(size=(40, 3))
    y = np.column_stack([x[:, 0] > 0, x[:, 1] > 0])
    x[:, 2] = np.where(np.arange(40) > 0, 1e37, -1e37)
    model = Classifier("bce", head=head, epochs=1, progress=False).fit(x, y)
    assert ((model.predict_proba(x) > 0.5) == y).mean() > 0.9
    with pytest.raises(DataError, match=r"too large .*\n  item 0, feature 2: -3e\+38"):
        model.fit(np.where(np.abs(x) > 1e30, 30 * x, x), y)


def test_dropped_kernels_are_saved_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With many items a kernel machine of negligible weight keeps no landmarks; predictions survive a round trip."""
    monkeypatch.setattr("partly.solvers.solved_readout.MANY_ITEMS", 1)
    monkeypatch.setattr("partly.solvers.blending.NEGLIGIBLE", 0.2)
    x, labels = data()
    model = Classifier("bce", head="kernel", progress=False).fit(x, labels)
    method = model.fitted_.method
    assert isinstance(method, SolvedReadout)
    unused = {name for name, count in zip(method.spans, method.counts, strict=True) if not count}
    kernels = {name: part[-1] for name, part in method.union.parts.items() if not name.startswith("linear")}
    assert {name for name, kernel in kernels.items() if not len(kernel.landmarks)} == unused & set(kernels)
    assert unused & set(kernels)
    model.save(tmp_path / "run")
    loaded = Classifier.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.predict_proba(x), model.predict_proba(x))
