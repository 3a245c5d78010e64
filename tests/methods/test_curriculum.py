"""Curriculum labeling: which entries each strategy labels, and how, against loops and the paper's label shares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from conformance.bench import x_of
from partly import losses, scenarios
from partly.clock import Clock
from partly.engine import training
from partly.errors import SettingError
from partly.items import as_items
from partly.labels import Labels
from partly.methods.curriculum import Curriculum, label_rates
from partly.pool import Batch, Pool
from plans import task_of

ITEMS, LABELS, WIDTH = 32, 6, 4


def made(
    items: int = ITEMS,
    labels: int = LABELS,
    share: float = 0.34,
    batch: int = 16,
    head: str = "linear",
    **settings: Any,
) -> tuple[Curriculum, Pool]:
    """A method and a pool of which it has read the labels, with scores of every size."""
    rng = np.random.default_rng(0)
    x = as_items(rng.normal(size=(items, WIDTH)).astype(np.float32))
    truth = Labels.from_full(rng.random((items, labels)) < 0.3)
    pool = Pool(x, scenarios.uniform(truth, share, seed=0), batch)
    method = Curriculum(task_of(x, labels, head, observed=pool.labels), **settings)
    with torch.no_grad():
        for number, network in enumerate(method.networks):
            fresh = method.task.network(f"random {number}")  # since a linear head starts at 0
            for weight, random in zip(network.head.parameters(), fresh.head.parameters(), strict=True):
                weight.copy_(4 * (random if head == "linear" else weight))
    method.train()
    method.begin_epoch(pool, clock(pool, 0))
    return method, pool


def clock(pool: Pool, epoch: int, epochs: int = 20) -> Clock:
    return Clock(0, epochs, pool.steps, epoch)


def relabelled(epoch: int = 9, **settings: Any) -> tuple[Curriculum, Pool]:
    method, pool = made(**settings)
    torch.manual_seed(0)
    method.begin_epoch(pool, clock(pool, epoch))
    return method, pool


def scores(method: Curriculum, pool: Pool) -> Tensor:
    method.eval()
    with torch.no_grad():
        found = torch.stack([network(x_of(pool.items)) for network in method.networks]).mean(dim=0)
    method.train()
    return found


def expected(x: Tensor, z: Tensor, rule: Any) -> Tensor:
    """The rule says of one score what becomes of its entry: +1, -1 or 0."""
    return torch.tensor([[0 if k else rule(v) for v, k in zip(*row, strict=True)] for row in zip(x, z, strict=True)])


def sign(v: Tensor) -> int:
    return 1 if v > 0 else -1


RULES: dict[str, tuple[float | None, Any]] = {
    "two-steps": (None, sign),
    "threshold": (1.0, lambda v: 1 if v >= 1 else -1 if v < -1 else 0),
    "positive": (0.5, lambda v: 1 if v >= 0.5 else 0),
    "ensemble": (1.0, lambda v: 1 if v >= 1 else -1 if v < -1 else 0),
}


@pytest.mark.parametrize("strategy", RULES)
def test_strategies_by_score(strategy: str) -> None:
    theta, rule = RULES[strategy]
    method, pool = relabelled(strategy=strategy, theta=theta)
    assert len(method.networks) == (3 if strategy == "ensemble" else 1)
    z = torch.tensor(pool.labels.ternary())
    wanted = expected(scores(method, pool), z, rule)
    assert 0 < (wanted == 1).sum() < wanted.numel()
    assert torch.equal(method.weak.long(), wanted)


def test_members_of_an_ensemble_start_differently_and_all_learn() -> None:
    method, pool = made(strategy="ensemble", networks=2)
    one, other = ([p.detach().clone() for p in network.parameters()] for network in method.networks)
    assert not torch.equal(one[0], other[0])
    method.update(next(pool.batches(clock(pool, 0))), clock(pool, 0))
    for before, network in zip((one, other), method.networks, strict=True):
        assert all(not torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))


@pytest.mark.parametrize("theta", [0.1, 0.3, 0.55])
def test_proportion_is_of_each_batch(theta: float) -> None:
    method, pool = relabelled(strategy="proportion", theta=theta)
    x = scores(method, pool)
    for batch in pool.batches(clock(pool, 9)):
        free = [
            (abs(float(x[i, j])), int(i), j)
            for n, i in enumerate(batch.index)
            for j in range(LABELS)
            if not batch.z[n, j]
        ]
        best = sorted(free, reverse=True)[: int(theta * len(free))]
        wanted = torch.zeros(len(batch.index), LABELS, dtype=torch.int8)
        for _, i, j in best:
            wanted[batch.index.tolist().index(i), j] = sign(x[i, j])
        assert torch.equal(method.weak[batch.index], wanted)


@pytest.mark.parametrize(
    ("theta", "share"),
    [(0.1, 26.70), (0.2, 42.09), (0.3, 55.63), (0.4, 67.41), (0.5, 77.40), (0.6, 85.37), (0.7, 91.69), (0.8, 96.24)],
)
def test_label_shares_of_table_8(theta: float, share: float) -> None:
    """Two rounds at batch 16, 20 labels, 10 % known; the second takes its share of what is left."""
    method, pool = made(320, 20, 0.1, 16, strategy="proportion", theta=theta)
    assert method.labelled.item() == pytest.approx(0.1)
    for epoch in range(1, 20):
        method.begin_epoch(pool, clock(pool, epoch))
    assert 100 * method.labelled.item() == pytest.approx(share, abs=0.3)


# -------------------------------------------------------------------- passes with dropout


class Counting(nn.Module):
    """A network part that gives the next of some prepared logits, and says in which mode it was asked."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits, self.calls = logits, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.logits[self.calls - 1][: len(x)]


