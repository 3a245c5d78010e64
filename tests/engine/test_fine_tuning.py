"""Fine-tuning starts at the head that is solved on the features of the backbone as it comes, and may stay there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from partly.config import TrainConfig
from partly.engine import Plan, load, precompute_features, resolve
from partly.engine import step_search as module
from partly.engine.fitting import fit
from partly.engine.step_search import StepSearch
from partly.items import as_items
from partly.labels import Labels
from partly.networks import backbones
from partly.networks.backbones import learning_rate_factor

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, size=(80, 16, 16, 3)).astype(np.uint8)
SIGNAL = X[:, :8].mean(axis=(1, 2)) + RNG.normal(size=(80, 3))
Z = np.where(np.median(SIGNAL, axis=0) < SIGNAL, 1, -1).astype(np.int8)
SOME, ONLY_YES = Labels.from_ternary(np.where(RNG.random(Z.shape) < 0.6, Z, 0)), Labels.from_ternary(np.maximum(Z, 0))
SETTINGS: dict[str, Any] = {"widths": [4, 6], "freeze": 1, "rate": 0.3}


@pytest.fixture(autouse=True)
def _pretrained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backbones, "weights_of", lambda name, settings: "weights of somewhere")
    make = backbones.find("small-conv").make

    def as_loaded(*what: Any, **settings: Any) -> Any:
        """Weights that are the same each time, as those of a file are."""
        with torch.random.fork_rng():
            torch.manual_seed(1)
            return make(*what, **settings)

    found = backbones.find("small-conv")
    object.__setattr__(found, "make", as_loaded)
    monkeypatch.setattr(backbones, "find", lambda name: found)


def plan_of(method: str, labels: Labels, freeze: int | str = 1, **config: Any) -> Plan:
    settings = SETTINGS | {"freeze": freeze}
    asked = TrainConfig(method, backbone="small-conv", backbone_settings=settings, **{"head": "linear"} | config)
    items = precompute_features(as_items(X), asked) if freeze == "all" else as_items(X)
    return resolve(asked, (items, labels))


@pytest.mark.parametrize(("labels", "plain"), [(SOME, "bce"), (ONLY_YES, "assume-negative")])
@pytest.mark.parametrize("method", ["plain", "em", "cls"])
def test_where_nothing_improves_it_is_the_frozen_model(
    method: str, labels: Labels, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MIN_GAIN", np.inf)
    monkeypatch.setattr(module, "MIN_YES", 0)
    plan = plan_of(plain if method == "plain" else method, labels)
    assert (plan.config.start, plan.config.lr) == ("solved", 1 / 12)
    fitted = fit(plan)
    assert fitted.progress.notes["start"]["lr_factor"] == 0
    frozen = plan_of(plain, labels, freeze="all")
    expected = fit(frozen).logits(frozen.items)
    assert np.allclose(fitted.logits(as_items(X)), expected, atol=1e-3)


def test_where_it_improves_a_copy_of_the_backbone_learns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(StepSearch, "_score", lambda self, scores, rows=slice(None): float(np.abs(scores[rows]).mean()))
    monkeypatch.setattr(StepSearch, "_standard_error", lambda *_: 0.0)
    monkeypatch.setattr(module, "MIN_YES", 0)
    plan = plan_of("assume-negative", ONLY_YES)
    start = plan.build().task.start
    assert start is not None
    assert start.body is not None
    fitted = fit(plan, folder=tmp_path / "run")
    assert fitted.progress.notes["start"]["lr_factor"] > 0
    learned = fitted.method.network.features[: len(start.body)]
    pairs = list(zip(start.body.parameters(), learned.parameters(), strict=True))
    moved = [not torch.equal(old, new) for old, new in pairs]
    assert moved == [new.requires_grad for _, new in pairs]
    assert 0 < sum(moved) < len(moved)  # of two stages the last one
    assert {learning_rate_factor(new) for _, new in pairs} == {0.3}
    again = load(tmp_path / "run")
    assert np.array_equal(again.logits(as_items(X)), fitted.logits(as_items(X)))


def test_an_open_head_is_linear_and_three_folds_choose_the_steps() -> None:
    """A kernel has no gradient where distances are 0, and the rate follows from the width of the head."""
    plan = plan_of("em", SOME, head="auto")
    assert (plan.config.head, plan.config.lr, plan.config.epochs) == ("linear", 1 / 12, 4)
    start = plan.build().task.start
    assert start is not None
    assert start.baseline.search_folds == 3


def test_random_weights_start_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backbones, "weights_of", lambda name, settings: backbones.RANDOM)
    assert plan_of("em", SOME).config.start == "random"
    assert plan_of("bce", SOME).config.start == "random"
