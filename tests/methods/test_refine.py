"""refine: one step by hand, what becomes of pseudo-labels, and what is learned where nothing is wholly known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from conformance.bench import copied, differing, make_clock, make_pool, make_task, observed, trained, truth, x_of
from partly import methods
from partly.clock import Clock
from partly.engine import training
from partly.errors import SettingError
from partly.items import as_items
from partly.labels import Labels
from partly.methods import refine
from partly.methods.refine import Refine
from partly.pool import Pool
from plans import task_of

LR = 0.05


def one_step(**settings: Any) -> tuple[Refine, Refine, Pool]:
    """A linear network before and after the only step of a run."""
    pool = make_pool(batch_size=100)
    before, after = (Refine(make_task(pool, head="linear", lr=LR, optimizer="sgd"), **settings) for _ in range(2))
    training.train(after, pool, make_clock(pool, epochs=1))
    return before, after, pool


def parts(method: Refine, pool: Pool) -> tuple[Tensor, Tensor, Tensor]:
    """Standardised items with a 1 behind, z, and the weights with the bias behind: x [N, D], z [N, L], w [L, D]."""
    x = method.network.features(x_of(pool.items)).detach().double()
    weights = torch.cat([method.network.head.weight, method.network.head.bias[:, None]], dim=1).detach().double()
    return F.pad(x, (0, 1), value=1.0), torch.from_numpy(observed()), weights


def slopes(x: Tensor, z: Tensor, weights: Tensor, pseudo: Tensor) -> Tensor:
    """Equation 8 for a linear network, entry by entry: the step of one entry is along its item's features."""
    fine = (z != 0).all(dim=1)
    target, rate = (z[fine] > 0).double(), make_task(make_pool(), lr=LR).learning_rate(Clock(0))
    ahead = weights - rate * (torch.sigmoid(x @ weights.T) - pseudo).T @ x / pseudo.numel()
    downhill = (torch.sigmoid(x[fine] @ ahead.T) - target).T @ x[fine] / target.numel()
    result = torch.empty_like(pseudo)
    for i in range(len(x)):
        for j in range(z.shape[1]):
            result[i, j] = rate / pseudo.numel() * (downhill[j] @ x[i])
    return result


@pytest.mark.parametrize("settings", [{"rate": 1.0}, {"rate": 0.3, "start": 0.4}, {"rate": 0.3, "sharpness": 2.0}])
def test_pseudo_labels_after_one_step(settings: dict[str, Any]) -> None:
    before, after, pool = one_step(**settings)
    x, z, weights = parts(before, pool)
    first = torch.where(z == 0, settings.get("start", 0.5), (z > 0).double())
    slope = slopes(x, z, weights, first)
    better = (slope <= 0).double()
    if "sharpness" in settings:
        better = torch.sigmoid(-settings["sharpness"] * slope / slope.abs().mean())
    expected = torch.where(z == 0, first + settings["rate"] * (better - first), first)
    torch.testing.assert_close(after.pseudo.double(), expected, rtol=1e-4, atol=1e-5)
    assert len(expected[z == 0].unique()) > 1  # not all the same


@pytest.mark.parametrize("fine_weight", [0.0, 0.7])
def test_the_real_step_is_from_the_old_weights_with_the_new_labels(fine_weight: float) -> None:
    before, after, pool = one_step(fine_weight=fine_weight)
    x, z, weights = parts(before, pool)
    fine = (z != 0).all(dim=1)
    weights.requires_grad_()
    loss = F.binary_cross_entropy_with_logits(x @ weights.T, after.pseudo.double())
    loss = loss + fine_weight * F.binary_cross_entropy_with_logits(x[fine] @ weights.T, (z[fine] > 0).double())
    loss.backward()
    assert weights.grad is not None
    rate, decay = before.task.learning_rate(make_clock(pool, epochs=1)), before.task.config.weight_decay
    expected = weights - rate * (weights.grad + decay * weights)
    torch.testing.assert_close(parts(after, pool)[2], expected.detach(), rtol=1e-4, atol=1e-5)


def test_pseudo_labels_stay_between_visits() -> None:
    pool = make_pool()
    method = Refine(make_task(pool), rate=0.5)
    clock = make_clock(pool)
    method.begin_epoch(pool, clock)
    batch = next(iter(pool.batches(clock)))
    next(method.epoch(pool, clock))
    visited = torch.zeros(len(pool), dtype=torch.bool)
    visited[batch.index] = True
    unknown = torch.from_numpy(observed()) == 0
    assert (method.pseudo[unknown & ~visited[:, None]] == 0.5).all()
    moved = method.pseudo[unknown & visited[:, None]]
    assert len(moved)
    assert set(moved.tolist()) <= {0.25, 0.75}


def test_where_no_item_is_wholly_known_it_is_bce() -> None:
    z = observed()
    z[:, 0] = 0
    pool = make_pool(z)
    steps = {"head": "mlp", "head_settings": {"hidden": 16, "solve": False}}  # else bce has a solved path beside it
    own, plain = (trained(methods.find(name), pool, **steps) for name in ("refine", "bce"))
    assert differing(own.weights(), plain.weights()) == []
    assert (own.beliefs()[torch.from_numpy(z) == 0] == 0.5).all()


def test_of_many_wholly_known_items_some_judge() -> None:
    pool = make_pool(truth())
    few, other, all_of_them = (trained_with(pool, fine_items=count) for count in (3, 3, 100))
    assert differing(few, other) == []
    assert differing(few, all_of_them)


def test_the_same_items_judge_throughout_an_epoch_and_others_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    judges: list[list[float]] = []

    def noted(network: Any, x: Tensor, pseudo: Tensor, x_val: Tensor, z_val: Tensor, lr: float) -> Tensor:
        judges.append(sorted(x_val[:, 0].tolist()))
        return torch.zeros_like(pseudo)

    monkeypatch.setattr(refine, "pseudo_label_gradient", noted)
    pool = make_pool(truth())
    clock = make_clock(pool, epochs=2)
    training.train(Refine(make_task(pool), fine_items=3), pool, clock)
    first, second = judges[: pool.steps], judges[pool.steps :]
    assert len(first) == len(second) > 1
    assert all(one == first[0] for one in first)
    assert all(one == second[0] for one in second)
    assert first[0] != second[0]


def trained_with(pool: Pool, **settings: Any) -> dict[str, Tensor]:
    method = Refine(make_task(pool), fine_weight=1.0, **settings)
    training.train(method, pool, make_clock(pool))
    return copied(method.state())


def test_hidden_labels_are_found() -> None:
    """A third of the entries is known to be no, of 20 of 300 items all is known; most of the rest is told rightly."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 5)).astype(np.float32)
    z = np.where(x @ rng.normal(size=(5, 4)) > 0, 1, -1).astype(np.int8)
    seen = np.where((z == -1) & (rng.random(z.shape) < 0.7), z, 0)
    seen[:20] = z[:20]
    pool = Pool(as_items(x), Labels.from_ternary(seen), 30)
    method = Refine(task_of(pool.items, z.shape[1], "linear", lr=0.05, observed=pool.labels), fine_weight=0.2)
    training.train(method, pool, Clock(0, 10, pool.steps))
    hidden = seen == 0
    right = (method.beliefs().numpy() > 0.5) == (z == 1)
    assert right[hidden].mean() > max(0.85, (z == 1)[hidden].mean() + 0.05)  # more than yes everywhere


@pytest.mark.parametrize("wrong", [{"rate": 1.5}, {"ahead": 0.0}, {"fine_items": 0}, {"start": -1.0}])
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        Refine(make_task(make_pool()), **wrong)
