"""A share is for networks; who looks at it by himself is told why he cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from partly.distributed.group import SINGLE_PROCESS
from partly.distributed.share import BatchShard
from partly.errors import SettingError
from partly.networks import Network

X = torch.arange(6.0).view(3, 2)
SHARE = BatchShard(X, slice(0, 3), 3, SINGLE_PROCESS)


def test_a_network_makes_of_it_what_it_makes_of_the_batch() -> None:
    network = Network(nn.Linear(2, 4), nn.Linear(4, 3))
    assert torch.equal(network(SHARE), network(X))
    assert all(map(torch.equal, network.features_and_logits(SHARE), network.features_and_logits(X)))


def test_gradients_flow_into_own_rows_alone() -> None:
    """Of a batch of three, of which this process has one, as if there were two others."""

    class Silent(type(SINGLE_PROCESS)):  # type: ignore[misc]
        def total(self, tensor: torch.Tensor) -> torch.Tensor:
            return tensor

    own = torch.tensor([[1.0, 2.0]], requires_grad=True)
    whole = BatchShard(own, slice(1, 2), 3, Silent(1, 3)).gather(own)
    assert whole.tolist() == [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
    (whole * torch.tensor([[5.0], [7.0], [9.0]])).sum().backward()
    assert own.grad is not None
    assert own.grad.tolist() == [[21.0, 21.0]]  # times three: the mean over three processes makes a sum of it


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x - torch.ones(2),
        lambda x: torch.ones(2) - x,
        lambda x: torch.relu(x),
        lambda x: nn.Linear(2, 2)(x),
        lambda x: len(x),
        lambda x: x.shape,
        lambda x: x.flatten(1),
    ],
    ids=["left", "right", "function", "layer", "len", "shape", "method"],
)
def test_who_looks_at_items_by_himself_is_refused(use: Callable[[Any], Any]) -> None:
    with pytest.raises(SettingError, match=r"looks at the items of a batch by itself .*one process"):
        use(SHARE)
