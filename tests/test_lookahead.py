"""What pseudo-labels do to the validation loss one step on: against double backward, and against trying it out."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from partly import networks
from partly.items import as_items
from partly.lookahead import pseudo_label_gradient
from partly.losses import bce, cross_entropy

ITEMS, VALIDATION, WIDTH, LABELS = 6, 4, 5, 3
LR = 0.5  # large, so that the weights one step on are truly others


def smooth(width: int = WIDTH) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 7), nn.Tanh(), nn.Dropout(0.5), nn.Linear(7, LABELS))


def frozen() -> nn.Module:
    network = smooth()
    network[0].requires_grad_(False)
    return network


def normalized() -> nn.Module:
    network = nn.Sequential(nn.Linear(WIDTH, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, LABELS))
    network(torch.randn(50, WIDTH))  # so that the running means are not those of the first day
    return network


class Tangled(nn.Module):
    """Linear layers in ways that are not a chain."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.first, self.square, self.other = nn.Linear(WIDTH, 7), nn.Linear(7, 7), nn.Linear(7, 7)
        self.last = nn.Linear(7, LABELS, bias=way != "no bias")
        if way == "tied":
            self.other.weight = self.square.weight
        if way == "frozen bias":
            self.square.bias.requires_grad_(False)
        if way == "made":
            nn.utils.parametrize.register_parametrization(self.square, "weight", nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(x))
        if self.way == "rows":
            hidden = self.square(hidden[:, None] * torch.ones(3, 1, dtype=x.dtype)).mean(dim=1)
        else:
            hidden = self.square(hidden)
        if self.way == "in place":
            hidden.relu_()
        aside = self.other(hidden)
        if self.way == "twice":
            hidden = self.square(torch.tanh(hidden))
        if self.way != "aside":
            hidden = hidden + torch.tanh(aside)
        return self.last(hidden)


WAYS = ("aside", "tied", "twice", "rows", "in place", "no bias", "frozen bias", "made")
NETWORKS = {
    **{way: lambda way=way: Tangled(way) for way in WAYS},
    "linear": lambda: nn.Linear(WIDTH, LABELS),
    "tanh": smooth,
    "frozen": frozen,
    "batch norm": normalized,
    **{
        f"head {head}": lambda head=head: networks.build(as_items(torch.randn(20, WIDTH)), LABELS, head)
        for head in networks.heads()
    },
}


def case(name: str, seed: int) -> tuple[nn.Module, Tensor, Tensor, Tensor, Tensor]:
    """A network, x, pseudo, x_val, z_val; some entries of z_val are unknown."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = NETWORKS[name]().double()
        x, x_val = (torch.randn(items, WIDTH, dtype=torch.float64) for items in (ITEMS, VALIDATION))
        z_val = torch.randint(-1, 2, (VALIDATION, LABELS), dtype=torch.int8)
        return network, x, torch.rand(ITEMS, LABELS, dtype=torch.float64), x_val, z_val


def loss_after(network: nn.Module, x: Tensor, pseudo: Tensor, x_val: Tensor, z_val: Tensor) -> Tensor:
    """Equations 6 and 7 as they stand: take the step, measure."""
    network = copy.deepcopy(network).eval()
    weights = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
    loss = cross_entropy(network(x), pseudo).mean()
    slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True, materialize_grads=True)
    ahead = {name: weight - LR * slope for (name, weight), slope in zip(weights.items(), slopes, strict=True)}
    return bce(functional_call(network, ahead, (x_val,)), z_val).mean()


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())
    sure = expected.abs() > 1e-9 * expected.abs().max()
    assert sure.any()
    assert torch.equal(found[sure].sign(), expected[sure].sign())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NETWORKS)
def test_equals_double_backward(name: str, seed: int) -> None:
    network, x, pseudo, *validation = case(name, seed)
    wanted = pseudo.clone().requires_grad_()
    with sdpa_kernel(SDPBackend.MATH):  # the only attention that can be differentiated twice
        (expected,) = torch.autograd.grad(loss_after(network, x, wanted, *validation), wanted)
    assert_close(pseudo_label_gradient(network, x, pseudo, *validation, LR), expected)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["linear", "tanh", "batch norm", "head mlp"])
def test_equals_central_differences(name: str, seed: int) -> None:
    network, x, pseudo, *validation = case(name, seed)
    expected, tiny = torch.empty_like(pseudo), 1e-4
    for entry in itertools.product(range(ITEMS), range(LABELS)):
        up, down = pseudo.clone(), pseudo.clone()
        up[entry] += tiny
        down[entry] -= tiny
        rise = loss_after(network, x, up, *validation) - loss_after(network, x, down, *validation)
        expected[entry] = rise.item() / (2 * tiny)
    assert_close(pseudo_label_gradient(network, x, pseudo, *validation, LR), expected)


@pytest.mark.parametrize("name", ["linear", "tanh", "frozen", "aside", "in place", "no bias", "head mlp"])
def test_linear_layers_need_no_forward_mode(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("partly.lookahead._through_weights")
    network, x, pseudo, *validation = case(name, 0)
    assert pseudo_label_gradient(network, x, pseudo, *validation, LR).any()


def test_the_step_matters() -> None:
    """The validation loss is that of the weights one step on, not of those now."""
    network, *rest = case("tanh", 0)
    far, near = pseudo_label_gradient(network, *rest, LR), pseudo_label_gradient(network, *rest, 1e-9) * LR / 1e-9
    assert (far - near).abs().max() > 1e-3 * near.abs().max()


def test_unknown_entries_of_the_validation_items_say_nothing() -> None:
    network, x, pseudo, x_val, z_val = case("linear", 0)
    z_val[:, 1] = 0
    found = pseudo_label_gradient(network, x, pseudo, x_val, z_val, LR)
    assert (found[:, 1] == 0).all()
    assert (found[:, [0, 2]] != 0).all()


@pytest.mark.parametrize("name", ["tanh", "batch norm"])
def test_the_network_is_left_alone(name: str) -> None:
    network, *rest = case(name, 0)
    network.train()
    network[1].eval()  # a part that somebody froze
    before = copy.deepcopy(network.state_dict())
    modes = [part.training for part in network.modules()]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first = pseudo_label_gradient(network, *rest, LR)
        torch.manual_seed(1)
        again = pseudo_label_gradient(network, *rest, LR)
    assert torch.equal(first, again)  # no dropout
    assert not first.requires_grad
    assert [part.training for part in network.modules()] == modes
    assert all(parameter.grad is None for parameter in network.parameters())
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())
