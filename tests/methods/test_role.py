"""role: the loss of both sides, an Adam that touches nobody else, first estimates, and the linear phase."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from conformance.bench import copied, differing, make_clock, make_pool, make_task, observed, x_of
from losses.cases import no, sigmoid, yes
from partly import training
from partly.clock import Clock
from partly.items import absent
from partly.methods.role import Role
from partly.pool import Batch


def started(z: np.ndarray | None = None, **settings: float) -> Role:
    pool = make_pool(z)
    made = Role(make_task(pool), **settings)
    made.begin_epoch(pool, make_clock(pool))
    return made


def test_first_estimates() -> None:
    z = torch.from_numpy(observed())
    first = torch.sigmoid(started().estimates)
    torch.testing.assert_close(first[z == 1], torch.full_like(first[z == 1], 0.995))
    torch.testing.assert_close(first[z == -1], torch.full_like(first[z == -1], 0.005))
    unknown = first[z == 0]
    assert 0.4 <= unknown.min() < 0.43 < 0.57 < unknown.max() <= 0.6
    assert torch.equal(started().estimates, started().estimates)


def test_expected_yes_is_guessed_from_what_is_known() -> None:
    z = observed()
    share = (z == 1).sum() / (z != 0).sum()
    assert started().expected.item() == pytest.approx(5 * share, rel=1e-6)
    assert started(np.maximum(z, 0)).expected.item() == pytest.approx((z == 1).sum() / len(z), rel=1e-6)
    assert started(expected_yes=1.5).expected.item() == 1.5


def test_loss_and_gradients_of_a_batch() -> None:
    """Against the formula in float64, with what each side takes from the other held fixed."""
    made = started(expected_yes=2.0).double().eval()
    index = torch.tensor([4, 7, 2])
    z = torch.tensor([[1, -1, 0, 0, 0], [0, 0, 0, 1, -1], [0, 0, 0, 0, 0]], dtype=torch.int8)
    f = made(x_of(make_pool().items)[index].double()).detach().requires_grad_()
    g = made.estimates[index].clone().requires_grad_()
    total = 0.0
    for own, other in ((f.tolist(), g.tolist()), (g.tolist(), f.tolist())):
        predicted = sum(sigmoid(x) for row in own for x in row) / 3
        total += 0.5 * ((predicted - 2.0) / 5) ** 2
        for i, row in enumerate(own):
            for j, x in enumerate(row):
                t = sigmoid(other[i][j])
                known = {1: yes(x), -1: no(x), 0: 0.0}[int(z[i, j])]
                total += 0.5 * (known + t * yes(x) + (1 - t) * no(x)) / 15
    loss = (made._side(f, g, z) + made._side(g, f, z)) / 2
    assert loss.item() == pytest.approx(total, rel=1e-9)
    loss.backward()
    for own, other in ((f, g), (g, f)):
        p, t = torch.sigmoid(own.detach()), torch.sigmoid(other.detach())
        pull = p - t + torch.where(z == 1, p - 1, 0) + torch.where(z == -1, p, 0)
        count = 2 * (p.sum(dim=1).mean() - 2.0) / 25 * p * (1 - p) / 3
        torch.testing.assert_close(own.grad, 0.5 * (pull / 15 + count))


def test_update_uses_that_loss_and_moves_only_its_items() -> None:
    made = started().eval()
    pool, index = make_pool(), torch.tensor([4, 7, 2])
    batch = pool.take(index)
    f, g = made(batch.x), made.estimates[index]
    expected = (made._side(f, g, batch.z) + made._side(g, f, batch.z)).item() / 2
    before = copied(made.entries())
    logs = made.update(batch, make_clock(pool))
    assert logs["loss"] == pytest.approx(expected, rel=1e-6)
    others = torch.ones(len(pool), dtype=torch.bool)
    others[index] = False
    for name in ("estimates", "moment", "squares", "visits"):
        then, now = before[f"entries.{name}"], getattr(made, name)
        assert torch.equal(then[others], now[others])
        assert (then[index] != now[index]).all()


def test_its_adam_is_adam_where_every_item_is_visited() -> None:
    made = started()
    parameter = torch.nn.Parameter(made.estimates.clone())
    adam = torch.optim.Adam([parameter], lr=0.03, eps=1e-12)
    everyone = torch.randperm(len(parameter), generator=torch.Generator().manual_seed(0))
    for step in range(5):
        gradient = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(step + 1))
        parameter.grad = gradient
        adam.step()
        made._move(everyone, gradient[everyone], 0.03)
    torch.testing.assert_close(made.estimates, parameter.detach())


def test_estimates_move_at_their_own_rate() -> None:
    """The first step of Adam is as long as its rate: `step` at the height of the schedule."""
    made, pool = started(step=0.2).eval(), make_pool()
    clock = Clock(0, epochs=10, steps=10**6, epoch=0, step=500_000)  # the warm-up ends here
    before = made.estimates.clone()
    made.update(pool.take(torch.arange(len(pool))), clock)
    torch.testing.assert_close((made.estimates - before).abs(), torch.full_like(before, 0.2), rtol=1e-3, atol=0)


def test_beliefs_are_what_was_observed_and_the_estimates() -> None:
    made = started()
    z = torch.from_numpy(observed())
    beliefs = made.beliefs()
    assert torch.equal(beliefs[z != 0], (z[z != 0] == 1).float())
    assert torch.equal(beliefs[z == 0], torch.sigmoid(made.estimates)[z == 0])


# -------------------------------------------------------------------- linear initialisation


@pytest.mark.parametrize(
    ("share", "epochs", "phases"),
    [
        (0.7, 10, [(True, e, 7) for e in range(7)] + [(False, e, 3) for e in range(3)]),
        (0.0, 3, [(False, 0, 3), (False, 1, 3), (False, 2, 3)]),
        (1.0, 2, [(True, 0, 1), (False, 0, 1)]),  # the last epoch is always of the second phase
        (0.7, 1, [(False, 0, 1)]),
    ],
)
def test_phases(share: float, epochs: int, phases: list[tuple[bool, int, int]]) -> None:
    made = started(linear_share=share)
    found = []
    for epoch in range(epochs):
        linear, clock = made._phase(Clock(5, epochs, steps=3, epoch=epoch, step=2))
        assert (clock.seed, clock.steps, clock.step) == (5, 3, 2)
        found.append((linear, clock.epoch, clock.epochs))
    assert found == phases


def test_linear_phase_trains_the_linear_network_and_hands_on_the_estimates() -> None:
    pool = make_pool()
    made = Role(make_task(pool), linear_share=0.5)
    first = copied(made.state())
    held: list[dict[str, Tensor]] = []
    training.train(made, pool, make_clock(pool, epochs=4), watch=lambda clock, _: held.append(copied(made.state())))
    half = held[2 * pool.steps - 1]
    changed = {name.split(".")[1] for name in differing(first, half)}
    assert "linear" in changed
    assert "network" not in changed
    changed = {name.split(".")[1] for name in differing(half, held[-1])}
    assert "network" in changed
    assert "linear" not in changed
    step = held[2 * pool.steps]["entries.estimates"] - half["entries.estimates"]
    assert 0 < step.abs().max() < 0.5 < (half["entries.estimates"] - first["entries.estimates"]).abs().max()
    assert type(made.linear.features[-1]) is torch.nn.Identity


def test_a_saved_model_with_a_linear_phase_loads() -> None:
    pool = make_pool()
    made = Role(make_task(pool), linear_share=0.5)
    training.train(made, pool, make_clock(pool))
    again = Role(dataclasses.replace(make_task(pool), items=absent(pool.items)), linear_share=0.5)
    again.load_state(copied(made.state()))
    assert not differing(made.state(), again.state())
    batch = Batch(x_of(pool.items)[:2], torch.from_numpy(observed()[:2]), torch.arange(2))
    assert math.isfinite(again.update(batch, make_clock(pool))["loss"])
