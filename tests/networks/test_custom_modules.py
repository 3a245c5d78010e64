"""Networks that a caller brings along: as backbone, as head, as a whole; saved by weights and given again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import Tensor, nn

from partly import Classifier, engine, networks
from partly.errors import CheckpointError, SettingError
from partly.items import as_items
from partly.networks import custom_modules

RNG = np.random.default_rng(0)
PICTURES, ROWS = RNG.integers(0, 256, (12, 16, 16, 3), dtype=np.uint8), RNG.normal(size=(12, 7)).astype(np.float32)
Y = RNG.integers(0, 2, (12, 3)).astype(float)
HOW: dict[str, Any] = {"epochs": 2, "batch_size": 6, "progress": False}


class Maps(nn.Module):
    """A backbone of the caller's own."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.second = nn.Conv2d(4, width, 3)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.second(self.first(x).relu())
        return made


class ReadOut(nn.Module):
    """A head of the caller's own, made for the sizes that are needed."""

    def __init__(self, inputs: int, labels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, labels)

    def forward(self, features: Tensor) -> Tensor:
        made: Tensor = self.linear(features)
        return made


def whole() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3))


@pytest.mark.parametrize("head", ["linear", ReadOut])
def test_a_backbone_of_ones_own_from_fit_to_load(head: Any, tmp_path: Path) -> None:
    module = Maps()
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    model = Classifier("bce", backbone=module, head=head, run_dir=tmp_path / "run", **HOW).fit(PICTURES, Y)
    assert all(torch.equal(module.state_dict()[name], weight) for name, weight in before.items())  # a copy was trained
    said = json.loads((tmp_path / "run" / "run.json").read_text())
    assert "give it again to load: Classifier.load(folder, backbone=...)" in json.dumps(said)
    assert ("head=...)" in json.dumps(said)) == (head is ReadOut)
    given = {"backbone": Maps()} | ({"head": ReadOut} if head is ReadOut else {})  # other weights, the same class
    again = Classifier.load(tmp_path / "run", **given)
    np.testing.assert_array_equal(again.predict_proba(PICTURES), model.predict_proba(PICTURES))
    assert again.backbone is given["backbone"]


def test_a_folder_goes_on_with_the_same_weights_only(tmp_path: Path) -> None:
    module = Maps()
    one = Classifier("bce", backbone=module, run_dir=tmp_path, **HOW).fit(PICTURES, Y)
    two = Classifier("bce", backbone=module, run_dir=tmp_path, **HOW).fit(PICTURES, Y)
    np.testing.assert_array_equal(one.predict_proba(PICTURES), two.predict_proba(PICTURES))
    with pytest.raises(CheckpointError, match=r"recipe\.backbone: 'own:Maps:"):
        Classifier("bce", backbone=Maps(), run_dir=tmp_path, **HOW).fit(PICTURES, Y)


def test_a_whole_network(tmp_path: Path) -> None:
    network = whole()
    how = HOW | {"backbone_settings": {"standardise": False, "rate": 0.0}}
    model = Classifier("bce", backbone=network, head="none", **how).fit(ROWS, Y)
    expected = network(torch.from_numpy(ROWS)).detach().numpy()  # nothing moves at rate 0
    np.testing.assert_allclose(model.decision_function(ROWS), expected, rtol=1e-5, atol=1e-6)
    model.save(tmp_path / "saved")
    again = Classifier.load(tmp_path / "saved", backbone=whole())
    np.testing.assert_array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))
    faster = Classifier("bce", backbone=network, head="none", **HOW, backbone_settings={"rate": 1.0}).fit(ROWS, Y)
    assert not np.allclose(faster.decision_function(ROWS), expected)


def test_what_makes_a_backbone_is_called_for_each_network() -> None:
    shapes = []

    def make(shape: tuple[int, ...]) -> nn.Module:
        shapes.append(shape)
        return Maps()

    model = Classifier("cls", backbone=make, start="random", **HOW).fit(PICTURES, Y)
    assert shapes == [(3, 16, 16)] * 2
    f, g = (dict(part.named_parameters()) for part in (model.fitted_.method.f, model.fitted_.method.g))
    assert not torch.equal(*(side["features.1.module.first.weight"] for side in (f, g)))


