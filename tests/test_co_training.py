"""Two networks: how they start, step and predict, and what the methods with two networks choose items by."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from conformance.bench import differing, logits_of, make_clock, make_pool, make_task, x_of
from losses.cases import inputs, no, sigmoid, yes
from partly import co_training, losses
from partly.clock import Clock
from partly.co_training import Predict, TwoNetworks
from partly.networks import Network


class Alone(TwoNetworks):
    """Two networks that have nothing to do with each other; in odd epochs nothing is chosen."""

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor | None:
        both = losses.assume_negative(f, z).mean() + losses.assume_negative(g, z).mean()
        return None if clock.epoch % 2 else both


@given(st.floats(-30, 30), st.floats(-30, 30))
def test_mean_probability(one: float, other: float) -> None:
    found = co_training.mean_probability(*torch.tensor([one, other], dtype=torch.float64)).item()
    yes, no = sigmoid(one) + sigmoid(other), sigmoid(-one) + sigmoid(-other)
    assert found == pytest.approx(math.log(yes / no), rel=1e-9, abs=1e-9)


def test_mean_probability_of_the_sure() -> None:
    one = torch.tensor([1e4, -1e4, 1e4, 0.0, 100.0])
    other = torch.tensor([1e4, -1e4, -1e4, 0.0, -1e4])
    # Half of almost 1 is a little less than one half; two that are equal stay what they are.
    assert co_training.mean_probability(one, other).tolist() == pytest.approx([1e4, -1e4, 0.0, 0.0, 0.0], abs=1e-6)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_a_step_changes_each_network_as_if_it_were_alone(optimizer: str) -> None:
    pool = make_pool()
    task = make_task(pool, optimizer=optimizer)
    clock = make_clock(pool)
    made = Alone(task, "mean").eval()
    batches = [pool.take(torch.arange(8)), pool.take(torch.arange(8, 16))]
    logs = [made.update(batch, clock)["loss"] for batch in batches]
    singles = []
    for role, trained in (("f", made.f), ("g", made.g)):
        network = task.network(role).eval()
        optimizer = task.make_optimizer(network.parameters())
        for batch in batches:
            loss = losses.assume_negative(network(batch.x), batch.z).mean()
            made.step(loss, clock, optimizer)
            singles.append(loss.item())
        for name, weight in network.named_parameters():
            torch.testing.assert_close(trained.get_parameter(name), weight, rtol=1e-5, atol=1e-6)
    assert logs == pytest.approx([(singles[0] + singles[2]) / 2, (singles[1] + singles[3]) / 2], rel=1e-5)


def test_nothing_changes_where_nothing_is_chosen() -> None:
    pool = make_pool()
    made = Alone(make_task(pool), "mean")
    made.update(pool.take(torch.arange(8)), make_clock(pool))  # the optimizer has its momentum
    before = {name: tensor.clone() for name, tensor in made.state().items()}
    assert made.update(pool.take(torch.arange(8)), Clock(0, 2, 3, epoch=1)) == {"loss": 0.0}
    assert not differing(before, made.state())


@pytest.mark.parametrize("predict", ["mean", "f", "g"])
def test_each_can_be_asked(predict: Predict) -> None:
    x = x_of(make_pool().items)
    made = Alone(make_task(make_pool()), predict).eval()
    f, g = made.f(x), made.g(x)
    assert not torch.allclose(f, g)
    mean = torch.special.logit((torch.sigmoid(f) + torch.sigmoid(g)) / 2)
    torch.testing.assert_close(logits_of(made, x), {"mean": mean, "f": f, "g": g}[predict])


def test_both_hear_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = make_pool()
    made = Alone(make_task(pool), "mean")
    heard = []
    whole = Network.forward

    def listening(self: Network, x: Tensor, z: Tensor | None = None) -> Tensor:
        heard.append((self, z))
        return whole(self, x, z)

    monkeypatch.setattr(Network, "forward", listening)
    batch = pool.take(torch.arange(4))
    made.update(batch, make_clock(pool))
    made(batch.x, batch.z)
    assert [network for network, _ in heard] == [made.f, made.g] * 2
    assert all(z is batch.z for _, z in heard)


def test_a_pair_without_a_loss_is_refused() -> None:
    pool = make_pool()
    with pytest.raises(NotImplementedError, match="TwoNetworks does not define loss"):
        TwoNetworks(make_task(pool), "mean").update(pool.take(torch.arange(4)), make_clock(pool))


# -------------------------------------------------------------------- schedule and choice


@pytest.mark.parametrize(
    ("epochs", "ramp", "values"),
    [
        (100, 0.1, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0]),
        (10, 0.5, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0]),
        (10, 0.1, [0.0, 1.0, 1.0]),
        (10, 0.25, [0.0, 0.4, 0.8, 1.0]),
        (4, 1.0, [0.0, 0.25, 0.5, 0.75]),
        (3, 0.0, [1.0, 1.0, 1.0]),
    ],
)
def test_the_rise_epoch_by_epoch(epochs: int, ramp: float, values: list[float]) -> None:
    for epoch, value in enumerate(values):
        for step in (0, 6):  # the same for all steps of an epoch
            assert co_training.ramp_up(Clock(0, epochs, 7, epoch, step), ramp) == pytest.approx(value)


def test_disagreement_is_in_any_label_at_one_half() -> None:
    f = torch.tensor([[1.0, -1.0, 2.0], [0.1, -1.0, 0.2], [-3.0, -3.0, -3.0], [5.0, 5.0, 5.0]])
    g = torch.tensor([[9.0, -0.1, 0.5], [0.1, -1.0, -0.2], [-0.1, -4.0, -9.0], [-1.0, -1.0, -1.0]])
    assert co_training.disagree(f, g).tolist() == [False, True, False, True]


@given(inputs(), st.sampled_from([1.0, 0.75, 0.5, 0.0]), st.booleans())
def test_cross_selection_against_loops(case: tuple[Tensor, Tensor], keep: float, only_some: bool) -> None:
    f, z = case
    f = f + torch.linspace(0, 1e-3, f.numel(), dtype=f.dtype).view(f.shape)  # no ties
    g = f.flip(0) * 0.5 - 0.3
    items = [i for i in range(len(z)) if not only_some or i % 2 == 0]
    mask = torch.tensor([i in items for i in range(len(z))]) if only_some else None
    own_f, own_g = (
        [sum(yes(x) if k == 1 else no(x) for x, k in zip(row, known, strict=True)) / len(row) for row, known in rows]
        for rows in (list(zip(logits.tolist(), z.tolist(), strict=True)) for logits in (f, g))
    )
    count = int(keep * len(items) + 1e-9)
    found = co_training.co_teaching_loss(f, g, z, keep, mask)
    if count == 0:
        assert found is None
        return
    for_f = sorted(items, key=lambda i: own_g[i])[:count]
    for_g = sorted(items, key=lambda i: own_f[i])[:count]
    expected = sum(own_f[i] for i in for_f) / count + sum(own_g[i] for i in for_g) / count
    assert found is not None
    assert found.item() == pytest.approx(expected, rel=1e-6)
