"""Heads that start at a solved read-out: until they learn they score as it does, and then they change it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from partly.networks import LabelGNN, find_head
from partly.networks.residual import LowRankHead, ResidualHead, accepts_labels

WIDTH, INPUTS, LABELS = 7, 4, 3


def with_start(head: ResidualHead) -> ResidualHead:
    nn.init.normal_(head.start.weight)
    nn.init.normal_(head.start.bias)
    return head


def structured(name: str) -> ResidualHead:
    settings = {"hidden": 5} if name == "mlp" else {}
    return with_start(ResidualHead(WIDTH, LABELS, INPUTS, *find_head(name).make(INPUTS, LABELS, **settings)))


@pytest.mark.parametrize("name", [None, "mlp", "gnn", "label-transformer"])
def test_untrained_it_is_the_start_and_a_step_changes_it(name: str | None) -> None:
    torch.manual_seed(0)
    head = with_start(ResidualHead(WIDTH, LABELS)) if name is None else structured(name)
    features, start = torch.randn(6, WIDTH), nn.Linear(WIDTH, LABELS)
    start.load_state_dict(head.start.state_dict())
    assert torch.equal(head.eval()(features), start(features))
    optimizer = torch.optim.SGD([p for p in head.parameters() if p.requires_grad], lr=0.1)
    head(features).sum().backward()
    optimizer.step()
    assert not torch.equal(head(features), start(features))
    assert torch.equal(head.start.weight, start.weight)  # the start stays


def test_a_graph_refines_the_logits_of_the_start() -> None:
    torch.manual_seed(0)
    head = structured("gnn").eval()
    features = torch.randn(6, WIDTH)
    logits = head(features)
    assert isinstance(head.rest, LabelGNN)
    assert head.gate is not None
    nn.init.ones_(head.gate)
    assert torch.allclose(head(features), head.rest(logits), atol=1e-6)


def test_only_heads_that_take_labels_are_given_them() -> None:
    assert accepts_labels(structured("label-transformer"))
    assert not accepts_labels(structured("mlp"))
    assert not accepts_labels(ResidualHead(WIDTH, LABELS))


@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("max_norm", [None, 0.5])
def test_low_rank_factors_start_at_the_read_out(size: int, max_norm: float | None) -> None:
    torch.manual_seed(0)
    readout, features = torch.randn(LABELS, WIDTH + 1), torch.randn(6, WIDTH)
    head = LowRankHead(readout, size, max_norm=max_norm)
    assert torch.allclose(head(features), features @ readout[:, :-1].T + readout[:, -1], atol=1e-5)
    if max_norm is not None:
        assert head.weight.norm(dim=1).max().item() == pytest.approx(max_norm)
    product = head.weight @ torch.cat([head.embedding.weight, head.embedding.bias[:, None]], dim=1)
    left, values, right = torch.linalg.svd(readout, full_matrices=False)
    best = left[:, :size] * values[:size] @ right[:size]
    assert torch.allclose(product, best, atol=1e-5)


def test_given_label_vectors_stay() -> None:
    torch.manual_seed(0)
    readout, vectors, features = torch.randn(LABELS, WIDTH + 1), torch.randn(LABELS, 2), torch.randn(6, WIDTH)
    head = LowRankHead(readout, 2, vectors)
    assert torch.equal(head.weight, vectors)
    assert not head.weight.requires_grad
    assert torch.allclose(head(features), features @ readout[:, :-1].T + readout[:, -1], atol=1e-5)