@pytest.mark.parametrize("space", ["logits", "probabilities"])
@pytest.mark.parametrize("stat", ["variance", "deviation"])
def test_bayesian_rule(space: str, stat: str) -> None:
    """Sample variance (or its root) over the passes, and the sign of the mean logit."""
    settings = {"strategy": "bayesian", "passes": 5, "space": space, "stat": stat}
    theta = {"logits": 0.8, "probabilities": 0.03}[space] ** (1 if stat == "variance" else 0.5)
    method, pool = made(batch=ITEMS, theta=theta, **settings)
    prepared = torch.from_numpy(np.random.default_rng(1).normal(0.3, 1, (5, ITEMS, LABELS)))
    method.networks[0].head = Counting(prepared)
    batch = next(pool.batches(clock(pool, 9)))
    method.begin_epoch(pool, clock(pool, 9))
    wanted = torch.zeros(ITEMS, LABELS, dtype=torch.int8)
    for n, i in enumerate(batch.index):
        for j in range(LABELS):
            sample = prepared[:, n, j].tolist()
            shown = [1 / (1 + math.exp(-v)) for v in sample] if space == "probabilities" else sample
            mean = sum(shown) / 5
            spread = sum((v - mean) ** 2 for v in shown) / 4
            if batch.z[n, j] == 0 and (spread if stat == "variance" else math.sqrt(spread)) <= theta:
                wanted[i, j] = 1 if sum(sample) > 0 else -1
    assert 0 < (wanted != 0).sum() < wanted.numel()
    assert torch.equal(method.weak, wanted)


@pytest.mark.parametrize("head", ["linear", "mlp"])
@pytest.mark.parametrize("settings", [{}, {"dropout": 0.2}, {"dropout": 0.5}])
def test_features_are_dropped_and_all_else_is_as_in_use(head: str, settings: dict[str, float]) -> None:
    method, pool = made(head=head, passes=400, **settings)
    share = settings.get("dropout", 0.2)  # by default as in the paper that is cited for it
    network = method.networks[0]
    network.features.append(nn.BatchNorm1d(WIDTH if head == "linear" else 512))
    method.eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    torch.manual_seed(0)
    with torch.no_grad():
        samples = method._samples(x_of(pool.items))
        features = network.features(x_of(pool.items))
        # A feature is 0 with chance p, else 1 / (1 - p) times itself: mean as it is, variance p / (1 - p) times the sum
        # of (weight x feature)^2.
        variance = share / (1 - share) * (features.square() @ network.head.weight.square().T)
        mean = network.head(features)
    assert ((samples.mean(dim=0) - mean).abs() < 5 * (variance / 400).sqrt()).all()
    torch.testing.assert_close(samples.var(dim=0), variance, atol=1e-3, rtol=0.4)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


# -------------------------------------------------------------------- when, and what stays


@pytest.mark.parametrize(
    ("epochs", "rounds"), [(20, [9, 14]), (10, [5, 7]), (100, [45, 70]), (3, [2, 2]), (2, [1, 1]), (1, [0, 0])]
)
def test_rounds_are_shares_of_the_schedule(epochs: int, rounds: list[int]) -> None:
    assert made()[0].rounds(epochs) == rounds
    assert made(strategy="two-steps")[0].rounds(epochs) == rounds[:1]


@pytest.mark.parametrize("epochs", [1, 2, 7])
def test_nothing_is_labelled_before_the_second_epoch(epochs: int) -> None:
    method, pool = made(strategy="two-steps")
    method.begin_epoch(pool, clock(pool, 0, epochs))
    assert not method.weak.any()


