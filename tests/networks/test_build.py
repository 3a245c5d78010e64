"""Heads and backbones: shapes, sizes, and what `build` refuses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from partly import networks
from partly.errors import SettingError
from partly.items import Items, as_items, to_absent
from partly.networks import SmallConv, Standardize, linear, mlp


@pytest.mark.parametrize("head", networks.heads())
@pytest.mark.parametrize(
    "items",
    [as_items(torch.randn(6, 7)), as_items(sp.eye_array(6, 7)), as_items(np.zeros((6, 16, 16, 3), np.uint8))],
    ids=["rows", "sparse rows", "pictures"],
)
def test_every_head_on_every_kind_of_item(head: str, items: Items) -> None:
    network = networks.build(items, labels=5, head=head)
    x = items.take(slice(None))
    features = network.features(x)
    assert features.ndim == (4 if items.kind == "pictures" and networks.takes_maps(head) else 2)
    assert network.head(features).shape == network(x).shape == (6, 5)
    assert network.features_and_logits(x)[0].shape == features.shape[:2]
    assert network(x[:1]).shape == (1, 5)
    assert network.width(items.shape) == features.shape[1]
    again = networks.build(to_absent(items), labels=5, head=head)  # to be filled with weights
    again.load_state_dict(network.state_dict())
    assert torch.equal(again.eval()(x), network.eval()(x))


def test_heads_are_the_files_that_define_one() -> None:
    assert {"linear", "mlp"} <= set(networks.heads())
    assert not {"backbones", "low-rank", "network"} & set(networks.heads())


def test_linear_is_one_matrix_on_standardised_features() -> None:
    x = torch.randn(6, 7)
    items = as_items(x)
    network = networks.build(items, labels=5, head="linear").eval()
    standardise = Standardize(items.statistics, items.shape)
    weight, bias = network.parameters()
    torch.testing.assert_close(network(x), standardise(x) @ weight.T + bias)
    assert torch.equal(network.features(x), standardise(x))


def test_mlp_has_two_hidden_layers_of_512() -> None:
    network = networks.build(as_items(torch.randn(6, 7)), labels=5)
    assert [tuple(p.shape) for p in network.parameters() if p.ndim == 2] == [(512, 7), (512, 512), (5, 512)]
    assert network.features(torch.randn(2, 7)).shape == (2, 512)
    assert [m.p for m in network.modules() if isinstance(m, nn.Dropout)] == [0.5, 0.5]


def test_heads_take_their_sizes() -> None:
    trunk, last = mlp.head(7, 5, hidden=(3,), dropout=0.0)
    assert trunk(torch.randn(2, 7)).shape == (2, 3)
    assert last(torch.randn(2, 3)).shape == (2, 5)
    trunk, last = linear.linear(7, 5)
    assert last(trunk(torch.randn(2, 7))).shape == (2, 5)


@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 16, 16), (3, 17, 23), (3, 40, 24)])
def test_conv_shapes(shape: tuple[int, ...]) -> None:
    conv = SmallConv(shape[0])
    assert conv(torch.randn(2, *shape)).shape == (2, conv.width)


def test_conv_scores_one_picture_as_in_company() -> None:
    conv = SmallConv(3)
    x = torch.randn(4, 3, 16, 16)
    conv.train()(2 * x + 1)  # batch normalisation has seen something
    conv.eval()
    torch.testing.assert_close(conv(x)[:1], conv(x[:1]), rtol=1e-4, atol=1e-5)


def test_settings_reach_the_head_and_the_backbone() -> None:
    items = as_items(np.zeros((2, 16, 16, 3), np.uint8))
    network = networks.build(items, 5, "mlp", {"hidden": 6, "dropout": 0.0}, "small-conv", {"widths": (2, 4)})
    assert [tuple(p.shape) for p in network.parameters() if p.ndim == 2] == [(6, 8), (5, 6)]
    assert [tuple(p.shape)[:2] for p in network.parameters() if p.ndim == 4] == [(2, 3), (4, 2)]
    assert network(items.take(slice(None))).shape == (2, 5)


def test_backbones_are_the_files_that_define_one() -> None:
    there = networks.backbones.discover()
    assert "small-conv" in there
    settings = networks.backbones.find("small-conv").complete({"widths": [8]})
    assert (settings["widths"], settings["pooling"], settings["rate"]) == ([8], "gap+gmp", 1.0)
    assert {name for name in networks.backbones.UNTRAINED.values() if name is not None} <= set(there)
    with pytest.raises(SettingError, match=r"There is no backbone 'small-con'\. Did you mean 'small-conv'\?"):
        networks.build(as_items(np.zeros((2, 16, 16, 3), np.uint8)), 5, backbone="small-con")


def test_an_unknown_head_is_refused_with_the_nearest() -> None:
    with pytest.raises(SettingError, match=r"There is no head 'lineer'\. Did you mean 'linear'\?"):
        networks.build(as_items(torch.randn(2, 3)), 5, "lineer")
    with pytest.raises(SettingError, match=r"There is no head 'zzz'\. Available: .*linear, .*mlp"):
        networks.build(as_items(torch.randn(2, 3)), 5, "zzz")


def test_after_predicting_every_part_has_its_own_mode_back() -> None:
    network = networks.build(as_items(torch.randn(4, 3)), 2, "mlp").train()
    network.head.eval()  # a part that was at rest before
    before = [part.training for part in network.modules()]
    with networks.eval_mode(network):
        assert not any(part.training for part in network.modules())
    assert [part.training for part in network.modules()] == before
    with pytest.raises(RuntimeError), networks.eval_mode(network):
        network(torch.randn(4, 99))  # an error on the way
    assert [part.training for part in network.modules()] == before
    assert len(set(before)) == 2
