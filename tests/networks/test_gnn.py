"""LabelGNN: algorithm 2 by loops, the projected form, bounded memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from partly import networks
from partly.errors import SettingError
from partly.items import as_items
from partly.networks import LabelGNN, gnn


def slow(net: LabelGNN, x: Tensor, embedding: Tensor, readout: Tensor) -> Tensor:
    """Node by node and message by message, for one item's logits [L]."""
    labels = len(x)
    first = [x[v] * embedding[v] for v in range(labels)]
    state = first
    for _ in range(net.steps):
        heard = []
        for v in range(labels):
            said = [torch.relu(net.message(state[u])) for u in range(labels) if u != v]
            heard.append(sum(said) / len(said) if said else torch.zeros_like(first[v]))
        state = [net.update(m[None], h[None])[0] for m, h in zip(heard, state, strict=True)]
    return torch.stack([(first[v] + state[v]) @ readout[v] for v in range(labels)])


@pytest.mark.parametrize(("labels", "steps"), [(3, 3), (3, 1), (5, 2), (1, 3)])
def test_forward_is_algorithm_2(labels: int, steps: int) -> None:
    torch.manual_seed(0)
    net = LabelGNN(labels, steps=steps).double()
    assert isinstance(net.message, nn.Linear)
    assert isinstance(net.update, nn.GRUCell)
    assert net.update.hidden_size == labels
    x = torch.randn(4, labels, dtype=torch.float64)
    one_hot = torch.eye(labels, dtype=torch.float64)
    expected = torch.stack([slow(net, row, one_hot, one_hot) for row in x])
    torch.testing.assert_close(net(x), expected, rtol=1e-12, atol=1e-12)


def test_projected_states() -> None:
    torch.manual_seed(0)
    net = LabelGNN(5, hidden=3).double()
    assert net.embedding is not None
    assert net.readout is not None
    with torch.no_grad():
        net.readout += torch.randn_like(net.readout)  # else it would not matter which of the two is used where
    x = torch.randn(4, 5, dtype=torch.float64)
    expected = torch.stack([slow(net, row, net.embedding, net.readout) for row in x])
    torch.testing.assert_close(net(x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("hidden", [None, 3])
def test_without_steps_the_logit_counts_twice(hidden: int | None) -> None:
    x = torch.randn(4, 5)
    torch.testing.assert_close(LabelGNN(5, hidden=hidden, steps=0)(x), 2 * x)


def test_hidden_size_by_labels() -> None:
    assert LabelGNN(512).update.hidden_size == 512
    assert LabelGNN(512).embedding is None
    assert LabelGNN(513).update.hidden_size == 512 * 512 // 513
    assert LabelGNN(5000).update.hidden_size == 52
    assert LabelGNN(10**5).update.hidden_size == 16


@pytest.mark.parametrize("wrong", [{"labels": 0}, {"labels": 3, "hidden": 0}, {"labels": 3, "steps": -1}])
def test_impossible_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError, match=next(reversed(wrong))):
        LabelGNN(**wrong)


@pytest.mark.parametrize(("hidden", "kept"), [(None, 0), (3, 0), (None, 10**6)])
def test_a_large_batch_is_worked_through_in_parts(
    monkeypatch: pytest.MonkeyPatch, hidden: int | None, kept: int
) -> None:
    torch.manual_seed(0)
    net = LabelGNN(4, hidden=hidden).double()
    x = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    whole = net(x)
    asked = [x, *net.parameters()]
    expected = torch.autograd.grad(whole.square().sum(), asked)
    rows: list[int] = []
    scores = net._scores
    monkeypatch.setattr(net, "_scores", lambda part: rows.append(len(part)) or scores(part))
    monkeypatch.setattr(gnn, "CHUNK_NUMBERS", 2 * net.labels * net.update.hidden_size)
    monkeypatch.setattr(gnn, "CHECKPOINT_NUMBERS", kept)
    parts = net(x)
    assert rows == [2, 2, 2, 1]
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(torch.autograd.grad(parts.square().sum(), asked), expected)
    assert len(rows) == (4 if kept else 8)  # not kept: worked out again


def test_gradients() -> None:
    torch.manual_seed(0)
    net = LabelGNN(3).double()
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(net, (x,))


def test_the_head_is_an_mlp_below_the_graph() -> None:
    network = networks.build(as_items(torch.randn(6, 7)), labels=5, head="gnn").eval()
    x = torch.randn(2, 7)
    linear, graph = network.head
    assert network.features(x).shape == (2, 512)
    assert [m.p for m in network.features.modules() if isinstance(m, nn.Dropout)] == [0.5, 0.5]
    torch.testing.assert_close(network(x), graph(linear(network.features(x))))
