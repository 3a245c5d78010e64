"""What all backbones share: frozen stages, rates, pooling, sizes, normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from partly import networks
from partly.clock import Clock
from partly.errors import SettingError
from partly.items import as_items
from partly.method import Task
from partly.networks import SmallConv, backbones
from partly.networks.backbones.contract import Backbone
from partly.pool import Pool
from partly.registry import Info
from plans import task_of

PICTURES = as_items(np.random.default_rng(0).integers(0, 256, (8, 16, 16, 3), dtype=np.uint8))


def made(**settings: Any) -> Backbone:
    backbone: Backbone = backbones.find("small-conv").make((3, 16, 16), widths=(2, 4, 8), **settings)
    return backbone


class Pixels(Backbone):
    """Normalised pixels themselves, as maps."""

    channels = 3

    def maps(self, x: Tensor) -> Tensor:
        return x


def test_pixels_are_normalised_whatever_their_type() -> None:
    x = torch.randint(0, 256, (2, 3, 4, 4), dtype=torch.uint8)
    backbone = Pixels([1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
    expected = torch.empty(2, 3, 4, 4)
    for i, c, h, w in np.ndindex(2, 3, 4, 4):
        expected[i, c, h, w] = (float(x[i, c, h, w]) - (c + 1)) / (10 * (c + 1))
    torch.testing.assert_close(backbone.preprocess(x), expected)
    torch.testing.assert_close(backbone.preprocess(x.float()), expected)
    assert backbone.normalizes
    assert not made().normalizes


def test_a_grey_picture_is_one_with_three_colours_alike() -> None:
    x = torch.randint(0, 256, (2, 1, 4, 4), dtype=torch.uint8)
    backbone = Pixels([127.0] * 3, [128.0] * 3)
    assert torch.equal(backbone.preprocess(x), backbone.preprocess(x.repeat(1, 3, 1, 1)))


def test_pictures_of_another_size_are_brought_to_its_own() -> None:
    backbone = Pixels([0.0] * 3, [1.0] * 3)
    backbone.size = 4
    x = torch.randint(0, 256, (1, 3, 8, 8), dtype=torch.uint8)
    assert backbone.preprocess(x).shape == (1, 3, 4, 4)
    assert torch.equal(backbone.preprocess(x[:, :, :4, :4]), x[:, :, :4, :4].float())
    even = torch.full((1, 3, 9, 5), 7, dtype=torch.uint8)
    torch.testing.assert_close(backbone.preprocess(even), torch.full((1, 3, 4, 4), 7.0))
    assert made(size=12).size == 12
    assert made(size=12)(torch.randn(2, 3, 16, 16)).shape == (2, 16)


@pytest.mark.parametrize(("pooling", "width"), [("gap", 8), ("gmp", 8), ("weldon", 8), ("gap+gmp", 16)])
def test_pooling_is_a_setting(pooling: str, width: int) -> None:
    backbone = made(pooling=pooling, k_max=2, k_min=1).eval()
    x = torch.randn(2, 3, 16, 16)
    maps = backbone.maps(x).flatten(2)
    found = backbone(x)
    assert found.shape == (2, width)
    assert backbone.width == width
    for i, c in np.ndindex(2, 8):
        values = sorted(maps[i, c].tolist())
        expected = {
            "gap": np.mean(values),
            "gmp": values[-1],
            "weldon": ((values[-1] + values[-2]) / 2 + values[0]) / 2,
            "gap+gmp": np.mean(values),
        }
        assert found[i, c].item() == pytest.approx(expected[pooling], abs=1e-6)
    if pooling == "gap+gmp":
        torch.testing.assert_close(found[:, 8:], maps.amax(dim=2))


def test_every_head_comes_after_every_pooling() -> None:
    for pooling in ("gap", "gmp", "weldon"):
        network = networks.build(PICTURES, 5, "linear", None, "small-conv", {"pooling": pooling, "widths": (2, 4)})
        assert network(PICTURES.take(slice(0, 2))).shape == (2, 5)


@pytest.mark.parametrize(("freeze", "trained"), [(None, 3), (3, 3), (2, 2), (1, 1), (0, 0), ("all", 0)])
def test_the_last_stages_are_trained(freeze: Any, trained: int) -> None:
    stages = made(freeze=freeze).stages()
    assert len(stages) == 3
    for place, stage in enumerate(stages):
        assert all(p.requires_grad == (place >= 3 - trained) for p in stage.parameters())


def test_batch_normalisation_of_what_is_frozen_stays_at_rest() -> None:
    backbone = made(freeze=1).train()
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    backbone(torch.randn(4, 3, 16, 16) * 3 + 1)
    changed = {name for name, value in backbone.state_dict().items() if not torch.equal(value, before[name])}
    last = max(name for name, part in backbone.named_modules() if isinstance(part, nn.BatchNorm2d))
    assert changed == {f"{last}.{what}" for what in ("running_mean", "running_var", "num_batches_tracked")}
    everything = made(freeze="all").train()
    assert not any(part.training for part in everything.modules() if isinstance(part, nn.BatchNorm2d))
    assert everything.train().blocks.training is False
    assert all(part.training for part in made().train().modules())


def test_pretrained_weights_keep_their_statistics_where_they_are_trained() -> None:
    def learning(name: str, **settings: Any) -> set[bool]:
        backbone = backbones.find(name).make((3, 32, 32), **settings).train()
        return {part.training for part in backbone.modules() if isinstance(part, nn.BatchNorm2d)}

    assert learning("small-conv") == {True}
    assert learning("small-conv", keep_statistics=True) == {False}
    assert learning("efficientnet-lite0", pretrained=False) == {True}
    assert learning("efficientnet-lite0", pretrained=False, keep_statistics=True) == {False}
    kept = made(keep_statistics=True).train()
    norms = [part for part in kept.modules() if isinstance(part, nn.BatchNorm2d)]
    before = [part.running_mean.clone() for part in norms]
    kept(torch.randn(4, 3, 16, 16) * 3 + 1).sum().backward()
    assert all(torch.equal(part.running_mean, old) for part, old in zip(norms, before, strict=True))
    assert all(part.weight.grad is not None for part in norms)  # scale and shift are learned
    assert kept.blocks.training


@pytest.mark.parametrize("freeze", [4, -1])
def test_more_stages_than_there_are_is_refused(freeze: int) -> None:
    with pytest.raises(SettingError, match=rf"freeze = {freeze}: there are 3 stages\. .*'all'"):
        made(freeze=freeze)


@pytest.mark.parametrize("wrong", [{"freeze": "none"}, {"pooling": "mean"}, {"rate": "slow"}, {"size": 1.5}])
def test_wrong_settings_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        backbones.find("small-conv").complete(wrong)


def test_a_rate_below_0_is_refused() -> None:
    with pytest.raises(SettingError, match=r"rate = -1"):
        made(rate=-1)


def task(**settings: Any) -> Task:
    return task_of(
        PICTURES,
        5,
        "linear",
        optimizer="sgd",
        lr=0.5,
        weight_decay=0.0,
        backbone="small-conv",
        backbone_settings={"widths": (2, 4), **settings},
    )


def test_the_backbone_has_its_share_of_the_rate() -> None:
    ours = task(rate=0.25)
    network = ours.network()
    groups = ours.make_optimizer(network.parameters(), factor=2.0).param_groups
    rates = {id(p): group["factor"] for group in groups for p in group["params"]}
    inside = {id(p) for p in network.features.parameters()}
    assert {rates[key] for key in inside} == {0.5}
    assert {rate for key, rate in rates.items() if key not in inside} == {2.0}
    assert len(rates) == len(list(network.parameters()))
    (one,) = task().make_optimizer(task().network().parameters()).param_groups  # small-conv starts from nothing
    assert one["factor"] == 1.0


def test_what_is_frozen_is_nobodys_to_change() -> None:
    ours = task(freeze="all")
    network = ours.network()
    before = [parameter.detach().clone() for parameter in network.features.parameters()]
    optimizer = ours.make_optimizer(network.parameters())
    network(PICTURES.take(slice(None))).sum().backward()
    optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(before, network.features.parameters(), strict=True))
    settings = {"widths": (2, 4), "freeze": "all", "pooling": "gap"}
    with pytest.raises(SettingError, match=r"Nothing is left to train: .*'freeze': 'all'"):
        task_of(PICTURES, 4, "none", backbone="small-conv", backbone_settings=settings).network()


@pytest.mark.parametrize("method", ["bce", "cls", "curriculum", "em-apl", "imcl", "l2r", "refine", "role", "cnn-rnn"])
@pytest.mark.parametrize("freeze", ["all", 1])
def test_methods_train_what_is_not_frozen(method: str, freeze: Any) -> None:
    from partly import methods
    from partly.labels import Labels
    from partly.scenarios import uniform

    truth = Labels.from_full(np.random.default_rng(1).integers(0, 2, (8, 3)))
    labels = uniform(truth, 0.6, 0)
    settings = {"widths": (2, 4), "freeze": freeze, "rate": 0.5}
    ours = task_of(PICTURES, 3, "mlp", backbone="small-conv", backbone_settings=settings, observed=labels)
    info: Info = methods.find(method)
    built = methods.find(method).build(ours, info.defaults())
    at_rest = {n: p.detach().clone() for n, p in built.named_parameters() if not p.requires_grad}
    moving = {n: p.detach().clone() for n, p in built.named_parameters() if p.requires_grad and ".blocks." in n}
    assert at_rest
    assert bool(moving) == (freeze == 1)
    pool = Pool(PICTURES, labels, 4)
    clock = Clock(0, 2, built.steps(pool))
    built.train()
    for epoch in range(2):
        clock = Clock(0, 2, built.steps(pool), epoch)
        built.begin_epoch(pool, clock)
        for step, found in enumerate(built.epoch(pool, clock)):
            assert np.isfinite(found["loss"]), (epoch, step)
    after = dict(built.named_parameters())
    assert all(torch.equal(after[name], weight) for name, weight in at_rest.items())
    assert all(not torch.equal(after[name], weight) for name, weight in moving.items() if weight.ndim == 4)


def test_a_backbone_that_measures_nothing_needs_no_statistics() -> None:
    class Unmeasured:
        kind, shape, names = "pictures", (3, 32, 32), None

        @property
        def statistics(self) -> Any:
            raise AssertionError("measured")

        def __len__(self) -> int:
            return 4

    items: Any = Unmeasured()
    network = networks.build(items, 2, "linear", None, "efficientnet-lite0", {"pretrained": False, "size": 32})
    assert network.eval()(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape == (2, 2)


@pytest.mark.parametrize(
    ("name", "words"), [("hf", "holds many; write 'hf:NAME'"), ("small-conv:x", "takes no name"), ("hf:", "hf:")]
)
def test_names_with_and_without_a_colon(name: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        backbones.find(name)


def test_direct_use_is_as_by_name() -> None:
    torch.manual_seed(0)
    one = SmallConv(3, (2, 4, 8))
    torch.manual_seed(0)
    other = made()
    x = torch.randn(2, 3, 16, 16)
    assert torch.equal(one.eval()(x), other.eval()(x))
    assert one.width == other.width == 16


def test_views_are_averaged() -> None:
    """Each view by hand: cut out, mirrored, shown on its own."""
    x = torch.from_numpy(np.random.default_rng(3).integers(0, 256, (2, 3, 16, 16), dtype=np.uint8)).float()
    made = {n: backbones.find("small-conv").make((3, 16, 16), widths=(2, 4), views=n) for n in (1, 2, 5, 10)}
    for one in made.values():
        one.load_state_dict(made[1].state_dict())
        one.eval()
    alone = made[1]
    torch.testing.assert_close(made[2](x), (alone(x) + alone(x.flip(3))) / 2)
    crops = [x[:, :, i : i + 14, j : j + 14] for i, j in [(0, 0), (0, 2), (2, 0), (2, 2), (1, 1)]]
    torch.testing.assert_close(made[5](x), torch.stack([alone(crop) for crop in crops]).mean(dim=0))
    mirrored = [crop.flip(3) for crop in crops]
    torch.testing.assert_close(made[10](x), torch.stack([alone(crop) for crop in crops + mirrored]).mean(dim=0))
    with pytest.raises(SettingError, match="views = 3: should be one of 1, 2, 5, 10"):
        backbones.find("small-conv").make((3, 16, 16), views=3)
    with pytest.raises(SettingError, match="views = 2"):
        backbones.find("hashed-words").make((4096,), views=2)
