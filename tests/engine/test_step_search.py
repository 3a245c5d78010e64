"""Steps from a solved start: chosen on held-out entries, none where they do not help, and said in one line."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from partly import Classifier
from partly.config import TrainConfig
from partly.engine import FittedModel, Plan, load, resolve
from partly.engine import step_search as module
from partly.engine.fitting import fit
from partly.engine.step_search import StepSearch, choose_steps
from partly.errors import SettingError
from partly.items import as_items
from partly.labels import Labels
from partly.method import LossMethod

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 6)).astype(np.float32)
TRUTH = np.where(X @ RNG.normal(size=(6, 3)) + RNG.normal(size=(240, 3)) > 0, 1, -1).astype(np.int8)
SOME = np.where(RNG.random(TRUTH.shape) < 0.5, TRUTH, 0).astype(np.int8)
LABELS, ONLY_YES = Labels.from_ternary(SOME), Labels.from_ternary(np.maximum(SOME, 0))
WHOLE = Labels.from_ternary(TRUTH)
NEVER_WHOLE = Labels.from_ternary(np.maximum(SOME, 0) * (np.arange(3) > 0).astype(np.int8))


def plan_of(method: str, labels: Labels = LABELS, **config: object) -> Plan:
    return resolve(TrainConfig(method, **config), (as_items(X), labels))


def baseline(labels: Labels = LABELS, head: str = "kernel") -> FittedModel:
    return fit(plan_of("bce" if labels is LABELS else "assume-negative", labels, head=head))


# -------------------------------------------------------------------- what is resolved


def test_by_default_a_method_starts_solved_on_kernel_features() -> None:
    config = plan_of("em").config
    assert (config.head, config.start, config.lr_factors) == ("kernel", "solved", (0.04, 0.2, 1.0))
    assert plan_of("imcl").config.settings["warmup"] == 0.0
    assert plan_of("cls").config.settings["ramp"] == 0.0
    assert plan_of("imcl", settings={"warmup": 0.5}).config.settings["warmup"] == 0.5
    assert plan_of("em", lr=1e-3).config.lr_factors == (1.0,)


def test_from_nothing_everything_is_as_it_was() -> None:
    config = plan_of("imcl", start="random").config
    assert (config.head, config.start, config.lr, config.epochs) == ("mlp", "random", 1e-3, 80)
    assert config.settings["warmup"] == 0.5


def test_what_cannot_start_solved_is_refused_where_asked() -> None:
    pictures = as_items(np.zeros((4, 16, 16, 3), np.uint8))
    labels = Labels.from_ternary(TRUTH[:4])
    with pytest.raises(SettingError, match="cannot start at a solved baseline"):
        resolve(TrainConfig("em", start="solved"), (pictures, labels))
    with pytest.raises(SettingError, match="start = 'warm' must be one of solved, random"):
        TrainConfig("em", start="warm")
    assert resolve(TrainConfig("bce", start="solved"), (as_items(X), LABELS)).config.start == "random"  # it is solved


# -------------------------------------------------------------------- the choice


STARTS = [
    *product(["em", "cls", "role"], ["kernel", "linear", "mlp", "gnn"]),
    ("cnn-rnn", "kernel"),
    ("cnn-rnn", "mlp"),
]
TRANSFORMERS = [("em", "c-tran"), ("em", "label-transformer")]


@pytest.mark.parametrize(("method", "head"), [*STARTS, *TRANSFORMERS])
def test_a_method_that_gains_nothing_is_the_baseline(method: str, head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_GAIN", np.inf)
    fitted = fit(plan_of(method, head=head, epochs=4))
    expected = baseline(head="linear" if head == "linear" else "kernel").logits(as_items(X))
    assert np.allclose(fitted.logits(as_items(X)), expected, atol=1e-4)
    assert fitted.progress.notes["start"]["lr_factor"] == 0
    assert "stays at its start, the solved bce: no step improves log-loss" in fitted.progress.notes["reason"]


def test_a_method_that_gains_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs are scored by how far they are from the start, so that the furthest is best."""
    monkeypatch.setattr(StepSearch, "_score", lambda self, scores, rows=slice(None): float(np.abs(scores[rows]).mean()))
    monkeypatch.setattr(StepSearch, "_standard_error", lambda *_: 0.0)

    def away(self: LossMethod, *_: object) -> Tensor:
        return -0.1 * self.network.head.linear.bias.sum()

    monkeypatch.setattr(LossMethod, "penalty", away)
    fitted = fit(plan_of("em"))
    notes = fitted.progress.notes["start"]
    assert notes["lr_factor"] == 1.0
    assert notes["epochs"] == fitted.config.epochs == len(fitted.progress.history)
    assert "starts at the solved bce and improves log-loss on held-out entries by" in notes["text"]
    assert not np.allclose(fitted.logits(as_items(X)), baseline().logits(as_items(X)), atol=1e-2)


