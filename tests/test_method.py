"""The task (networks, optimizers, learning rate) and what a method inherits: the step and its state."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from partly import losses, methods
from partly.clock import Clock
from partly.engine import prediction, training
from partly.errors import SettingError
from partly.items import Absent, as_items, to_absent
from partly.labels import Labels
from partly.method import EntryState, LossMethod, Method, Task
from partly.pool import Batch, Pool
from partly.registry import sections
from plans import change_task, task_of

X = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
Z = torch.tensor([[1, -1], [0, 1], [-1, 0]] * 3, dtype=torch.int8)
BATCH = Batch(X, Z, torch.arange(9))
TASK = task_of(as_items(X), labels=2, head="linear", observed=Labels.from_ternary(Z.numpy()))


def step_by_hand(method: LossMethod, times: int = 3) -> None:
    clock = Clock(0, epochs=1, steps=10)
    for _ in range(times):
        method.update(BATCH, clock)
        clock.tick()


# -------------------------------------------------------------------- the task


@pytest.mark.parametrize(
    ("step", "rate"),
    [
        # 2 epochs of 4 steps, the first quarter warm-up: a step stands for its middle, (step + 1/2) / 8.
        (0, 0.25),
        (1, 0.75),
        (2, 0.5 + 0.5 * math.cos(math.pi * 1 / 12)),
        (4, 0.5 + 0.5 * math.cos(math.pi * 5 / 12)),
        (7, 0.5 + 0.5 * math.cos(math.pi * 11 / 12)),
    ],
)
def test_rate_worked_by_hand(step: int, rate: float) -> None:
    task = change_task(TASK, lr=2.0, schedule_settings={"warmup": 0.25})
    clock = Clock(0, epochs=2, steps=4, epoch=step // 4, step=step % 4)
    assert task.learning_rate(clock) == pytest.approx(2.0 * rate)


def test_rate_without_warmup_starts_near_the_top_and_ends_near_0() -> None:
    task = change_task(TASK, lr=1.0, schedule_settings={"warmup": 0.0})
    assert task.learning_rate(Clock(0, epochs=1, steps=100)) == pytest.approx(1, abs=1e-3)
    assert task.learning_rate(Clock(0, epochs=1, steps=100, step=99)) == pytest.approx(0, abs=1e-3)
    assert task.learning_rate(Clock(0, epochs=1, steps=100, epoch=1)) == pytest.approx(0, abs=1e-12)


def test_rate_of_a_single_step() -> None:
    assert change_task(TASK, lr=1.0, schedule_settings={"warmup": 0.0}).learning_rate(Clock(0)) == pytest.approx(0.5)


def test_first_weights_follow_seed_and_role_alone() -> None:
    def first(task: Task, role: str = "network") -> Tensor:
        return next(task.network(role).parameters())

    torch.rand(3)
    task = change_task(TASK, head="mlp")
    weights = first(task)
    assert torch.equal(weights, first(task))
    assert torch.equal(weights, first(change_task(task, items=as_items(X[:4] + 1), observed=None, lr=9.0)))
    assert not torch.equal(weights, first(task, "other"))
    assert not torch.equal(weights, first(change_task(task, seed=1)))


@pytest.mark.parametrize("only_yes", [False, True])
def test_a_linear_head_that_makes_logits_starts_from_what_is_known(only_yes: bool) -> None:
    z = np.array([[1, 1, 0], [-1, 1, 0], [-1, 0, -1], [0, 0, -1]], np.int8)
    observed = Labels.from_ternary(np.maximum(z, 0) if only_yes else z)
    task = change_task(TASK, head="linear", labels=3, observed=observed)
    first, other = task.network().head, task.network("other").head
    assert isinstance(first, nn.Linear)
    assert isinstance(other, nn.Linear)
    assert not first.weight.any()
    assert other.weight.any()
    # Of 7 known entries 3 are yes; each label has two entries of that share more.
    share = np.array([1 + 6 / 7, 2 + 6 / 7, 6 / 7]) / np.array([5, 4, 4])
    by_hand = torch.tensor(np.log(share / (1 - share)), dtype=torch.float32)
    random = change_task(task, observed=None).network("other").head
    if only_yes:
        assert not first.bias.any()
        assert torch.equal(other.weight, random.weight)
    else:
        torch.testing.assert_close(first.bias, by_hand)
        torch.testing.assert_close(other.bias, by_hand)
        torch.testing.assert_close(other.weight, 0.1 * random.weight)
        assert not task.network(at_random=False).head.bias.any()
    for head in (task.network(logits=False).head, change_task(task, head="mlp").network().head):
        assert all(weight.any() for weight in head.parameters())


def test_making_a_network_leaves_torchs_generator_alone() -> None:
    before = torch.get_rng_state()
    TASK.network()
    assert torch.equal(before, torch.get_rng_state())


def test_optimizers_by_name() -> None:
    parameters = list(TASK.network().parameters())
    adamw = TASK.make_optimizer(parameters)
    sgd = change_task(TASK, optimizer="sgd", lr=0.3, weight_decay=0.2).make_optimizer(iter(parameters), factor=0.5)
    assert isinstance(adamw, torch.optim.AdamW)
    assert isinstance(sgd, torch.optim.SGD)
    group = sgd.param_groups[0]
    assert (group["momentum"], group["weight_decay"], group["factor"]) == (0.9, 0.2, 0.5)
    assert group["params"] == parameters
    with pytest.raises(SettingError, match=r"There is no optimizer 'adamv'\. Did you mean 'adam"):
        change_task(TASK, optimizer="adamv").make_optimizer(parameters)


# -------------------------------------------------------------------- one step


def test_one_step_of_sgd_worked_by_hand() -> None:
    task = change_task(TASK, optimizer="sgd", lr=0.5, weight_decay=0.1, schedule_settings={"warmup": 0.0})
    method = LossMethod(task, losses.bce, {})
    clock = Clock(0, epochs=1, steps=10)
    weight, bias = (p.detach().double() for p in method.network.parameters())
    x = (X.double() - X.double().mean(0)) / X.double().std(0, correction=0)
    wrong = torch.where(Z == 0, 0.0, torch.sigmoid(x @ weight.T + bias) - (Z == 1).double()) / Z.numel()
    rate = 0.5 * (1 + math.cos(math.pi * 0.05)) / 2
    expected = weight - rate * (wrong.T @ x + 0.1 * weight), bias - rate * (wrong.sum(0) + 0.1 * bias)
    logs = method.update(BATCH, clock)
    for parameter, value in zip(method.network.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.detach(), value.float(), rtol=1e-5, atol=1e-6)
    by_hand = losses.bce(x @ weight.T + bias, Z).mean().item()
    assert logs == {"loss": pytest.approx(by_hand, rel=1e-5)}


def test_a_step_moves_every_optimizer_at_its_factor() -> None:
    class Two(Method):
        def __init__(self, task: Task) -> None:
            super().__init__(task)
            self.a, self.b = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
            self.fast, self.slow = task.make_optimizer([self.a]), task.make_optimizer([self.b], factor=0.1)

    method = Two(change_task(TASK, optimizer="sgd", lr=1.0, weight_decay=0.0, schedule="constant"))
    clock = Clock(0, epochs=1, steps=1)
    for expected in ((0.0, 0.9), (-1.9, 0.71)):  # with momentum 0.9 the second step is 1.9 times the first
        method.step((method.a + method.b).sum(), clock, method.fast, method.slow)
        assert (method.a.item(), method.b.item()) == pytest.approx(expected)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("items", [9, 8, 7, 6])  # whole groups, and last batches and groups that are smaller
def test_gathered_batches_are_one_larger_batch(optimizer: str, items: int) -> None:
    """Three batches of two, at a step, are batches of six; the rate too is that of the fewer steps."""
    x, labels = as_items(X[:items]), Labels.from_ternary(Z[:items].numpy())
    found = []
    for size, accumulate in ((6, 1), (2, 3)):
        how = {"optimizer": optimizer, "lr": 0.1, "accumulate": accumulate, "schedule_settings": {"warmup": 0.3}}
        method = LossMethod(change_task(TASK, items=x, observed=labels, **how), losses.partial_bce, {})
        pool = Pool(x, labels, size)
        training.train(method, pool, Clock(3, 4, pool.steps, last=pool.last))
        found.append(torch.cat([p.detach().flatten() for p in method.network.parameters()]))
    assert found[0].abs().max() > 0.1  # something was learned
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def test_a_step_waits_for_the_last_of_its_batches() -> None:
    task = change_task(TASK, optimizer="sgd", lr=1.0, weight_decay=0.0, accumulate=2, schedule="constant")
    method = LossMethod(task, losses.bce, {})
    clock, moved, waiting = Clock(0, epochs=1, steps=3), [], []
    before = method.network.head.weight.detach().clone()
    for _ in range(3):
        method.update(BATCH, clock)
        moved.append(not torch.equal(before, method.network.head.weight))
        waiting.append(any(name.startswith("gradient.") for name in method.state()))
        before = method.network.head.weight.detach().clone()
        clock.tick()
    assert moved == [False, True, True]  # the third has no companion in this epoch
    assert waiting == [True, False, False]


def test_what_is_averaged_is_judged_and_left_behind() -> None:
    """Against a slow loop over the weights after every step."""
    seen: list[Tensor] = []
    task = change_task(TASK, optimizer="sgd", lr=0.5, average=0.7)
    for averaged in (None, 0.7):
        method = LossMethod(change_task(task, average=averaged), losses.bce, {})
        pool = Pool(TASK.items, TASK.observed, batch_size=4)

        def see(*_: object, method: LossMethod = method) -> None:
            seen.append(method.network.head.weight.detach().clone())

        training.train(method, pool, Clock(0, 2, pool.steps), callback=see)
    raw, same = seen[:6], seen[6:]
    assert all(torch.equal(a, b) for a, b in zip(raw, same, strict=True))  # what learns goes on as it would
    counts = [0.7 ** (5 - step) for step in range(6)]
    slow = sum(count * weight for count, weight in zip(counts, raw, strict=True)) / sum(counts)
    torch.testing.assert_close(method.network.head.weight.detach(), slow)


def test_of_averages_the_best_epoch_is_kept() -> None:
    """Validation sees the average: here it prefers the first epoch, whose average is then the model."""
    task = change_task(TASK, optimizer="sgd", lr=0.5, average=0.5)
    opposite = training.Validation(TASK.items, Labels.from_ternary(-Z.numpy()))
    method, pool = LossMethod(task, losses.bce, {}), Pool(TASK.items, TASK.observed, batch_size=4)
    seen: list[Tensor] = []
    progress = training.train(
        method,
        pool,
        Clock(0, 3, pool.steps),
        validation=opposite,
        callback=lambda *_: seen.append(method.network.head.weight.detach().clone()),
    )
    best = progress.best_epoch or 0
    counts = [0.5 ** (3 * best - 1 - step) for step in range(3 * best)]
    slow = sum(count * weight for count, weight in zip(counts, seen, strict=False)) / sum(counts)
    torch.testing.assert_close(method.network.head.weight.detach(), slow)
    assert progress.best_score == opposite.score(lambda rows: prediction.predict_blocks(method, TASK.items[rows]))[1]


def test_settings_reach_the_loss() -> None:
    method = LossMethod(TASK, losses.partial_bce, {"alpha": 0.0, "beta": 3.0})
    other = LossMethod(TASK, losses.bce, {})
    clock = Clock(0, epochs=1, steps=10)
    assert method.update(BATCH, clock)["loss"] == pytest.approx(3 * other.update(BATCH, clock)["loss"])


def test_a_loss_may_ask_for_the_clock() -> None:
    def timed(logits: Tensor, z: Tensor, clock: Clock, *, factor: float) -> Tensor:
        return factor * clock.epoch * losses.bce(logits, z)

    clock = Clock(0, epochs=5, steps=1, epoch=3)
    plain = LossMethod(TASK, losses.bce, {}).update(BATCH, clock)["loss"]
    assert LossMethod(TASK, timed, {"factor": 2.0}).update(BATCH, clock)["loss"] == pytest.approx(6 * plain)


# -------------------------------------------------------------------- state


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_state_goes_in_and_out(optimizer: str) -> None:
    task = change_task(TASK, optimizer=optimizer, lr=0.1)
    method, again = (LossMethod(task, losses.bce, {}) for _ in range(2))
    step_by_hand(method)
    again.load_state({name: tensor.clone() for name, tensor in method.state().items()})
    assert {name.split(".")[0] for name in method.state()} == {"method", "optimizer"}
    for _ in range(2):  # the same now, and after steps that use the optimizer's state
        assert method.state().keys() == again.state().keys()
        assert all(torch.equal(method.state()[name], again.state()[name]) for name in method.state())
        step_by_hand(method)
        step_by_hand(again)


def test_state_of_optimizers_is_read_from_checkpoints_of_0_2() -> None:
    method, again = (LossMethod(TASK, losses.bce, {}) for _ in range(2))
    step_by_hand(method)
    state = {name.replace("optimizer", "optimiser"): tensor for name, tensor in method.state().items()}
    assert any(name.startswith("optimiser.optimiser.") for name in state)
    again.load_state(state)
    assert method.state().keys() == again.state().keys()
    assert all(torch.equal(method.state()[name], again.state()[name]) for name in method.state())


def test_loaded_state_is_a_copy() -> None:
    method, again = (LossMethod(TASK, losses.bce, {}) for _ in range(2))
    step_by_hand(method)
    state = method.state()
    kept = {name: tensor.clone() for name, tensor in state.items()}
    again.load_state(state)
    step_by_hand(again)
    assert all(torch.equal(kept[name], tensor) for name, tensor in method.state().items())


def test_weights_are_parameters_and_buffers() -> None:
    method = LossMethod(TASK, losses.bce, {})
    names = {"features.0.mean", "features.0.inverse_scale", "head.weight", "head.bias"}
    assert set(method.weights()) == {f"method.network.{name}" for name in names}


def test_optimizers_are_found_by_attribute() -> None:
    method = LossMethod(TASK, losses.bce, {})
    assert method.optimizers() == {"optimizer": method.optimizer}


# -------------------------------------------------------------------- state of the training entries


class Keeping(LossMethod):
    """A number for each entry, and how often each item was seen."""

    entry_state = (
        EntryState("believed", torch.float16, 0.5, belief=torch.float32),
        EntryState("visits", torch.int64, per_label=False),
    )
    working_bytes = 3

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        self.visits[batch.index] += 1
        self.believed[batch.index] = batch.z.half()
        return super().update(batch, clock)


def test_what_is_kept_is_an_attribute_of_its_size() -> None:
    method = Keeping(TASK)
    assert (method.believed.dtype, method.visits.dtype) == (torch.float16, torch.int64)
    assert method.believed.tolist() == [[0.5, 0.5]] * 9
    assert method.visits.tolist() == [0] * 9
    entries = method.entries()
    assert list(entries) == ["entries.believed", "entries.visits"]
    assert entries["entries.believed"] is method.believed
    assert Keeping.memory(TASK, {}) == (36, 54)
    assert Keeping.belief_memory(TASK, {}) == 72
    assert method.believed.nbytes == 36


def test_state_may_depend_on_settings() -> None:
    class Some(LossMethod):
        entry_state = (EntryState("seen", torch.int8), EntryState("past"))

        @classmethod
        def entry_state_for(cls, task: Task, settings: Mapping[str, Any]) -> tuple[EntryState, ...]:
            return cls.entry_state[: settings["count"]]

    for count, size in ((0, 0), (1, 18), (2, 90)):
        method = Some(TASK, losses.bce, {"count": count})
        assert list(method.entries()) == ["entries.seen", "entries.past"][:count]
        assert Some.memory(TASK, {"count": count}) == (size, 0)
        assert sum(tensor.nbytes for tensor in method.entries().values()) == size


def test_methods_of_before_still_keep_state_and_declare_bytes() -> None:
    class Before(LossMethod):
        entry_bytes, belief_bytes = 2, 2

        def __init__(self, task: Task) -> None:
            super().__init__(task, losses.bce, {})
            self.keep("believed", 0.5, torch.float16)

    with pytest.warns(DeprecationWarning, match="Before: Method.keep .* 'believed' in entry_state"):
        method = Before(TASK)
    assert method.entries()["entries.believed"].tolist() == [[0.5, 0.5]] * 9
    assert method.believed.dtype == torch.float16
    assert (Before.memory(TASK, {}), Before.belief_memory(TASK, {})) == ((36, 0), 36)


def test_what_is_kept_is_state_and_not_the_model() -> None:
    method = Keeping(TASK)
    assert method.weights().keys() == LossMethod(TASK, losses.bce, {}).weights().keys()
    step_by_hand(method)
    kinds = {name.split(".")[0] for name in method.state()}
    assert kinds == {"method", "entries", "optimizer"}
    again = Keeping(TASK)
    again.load_state({name: tensor.clone() for name, tensor in method.state().items()})
    assert torch.equal(again.believed, Z.half())
    assert again.visits.tolist() == [3] * 9


def test_what_is_not_given_stays_as_it_is() -> None:
    """From the weights alone, training state is that of the beginning; with entries, theirs."""
    method = Keeping(TASK)
    step_by_hand(method)
    again = Keeping(TASK)
    again.load_state(method.weights())
    assert torch.equal(again.network.head.weight, method.network.head.weight)
    assert again.visits.tolist() == [0] * 9
    assert not again.optimizer.state
    again.load_state(method.weights() | method.entries())
    assert again.visits.tolist() == [3] * 9


def test_who_only_predicts_keeps_nothing() -> None:
    method = Keeping(TASK)
    step_by_hand(method)
    loaded = Keeping(change_task(TASK, items=to_absent(TASK.items), observed=None))
    assert (loaded.believed.shape, loaded.visits.shape) == ((0, 2), (0,))
    loaded.load_state(method.weights())
    assert torch.equal(loaded(X), method(X))


def test_a_finished_method_lets_go_of_what_was_there_to_train() -> None:
    method = Keeping(TASK)
    step_by_hand(method)
    expected, weights = method(X), {name: tensor.clone() for name, tensor in method.weights().items()}
    method.strip_training_state()
    assert {name: tensor.shape for name, tensor in method.entries().items()} == {
        "entries.believed": (0, 2),
        "entries.visits": (0,),
    }
    assert method.entries()["entries.believed"].untyped_storage().nbytes() == 0  # and not a view of what was there
    assert method.optimizers() == {}
    assert method.task.items == Absent("features", (3,), 9)
    assert method.task.observed is None
    assert not method.training
    assert torch.equal(method(X), expected)
    assert all(torch.equal(weights[name], tensor) for name, tensor in method.state().items() if name in weights)


def test_what_is_known_of_some_items() -> None:
    assert torch.equal(LossMethod(TASK, losses.bce, {}).observed(slice(2, 5)), Z[2:5])


# -------------------------------------------------------------------- the bare contract


def test_what_a_bare_method_does() -> None:
    method = Method(TASK)
    pool = Pool(as_items(X), Labels.from_ternary(Z.numpy()), batch_size=4)
    assert method.beliefs() is None
    assert (Method.needs_truth, Method.entry_state, Method.working_bytes) == (False, (), 0)
    assert (Method.memory(TASK, {}), Method.belief_memory(TASK, {})) == ((0, 0), 0)
    assert method.entries() == method.weights() == method.state() == {}
    method.begin_epoch(pool, Clock(0))
    with pytest.raises(NotImplementedError, match="Method defines neither update nor epoch"):
        next(method.epoch(pool, Clock(0)))
    with pytest.raises(NotImplementedError, match="Method has no `network`, so it must define forward"):
        method(X)


def test_an_epoch_is_an_update_a_batch() -> None:
    class Counting(Method):
        def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
            return {"loss": float(len(batch.x))}

    pool = Pool(as_items(X), Labels.from_ternary(Z.numpy()), batch_size=4)
    assert [logs["loss"] for logs in Counting(TASK).epoch(pool, Clock(0, steps=3))] == [4, 4, 1]
    assert [logs["loss"] for logs in Counting(TASK).epoch(pool, Clock(0, steps=3, step=2))] == [1]


def test_who_takes_unknown_for_no_does_not_learn_from_items_of_which_nothing_is_known() -> None:
    """They would be items without any label, which nobody said."""
    every = methods.discover()
    learn = {name for name, info in every.items() if info.about.learns_from_unknown}
    assert {"em", "role", "curriculum", "refine"} <= learn
    formulas = {name: sections(info.text)["Formula"] for name, info in every.items()}
    for_no = {name for name, formula in formulas.items() if re.search(r"unknown +(as no|-(weight )?log)", formula)}
    assert {"assume-negative", "large-loss", "one-class"} <= for_no
    assert not learn & for_no


# -------------------------------------------------------------------- names of 0.2


def test_the_contract_of_0_2_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match=r"Old\.\w+ is now \w+; the old name goes in 0\.4") as warned:

        class Old(Method):
            own_epochs = 3
            spreads = False

            def settled(self, clock: Clock) -> bool:
                return clock.epoch > 0

    assert len(warned) == 3
    assert (Old.default_epochs, Old.supports_distributed) == (3, False)
    assert [Old(TASK).may_be_best(Clock(0, epochs=2, epoch=epoch)) for epoch in (0, 1)] == [False, True]
    pool = Pool(as_items(X), Labels.from_ternary(Z.numpy()), batch_size=4)
    batch = pool.take(torch.arange(2))
    pairs = [(Old(TASK), "coherent", "enforce_hierarchy"), (TASK, "rate", "learning_rate")]
    pairs += [(TASK, "above", "parent_index"), (batch, "weighed", "apply_weights")]
    pairs += [(pool, "learned", "augmented_batches"), (pool, "whole", "fully_labelled")]
    for thing, old, new in pairs:
        with pytest.warns(DeprecationWarning, match=f"{type(thing).__name__}.{old} is now {new}"):
            assert repr(getattr(thing, old)) == repr(getattr(thing, new))
