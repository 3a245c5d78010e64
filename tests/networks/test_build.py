"""Heads and backbones: shapes, sizes, and what `build` refuses."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from partly import networks
from partly.errors import SettingError
from partly.networks import SmallConv, Standardise, linear, mlp


@pytest.mark.parametrize("head", networks.heads())
@pytest.mark.parametrize(
    "x", [torch.randn(6, 7), torch.zeros(6, 3, 16, 16, dtype=torch.uint8)], ids=["rows", "pictures"]
)
def test_every_head_on_every_kind_of_item(head: str, x: torch.Tensor) -> None:
    network = networks.build(head, x, labels=5)
    features = network.features(x)
    assert features.ndim == 2
    assert network.head(features).shape == network(x).shape == (6, 5)
    assert network(x[:1]).shape == (1, 5)


def test_heads_are_the_files_that_define_one() -> None:
    assert {"linear", "mlp"} <= set(networks.heads())
    assert not {"conv", "network"} & set(networks.heads())


def test_linear_is_one_matrix_on_standardised_features() -> None:
    x = torch.randn(6, 7)
    network = networks.build("linear", x, labels=5).eval()
    weight, bias = network.parameters()
    torch.testing.assert_close(network(x), Standardise(x)(x) @ weight.T + bias)
    assert torch.equal(network.features(x), Standardise(x)(x))


def test_mlp_has_two_hidden_layers_of_512() -> None:
    network = networks.build("mlp", torch.randn(6, 7), labels=5)
    assert [tuple(p.shape) for p in network.parameters() if p.ndim == 2] == [(512, 7), (512, 512), (5, 512)]
    assert network.features(torch.randn(2, 7)).shape == (2, 512)
    assert [m.p for m in network.modules() if isinstance(m, nn.Dropout)] == [0.5, 0.5]


def test_heads_take_their_sizes() -> None:
    trunk, last = mlp.head(7, 5, hidden=(3,), dropout=0.0)
    assert trunk(torch.randn(2, 7)).shape == (2, 3)
    assert last(torch.randn(2, 3)).shape == (2, 5)
    trunk, last = linear.head(7, 5)
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


def test_an_unknown_head_is_refused_with_the_nearest() -> None:
    with pytest.raises(SettingError, match=r"There is no head 'lineer'\. Did you mean 'linear'\?"):
        networks.build("lineer", torch.randn(2, 3), 5)
    with pytest.raises(SettingError, match=r"There is no head 'zzz'\. There is: .*linear, .*mlp"):
        networks.build("zzz", torch.randn(2, 3), 5)


def test_after_predicting_every_part_has_its_own_mode_back() -> None:
    network = networks.build("mlp", torch.randn(4, 3), 2).train()
    network.head.eval()  # a part that was at rest before
    before = [part.training for part in network.modules()]
    with networks.predicting(network):
        assert not any(part.training for part in network.modules())
    assert [part.training for part in network.modules()] == before
    with pytest.raises(RuntimeError), networks.predicting(network):
        network(torch.randn(4, 99))  # an error on the way
    assert [part.training for part in network.modules()] == before
    assert len(set(before)) == 2
