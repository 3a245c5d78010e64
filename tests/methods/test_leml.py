"""leml: each half-turn is an exact solve, the objective falls at each, and in the end it is the direct solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from conformance.bench import ITEMS, LABELS, make_clock, make_pool, make_task, observed, truth, x_of
from partly.engine import training
from partly.methods.leml import Leml
from partly.pool import Pool

WIDTH = 6


def made(pool: Pool, **settings: Any) -> Leml:
    """A method in the middle of its way, so that nothing is 0."""
    method = Leml(make_task(pool), **settings)
    generator = torch.Generator().manual_seed(3)
    method.h.normal_(generator=generator)
    method.bias.normal_(generator=generator)
    return method


def standardized_x(pool: Pool) -> np.ndarray:
    x = x_of(pool.items).double().numpy()
    return (x - x.mean(axis=0)) / x.std(axis=0)


def objective(method: Leml, pool: Pool) -> float:
    """Entry by entry, as the paper has it."""
    x, z = standardized_x(pool), pool.labels.ternary()
    w, h, bias = (weight.double().numpy() for weight in (method.w, method.h, method.bias))
    total = method.ridge / 2 * ((w**2).sum() + (h**2).sum() + (bias**2).sum())
    for i in range(ITEMS):
        for j in range(LABELS):
            score = x[i] @ w.T @ h[j] + bias[j]
            if z[i, j]:
                total += (score - z[i, j]) ** 2 / 2 if method.fit == "squared" else np.log1p(np.exp(-z[i, j] * score))
    return total


def test_h_is_the_direct_solution() -> None:
    pool = make_pool()
    method = made(pool, rank=3, ridge=0.7)
    expected = objective(method, pool)
    assert method.solve_h(pool) == pytest.approx(expected, rel=1e-5)  # the objective before
    z = observed()
    design = np.hstack([standardized_x(pool) @ method.w.double().numpy().T, np.ones((ITEMS, 1))])
    for j in range(LABELS):
        known = z[:, j] != 0
        # A ridge is 4 more equations, sqrt(ridge) h = 0.
        rows = np.vstack([design[known], np.sqrt(0.7) * np.eye(4)])
        solution = np.linalg.lstsq(rows, np.append(z[known, j], np.zeros(4)), rcond=None)[0]
        np.testing.assert_allclose([*method.h[j], method.bias[j]], solution, rtol=1e-4, atol=1e-5)


def test_w_is_the_direct_solution() -> None:
    pool = make_pool()
    method = made(pool, rank=3, ridge=0.7, iterations=100)
    method.solve_w(pool)
    x, z, h, bias = standardized_x(pool), observed(), method.h.double().numpy(), method.bias.double().numpy()
    known = np.argwhere(z != 0)
    rows = np.array([np.outer(h[j], x[i]).ravel() for i, j in known])
    targets = np.array([z[i, j] - bias[j] for i, j in known])
    size = 3 * WIDTH
    rows, targets = np.vstack([rows, np.sqrt(0.7) * np.eye(size)]), np.append(targets, np.zeros(size))
    solution = np.linalg.lstsq(rows, targets, rcond=None)[0]
    np.testing.assert_allclose(method.w.numpy().ravel(), solution, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("fit", ["squared", "logistic"])
@pytest.mark.parametrize("iterations", [1, 10])
def test_the_objective_falls_at_every_half_turn(fit: str, iterations: int) -> None:
    pool = make_pool()
    method = made(pool, rank=2, ridge=0.5, fit=fit, iterations=iterations)
    seen = [objective(method, pool)]
    for _ in range(8):
        for solve in (method.solve_h, method.solve_w):
            assert solve(pool) == pytest.approx(seen[-1], rel=1e-5)
            seen.append(objective(method, pool))
    falls = np.diff(seen)
    assert (falls < 1e-6 * seen[0]).all()
    assert (falls[:8] < 0).all()
    assert seen[-1] < 0.8 * seen[1]


def test_with_everything_known_and_full_rank_it_is_least_squares() -> None:
    pool = make_pool(truth())
    method = made(pool, rank=LABELS, ridge=1e-6, iterations=50)
    for _ in range(30):
        method.solve_h(pool)
        method.solve_w(pool)
    design = np.hstack([standardized_x(pool), np.ones((ITEMS, 1))])
    fitted = design @ np.linalg.lstsq(design, truth().astype(float), rcond=None)[0]
    np.testing.assert_allclose(method(x_of(pool.items)).numpy(), fitted, atol=1e-3)


def test_logistic_ends_where_nothing_slopes() -> None:
    pool = make_pool()
    method = made(pool, rank=2, ridge=1.0, fit="logistic", iterations=20)
    for _ in range(300):
        method.solve_h(pool)
        method.solve_w(pool)
    z = torch.from_numpy(observed())
    weights = [weight.detach().requires_grad_() for weight in (method.w, method.h, method.bias)]
    scores = torch.from_numpy(standardized_x(pool)).float() @ weights[0].T @ weights[1].T + weights[2]
    total = F.softplus(-z * scores)[z != 0].sum() + sum(weight.square().sum() for weight in weights) / 2
    total.backward()
    assert all(weight.grad.abs().max() < 1e-2 for weight in weights)


def test_one_turn_an_epoch() -> None:
    """H in the first step, W in the second; or both in the only one."""
    for batch_size, steps in ((8, 3), (ITEMS, 1)):
        pool = make_pool(batch_size=batch_size)
        by_hand, method = (Leml(make_task(pool), rank=2) for _ in range(2))
        losses = [(by_hand.solve_h(pool), by_hand.solve_w(pool)) for _ in range(2)]
        seen: list[float] = []
        training.train(
            method, pool, make_clock(pool), callback=lambda clock, logs, seen=seen: seen.append(logs["loss"])
        )
        assert torch.equal(by_hand.w, method.w)
        assert torch.equal(by_hand.h, method.h)
        wanted = [value / (ITEMS * LABELS) for h, w in losses for value in ((h, w, w) if steps == 3 else (w,))]
        assert seen == pytest.approx(wanted, rel=1e-6)


def test_rank_is_at_most_what_there_is() -> None:
    assert Leml(make_task(make_pool()), rank=100).w.shape == (LABELS, WIDTH)


@pytest.mark.parametrize("fit", ["squared", "logistic"])
def test_known_entries_alone_give_the_same(fit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where few are known the others are not touched; sums are made in another order, and nothing else differs."""
    found = []
    for share, block in ((0.0, 1 << 21), (2.0, 1), (2.0, 2 * 16 * 8)):  # all items, a batch, or two batches at a time
        monkeypatch.setattr("partly.methods.leml.SPARSE_SHARE", share)
        monkeypatch.setattr("partly.methods.leml.BLOCK", block)
        pool = make_pool()
        method = made(pool, rank=3, fit=fit)
        totals = [method.solve_h(pool), method.solve_w(pool)]
        found.append([torch.tensor(totals), method.w.clone(), method.h.clone(), method.bias.clone()])
    for dense, *others in zip(*found, strict=True):
        for sparse in others:
            torch.testing.assert_close(sparse, dense, rtol=1e-5, atol=1e-6)