def test_stages_rates_and_freezing_are_as_with_any_backbone() -> None:
    settings = {"freeze": 1, "rate": 0.5, "pooling": "gmp"}
    name = custom_modules.register(module := Maps(), "backbone")
    network = networks.build(as_items(PICTURES), 3, "linear", None, name, settings)
    made: Any = network.features[1]
    assert [p.requires_grad for p in made.parameters()] == [False, False, True, True]
    assert (made.width, made.pooling, made.rate) == (4, "gmp", 0.5)
    assert torch.equal(made.module.first.weight, module.first.weight)
    assert made.module is not module


def test_a_method_sees_no_difference() -> None:
    for method in ("curriculum", "role", "imcl"):
        model = Classifier(method, backbone=nn.Linear(7, 4), **HOW).fit(
            ROWS, np.where(RNG.random(Y.shape) < 0.7, Y, np.nan)
        )
        assert np.isfinite(model.predict_proba(ROWS)).all()


def test_a_clone_has_a_module_of_its_own() -> None:
    model = Classifier("bce", backbone=Maps(), **HOW)
    copy = clone(model)
    assert copy.backbone is not model.backbone
    one, two = (m.fit(PICTURES, Y).predict_proba(PICTURES) for m in (model, copy))
    np.testing.assert_array_equal(one, two)


def test_without_the_module_nothing_is_loaded(tmp_path: Path) -> None:
    Classifier("bce", backbone=Maps(), **HOW).fit(PICTURES, Y).save(tmp_path / "saved")
    with pytest.raises(SettingError, match=r"Pass it again: Classifier\.load\(folder, backbone=\.\.\.\).*class Maps"):
        Classifier.load(tmp_path / "saved")
    with pytest.raises(SettingError, match=r"was made with Maps, and this is Linear"):
        Classifier.load(tmp_path / "saved", backbone=nn.Linear(2, 2))
    with pytest.raises(CheckpointError, match=r"do not fit what was given"):
        Classifier.load(tmp_path / "saved", backbone=Maps(width=5))
    with pytest.raises(SettingError, match=r"head: the saved model has the head 'linear', which needs nothing given"):
        Classifier.load(tmp_path / "saved", backbone=Maps(), head=ReadOut)


@pytest.mark.parametrize(
    ("parts", "x", "words"),
    [
        ({"backbone": nn.Linear(3, 3)}, PICTURES, r"backbone: items \[2, 3, 16, 16\]: Linear fails on them"),
        ({"backbone": nn.Flatten(2)}, PICTURES, r"Flatten makes \[2, 3, 256\] of 2 items"),
        ({"backbone": nn.GRU(7, 3)}, ROWS, r"GRU makes tuple of them, not a tensor"),
        ({"backbone": lambda shape: 5}, ROWS, r"gave int, not a torch module"),
        ({"backbone": 5}, ROWS, r"backbone = 5 must be a name, a torch module"),
        ({"backbone": "small-conv"}, ROWS, r"features need none"),
        ({"backbone": nn.Linear(7, 4), "method": "auto", "head": "kernel"}, ROWS, None),
        ({"backbone": nn.Linear(7, 4), "head": "none"}, ROWS, r"makes 4 numbers of an item; there are 3 labels"),
        ({"head": nn.Linear(7, 2)}, ROWS, r"head: makes \[2, 2\] of features \[2, 7\]; it must make logits \[2, 3\]"),
        ({"head": nn.Linear(6, 3)}, ROWS, r"head: features \[2, 7\]: Linear fails"),
    ],
)
def test_what_does_not_fit_is_said(parts: dict[str, Any], x: Any, words: str | None) -> None:
    model = Classifier(**{"method": "bce", **HOW, **parts})
    if words is None:
        assert model.fit(x, Y).method_ == "bce"
        return
    with pytest.raises(SettingError, match=words):
        model.fit(x, Y)


def test_the_portfolio_takes_no_backbone() -> None:
    module = nn.Linear(7, 4)
    config = engine.TrainConfig(backbone=module)
    recipe, reason = engine.resolve_config(config, as_items(ROWS), Classifier("bce").resolve(ROWS, Y).labels)
    assert (recipe.method, recipe.head) == ("bce", "mlp")
    assert reason == "every entry is known"


def test_names_follow_the_weights() -> None:
    one, two = Maps(), Maps()
    assert custom_modules.register(one, "backbone") != custom_modules.register(two, "backbone")
    two.load_state_dict(one.state_dict())
    assert custom_modules.register(one, "backbone") == custom_modules.register(two, "backbone")
    assert custom_modules.register(ReadOut, "head") == "own:ReadOut"
    assert custom_modules.register("linear", "head") == "linear"