def test_candidates_never_see_the_labels_of_their_fold() -> None:
    plan = plan_of("role", ONLY_YES)
    method = plan.build()
    assert method.task.start is not None
    solved = method.task.start.baseline
    search = StepSearch(plan, method.task, solved)
    scores, _ = next(search._run(1.0, 0))
    rows = np.flatnonzero(solved.fold == 0)
    z = np.maximum(SOME, 0)
    z[rows] = 1 - z[rows]
    other = replace(plan, labels=Labels.from_ternary(z))
    again = StepSearch(other, replace(method.task, observed=other.labels), solved)
    solved.pool = replace(solved.pool, labels=other.labels)
    assert np.array_equal(next(again._run(1.0, 0))[0], scores)


@pytest.mark.parametrize(
    ("method", "labels", "why"),
    [
        ("imcl", ONLY_YES, "no entry is known to be no"),
        ("curriculum", ONLY_YES, "no entry is known to be no"),
        ("fully-supervised", NEVER_WHOLE, "no item has all of its labels known"),
    ],
)
def test_a_method_that_cannot_learn_stays_and_says_so(method: str, labels: Labels, why: str) -> None:
    with pytest.warns(UserWarning, match=f"{method} stays at its start, the solved assume-negative: {why}"):
        fitted = fit(plan_of(method, labels))
    expected = baseline(labels).logits(as_items(X))
    assert np.allclose(fitted.logits(as_items(X)), expected, atol=1e-4)
    assert why in fitted.progress.notes["start"]["text"]


def test_beliefs_are_there_where_the_start_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_GAIN", np.inf)
    fitted = fit(plan_of("em-apl", ONLY_YES))
    assert fitted.beliefs is not None
    assert (fitted.beliefs[SOME > 0] == 1).all()
    unknown = fitted.beliefs[SOME <= 0]
    assert 0.8 < (unknown < 0.5).mean() < 1  # the share of 90 % has soft no's


# -------------------------------------------------------------------- the same bits, saved and loaded


def test_the_same_seed_gives_the_same_steps_and_bits(tmp_path: Path) -> None:
    plan = plan_of("imcl")
    one, two = fit(plan), fit(plan, folder=tmp_path / "run")
    loaded = load(tmp_path / "run")
    assert one.progress.notes == two.progress.notes == loaded.progress.notes
    for other in (two, loaded):
        assert np.array_equal(one.logits(as_items(X)), other.logits(as_items(X)))


def test_a_validation_part_may_choose_the_start() -> None:
    config = TrainConfig("em", lr=10.0, epochs=2)
    plan = resolve(config, (as_items(X), LABELS), (as_items(X), WHOLE))
    method = plan.build()
    method, steps = choose_steps(plan, method)
    fitted = fit(plan)
    assert steps.lr_factor == 0.0
    assert fitted.progress.best_epoch == 0
    assert np.allclose(fitted.logits(as_items(X)), baseline().logits(as_items(X)), atol=1e-4)


def test_a_classifier_says_what_was_chosen() -> None:
    model = Classifier("em", progress=False).fit(X, LABELS)
    assert "the solved bce" in model.reason_
    with torch.random.fork_rng():
        again = Classifier("em", start="random", epochs=1, progress=False).fit(X, LABELS)
    assert again.reason_ == "as requested"
