"""role: the loss of both sides, an Adam that touches nobody else, first estimates, and the linear phase."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from conformance.bench import copied, differing, make_clock, make_pool, make_task, observed, x_of
from losses.cases import no, sigmoid, yes
from partly.clock import Clock
from partly.engine import training
from partly.items import Absent, Items, as_items, to_absent
from partly.labels import Labels
from partly.methods.role import Role, label_frequency, out_of_fold
from partly.pool import Batch, Pool
from partly.solvers import folds
from plans import task_of
from solvers.by_hand import calibrated, z_scored


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


def test_expected_yes_where_some_no_is_known() -> None:
    z = observed()
    share = (z == 1).sum() / (z != 0).sum()
    assert started().expected.item() == pytest.approx(5 * share, rel=1e-6)
    assert started(expected_yes=1.5).expected.item() == 1.5


def with_hidden_yes(known: float, items: int = 1200) -> tuple[Items, np.ndarray, np.ndarray]:
    """Features that tell four labels well, the truth, and a share of its yes, drawn by chance."""
    rng = np.random.default_rng(0)
    truth = rng.random((items, 4)) < [0.1, 0.2, 0.3, 0.6]
    x = (2 * truth - 1) @ rng.normal(size=(4, 8)) + 0.5 * rng.normal(size=(items, 8))
    return as_items(x.astype(np.float32)), truth, (truth & (rng.random(truth.shape) < known)).astype(np.int8)


@pytest.mark.parametrize("known", [0.25, 0.5, 1.0])
def test_expected_yes_where_only_yes_is_known(known: float) -> None:
    items, truth, z = with_hidden_yes(known)
    pool = make_pool(z, items)
    found = Role(make_task(pool))._estimate_yes_per_item(pool)
    assert found == pytest.approx(truth.sum() / len(truth), rel=0.2)
    assert found >= z.sum() / len(z)
    sparse = Labels.from_ternary(sp.csr_array(z))
    assert Role(make_task(pool))._estimate_yes_per_item(Pool(items, sparse, 8)) == found


def test_the_known_share_is_counted_among_the_highest_scores() -> None:
    """The same by loops: the best tenth of the known yes, and what else scores no less than the last of them."""
    items, _, z = with_hidden_yes(0.5)
    x, yes = x_of(items).numpy(), z == 1
    targets = yes.T.astype(np.float32)
    ones = np.ones_like(targets)
    scores = folds.solve(x, ones, targets, folds.assign_folds(len(x), 3)).held_out
    _, slope, biases = calibrated(scores, ones, targets)  # else labels could not be compared
    held = slope * z_scored(scores) + biases[:, None]
    entries = sorted(((held[j, i], bool(yes[i, j])) for i in range(len(x)) for j in range(4)), reverse=True)
    wanted = math.ceil(0.1 * yes.sum())
    assert wanted > 50
    seen = hits = 0
    while hits < wanted:
        hits += entries[seen][1]
        seen += 1
    assert label_frequency(out_of_fold(x, yes, 3), yes) == pytest.approx(hits / seen, abs=0.005)


def test_expected_yes_of_awkward_pools() -> None:
    """Nothing known; only yes and everything of it; pictures, of which there are no features yet."""
    assert started(np.zeros((22, 5), np.int8)).expected.item() == 0
    assert started(np.ones((22, 5), np.int8)).expected.item() == 5
    assert started(np.ones((1, 1), np.int8)).expected.item() == 1
    z = np.maximum(observed(), 0)
    assert started(z).expected.item() >= z.sum() / len(z)
    pictures = as_items(np.random.default_rng(0).integers(0, 256, (len(z), 16, 16, 3), dtype=np.uint8))
    pool = make_pool(z, pictures)
    assert Role(make_task(pool))._estimate_yes_per_item(pool) == pytest.approx(z.sum() / len(z))


def test_no_more_than_half_of_the_labels_are_expected() -> None:
    """Features that say nothing: what scores highest is known by chance alone."""
    rng = np.random.default_rng(0)
    z = np.zeros((300, 40), np.int8)
    z[np.arange(300), rng.integers(0, 40, 300)] = 1
    pool = make_pool(z, as_items(rng.normal(size=(300, 5)).astype(np.float32)))
    assert 1 < Role(make_task(pool))._estimate_yes_per_item(pool) <= 20


def test_memory_of_the_estimate_does_not_grow_with_the_items() -> None:
    few_items, many_items = (task_of(Absent("features", (4,), items), 50) for items in (2000, 10**6))
    few, many = (Role.memory(task, {"expected_yes": None}) for task in (few_items, many_items))
    assert many == (12 * 50 * 10**6, few[1])
    assert many[1] > 0
    assert Role.memory(many_items, {"expected_yes": 2.0})[1] == 0
    known_no = dataclasses.replace(many_items, observed=Labels.from_full([[1, 0]]))
    assert Role.memory(known_no, {"expected_yes": None})[1] == 0  # then it is counted


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
    training.train(made, pool, make_clock(pool, epochs=4), callback=lambda clock, _: held.append(copied(made.state())))
    half = held[2 * pool.steps - 1]
    changed = {name.split(".")[1] for name in differing(first, half)}
    assert "linear" in changed
    assert "network" not in changed
    changed = {name.split(".")[1] for name in differing(half, held[-1])}
    assert "network" in changed
    assert "linear" not in changed
    step = held[2 * pool.steps]["entries.estimates"] - half["entries.estimates"]
    assert 0 < step.abs().max() < 0.5 < (half["entries.estimates"] - first["entries.estimates"]).abs().max()
    (only,) = made.linear.features[-1].parts.values()
    assert type(only) is torch.nn.Identity


def test_a_saved_model_with_a_linear_phase_loads() -> None:
    pool = make_pool()
    made = Role(make_task(pool), linear_share=0.5)
    training.train(made, pool, make_clock(pool))
    again = Role(dataclasses.replace(make_task(pool), items=to_absent(pool.items)), linear_share=0.5)
    again.load_state(copied(made.state()))
    assert not differing(made.state(), again.state())
    batch = Batch(x_of(pool.items)[:2], torch.from_numpy(observed()[:2]), torch.arange(2))
    assert math.isfinite(again.update(batch, make_clock(pool))["loss"])