@pytest.mark.parametrize("recompute", [False, True])
def test_rounds_add_up_unless_they_start_anew(recompute: bool) -> None:
    method, pool = relabelled(strategy="threshold", theta=1.5, recompute=recompute)
    first = method.weak.clone()
    with torch.no_grad():
        for weight in method.networks[0].head.parameters():
            weight *= -2  # surer, and the other way round
    method.begin_epoch(pool, clock(pool, 14))
    there = first != 0
    assert torch.equal(method.weak[there], -first[there] if recompute else first[there])
    assert (method.weak != 0).sum() > there.sum()


def test_an_epoch_may_be_chosen_once_weak_labels_are_learned_from() -> None:
    """Before epochs 10 and 15 of 20 is labelled; where nothing was, nothing is to be waited for after the second."""
    for theta, first in ((0.0, 9), (1000.0, 14)):
        method, pool = made(strategy="threshold", theta=theta)
        said = []
        for epoch in range(20):
            method.begin_epoch(pool, clock(pool, epoch))
            said.append(method.may_be_best(clock(pool, epoch)))
        assert said == [epoch >= first for epoch in range(20)]


def test_the_epoch_is_not_chosen_before_there_are_weak_labels() -> None:
    """Validation that says the opposite of what is learned likes the first epoch best."""
    method, pool = made(strategy="two-steps")
    opposite = Labels.from_ternary(-pool.labels.ternary())
    progress = training.train(
        method, pool, Clock(0, 10, pool.steps), validation=training.Validation(pool.items, opposite)
    )
    scores = [line["validation_mAP"] for line in progress.history]
    assert scores.index(max(scores)) < 5
    assert progress.best_epoch == 6 + scores[5:].index(max(scores[5:]))


def test_known_labels_are_never_touched_and_beliefs_say_so() -> None:
    method, pool = relabelled(strategy="threshold", theta=1.0)
    z = torch.tensor(pool.labels.ternary())
    assert not method.weak[z != 0].any()
    wanted = torch.where(z != 0, z, method.weak)
    assert torch.equal(method.beliefs(), torch.tensor([0.0, 0.5, 1.0]).half()[wanted.long() + 1])
    assert method.labelled.item() == pytest.approx((wanted != 0).float().mean().item())


@pytest.mark.parametrize("count_weak", [True, False])
def test_the_loss_is_partial_bce_on_known_and_weak_labels(count_weak: bool) -> None:
    method, pool = relabelled(strategy="threshold", theta=1.0, count_weak=count_weak)
    batch = next(pool.batches(clock(pool, 9)))
    z = torch.where(batch.z != 0, batch.z, method.weak[batch.index])
    logits = method.networks[0](batch.x)
    wanted = losses.partial_bce(logits, z)
    if not count_weak:
        weight = {n: 5 - (n / LABELS - 0.1) * 4 / 0.9 for n in range(LABELS + 1)}  # g falls from 5 at 0.1 to 1 at 1
        wanted = losses.bce(logits, z) * torch.tensor([[weight[int((row != 0).sum())]] for row in batch.z])
    logs = method.update(batch, clock(pool, 9))
    assert logs["loss"] == pytest.approx(wanted.mean().item(), rel=1e-5)
    assert logs["labelled"] == method.labelled.item()


def test_weak_labels_are_learned_from() -> None:
    method, pool = relabelled(strategy="two-steps")
    batch = next(pool.batches(clock(pool, 9)))
    nothing = Batch(batch.x, torch.zeros_like(batch.z), batch.index)
    assert method.update(nothing, clock(pool, 9))["loss"] > 0


def test_history_reports_the_share_of_labels() -> None:
    method, pool = made(strategy="two-steps")
    history = training.train(method, pool, Clock(0, 4, pool.steps)).history
    assert [line["labelled"] for line in history] == pytest.approx([2 / 6, 2 / 6, 1, 1])


def test_theta_by_strategy() -> None:
    defaults = {"threshold": 2.0, "proportion": 0.8, "positive": 5.0, "ensemble": 2.0, "bayesian": 0.3}
    assert {name: made(strategy=name)[0].theta for name in defaults} == defaults
    assert made(strategy="bayesian", theta=0.1)[0].theta == 0.1


@pytest.mark.parametrize(
    "wrong",
    [{"theta": -0.1}, {"theta": 1.1, "strategy": "proportion"}, {"passes": 1}, {"networks": 0}, {"dropout": 1.5}],
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        made(**wrong)


def test_label_rates() -> None:
    """Truly yes and labelled: three, two of them as yes. Truly no: four, three as no. One truth is unknown."""
    weak = torch.tensor([[1, 1, -1, 0, 0], [-1, -1, -1, 1, 1]])
    truth = torch.tensor([[1, 1, 1, 1, -1], [-1, -1, -1, -1, 0]])
    assert label_rates(weak, truth) == pytest.approx({"TP": 2 / 3, "TN": 3 / 4, "accuracy": 5 / 7})
    assert math.isnan(label_rates(weak, -truth.abs())["TP"])
