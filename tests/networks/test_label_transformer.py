"""LabelTransformer: forward by loops, what is given in training and in use, where gradients stop, bounded memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from networks.slow_transformer import norm, slow_layer
from partly import networks
from partly.errors import SettingError
from partly.items import as_items
from partly.networks import LabelTransformer, label_transformer

SMALL = {"width": 8, "tokens": 2, "layers": 2, "heads": 2}


def make(labels: int = 3, **more: int) -> LabelTransformer:
    """A network in float64 whose states and read-out say something."""
    torch.manual_seed(0)
    net = LabelTransformer(4, labels, **(SMALL | more)).double()
    for parameter in (net.yes, net.no, net.readout):
        nn.init.normal_(parameter)
    return net


def slow(net: LabelTransformer, features: Tensor, z: list[int]) -> Tensor:
    """The logits [L] of one item."""
    tokens = list(net.project(features).view(net.tokens, -1))
    for label, state in enumerate(z):
        token = net.embedding[label]
        tokens.append(token if state == 0 else token + 8**0.5 * (net.yes if state == 1 else net.no)[label])
    *layers, last = net.layers
    for layer in layers:
        tokens = slow_layer(layer, tokens)
    labels = [norm(token, last) for token in tokens[net.tokens :]]
    told = sum(8**0.5 * (net.yes if state == 1 else net.no)[label] for label, state in enumerate(z) if state != 0)
    return net.direct(features) + torch.stack([(labels[v] + told) @ net.readout[v] for v in range(len(z))])


def test_forward_by_loops() -> None:
    net = make().eval()
    features = torch.randn(4, 4, dtype=torch.float64)
    z = [[0, 0, 0], [1, 0, -1], [-1, -1, 1], [0, 1, 0]]
    expected = torch.stack([slow(net, row, states) for row, states in zip(features, z, strict=True)])
    torch.testing.assert_close(net(features, torch.tensor(z, dtype=torch.int8)), expected, rtol=1e-9, atol=1e-9)


def test_in_use_nothing_is_given_unless_the_caller_gives_it_and_then_all() -> None:
    net = make().eval()
    features = torch.randn(5, 4, dtype=torch.float64)
    z = torch.tensor([[1, -1, 0]] * 5, dtype=torch.int8)
    assert torch.equal(net(features), net(features, torch.zeros_like(z)))
    assert torch.equal(net(features, z), net(features, z))  # nothing random
    assert not torch.isclose(net(features), net(features, z)).any()  # each label hears of the others
    assert not torch.isclose(net(features, z), net(features, -z)).any()


def test_training_gives_a_random_part_of_what_is_known_of_each_item(monkeypatch: pytest.MonkeyPatch) -> None:
    net = LabelTransformer(4, 50, **SMALL).train()
    seen: list[Tensor] = []
    scores = net._part
    monkeypatch.setattr(net, "_part", lambda features, given: seen.append(given) or scores(features, given))
    z = torch.randint(-1, 2, (400, 50), dtype=torch.int8)
    net(torch.randn(400, 4), z)
    net(torch.randn(400, 4))
    (given, nothing), known = seen, z != 0
    assert not nothing.any()
    assert torch.equal(given[given != 0], z[given != 0])  # what is given is what is known
    shares = (given != 0).sum(dim=1) / known.sum(dim=1)
    assert shares.mean() == pytest.approx(0.375, abs=0.03)  # between none and three quarters, all alike
    assert shares.std() > 0.19  # 0.75 / sqrt(12) = 0.217: by item, not by entry alone
    yes, no = ((given[z == sign] != 0).double().mean().item() for sign in (1, -1))
    assert yes == pytest.approx(no, abs=0.03)


def test_what_is_given_carries_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    net = make().train()
    features = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    z = torch.tensor([[1, -1, 0], [0, 1, 1]], dtype=torch.int8)
    # An item's chance is 0.75 * 0.8 = 0.6: what is known and draws less is given.
    draws = iter([torch.tensor([[0.8], [0.8]]), torch.tensor([[0.5, 0.7, 0.1], [0.1, 0.59, 0.61]])])
    monkeypatch.setattr(torch, "rand", lambda *_, **__: next(draws))
    logits = net(features, z)
    given = [[True, False, False], [False, True, False]]
    for item in range(2):
        for label in range(3):
            (gradient,) = torch.autograd.grad(logits[item, label], features, retain_graph=True)
            assert gradient.any() != given[item][label]


def test_a_state_that_was_never_shown_changes_nothing() -> None:
    """Trained where only yes is known."""
    torch.manual_seed(0)
    net = LabelTransformer(4, 3, **SMALL)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.1)
    z = torch.randint(0, 2, (30, 3), dtype=torch.int8)
    for _ in range(5):
        loss = nn.functional.binary_cross_entropy_with_logits(net(torch.randn(30, 4), z), z.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    features = torch.randn(30, 4)
    assert torch.equal(net(features, -z), net(features))
    assert not torch.equal(net(features, z), net(features))


@pytest.mark.parametrize("kept", [0, 10**6])
def test_a_large_batch_is_worked_through_in_parts(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    net = make().train()
    features = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    z = torch.randint(-1, 2, (7, 3), dtype=torch.int8)
    asked = [features, *(p for p in net.parameters())]

    def run() -> tuple[Tensor, tuple[Tensor, ...]]:
        torch.manual_seed(1)
        logits = net(features, z)
        return logits, torch.autograd.grad(logits.square().sum(), asked)

    for part in net.modules():  # its draws would differ
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    whole = run()
    rows: list[int] = []
    part_of = net._part
    monkeypatch.setattr(net, "_part", lambda f, g: rows.append(len(f)) or part_of(f, g))
    monkeypatch.setattr(label_transformer, "CHUNK_NUMBERS", 2 * (2 + 3) * 8)
    monkeypatch.setattr(label_transformer, "CHECKPOINT_NUMBERS", kept)
    torch.testing.assert_close(run(), whole)
    assert rows == ([2, 2, 2, 1] if kept else rows)
    assert len(rows) == (4 if kept else 8)  # not kept: worked out again


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # torch's own, in jvp
def test_forward_mode_gives_the_same_derivative_as_backward_mode() -> None:
    net = make().eval()
    features, direction = torch.randn(2, 2, 4, dtype=torch.float64)
    z = torch.tensor([[1, 0, 0], [0, 0, -1]], dtype=torch.int8)
    out, tangent = torch.func.jvp(lambda f: net(f, z), (features,), (direction,))
    torch.testing.assert_close(out, net(features, z))
    jacobian = torch.autograd.functional.jacobian(lambda f: net(f, z), features)
    torch.testing.assert_close(tangent, (jacobian * direction).sum(dim=(2, 3)))


@pytest.mark.parametrize("wrong", [{"labels": 0}, {"tokens": 0}, {"heads": 3}])
def test_impossible_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        make(**wrong)


def test_the_head_takes_labels_and_its_trunk_is_that_of_mlp() -> None:
    network = networks.build(as_items(torch.randn(6, 7)), labels=5, head="label-transformer").eval()
    assert network.takes_labels
    assert network.features(torch.randn(2, 7)).shape == (2, 512)
    z = torch.tensor([[1, 0, 0, 0, -1]], dtype=torch.int8)
    x = torch.randn(1, 7)
    features = network.features(x)
    torch.testing.assert_close(network(x, z), network(x))  # nothing is made of it yet
    nn.init.normal_(network.head.yes)
    torch.testing.assert_close(network(x, z), network.head(features, z))
    assert not torch.equal(network(x, z), network(x))
