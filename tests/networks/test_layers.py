"""Building blocks: a batch in chunks is the batch, and pooling, against loops."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from partly.networks.layers import apply_in_chunks, count_pooled, pool

MAPS = torch.randn(2, 3, 4, 5)


@pytest.mark.parametrize("checkpoint_above", [0, math.inf])
@pytest.mark.parametrize("chunk", [1, 6, 100])
def test_chunks_are_put_together(chunk: int, checkpoint_above: float) -> None:
    seen: list[int] = []

    def work(x: Tensor, y: Tensor) -> Tensor:
        seen.append(len(x))
        return (x * y).sum(dim=1, keepdim=True)

    x, y = torch.arange(14.0).view(7, 2).requires_grad_(), torch.full((7, 2), 2.0)
    result = apply_in_chunks(work, 3, chunk, checkpoint_above, x, y)
    assert result.flatten().tolist() == [2.0 * (2 * i + 2 * i + 1) for i in range(7)]
    assert seen == {1: [1] * 7, 6: [2, 2, 2, 1], 100: [7]}[chunk]
    result.sum().backward()
    assert torch.equal(x.grad, y)
    assert len(seen) == {1: 7, 6: 4, 100: 1}[chunk] * (2 if checkpoint_above == 0 else 1)  # again, for the gradient


@pytest.mark.parametrize("how", ["gap", "gmp", "weldon", "gap+gmp"])
def test_by_loops(how: Any) -> None:
    expected = []
    for item in MAPS.tolist():
        flat = [sorted(value for row in channel for value in row) for channel in item]
        mean, most = [sum(values) / 20 for values in flat], [values[-1] for values in flat]
        both = [sum(values[-3:]) / 6 + sum(values[:2]) / 4 for values in flat]
        expected.append({"gap": mean, "gmp": most, "weldon": both, "gap+gmp": mean + most}[how])
    found = pool(MAPS, how, k_max=3, k_min=2)
    torch.testing.assert_close(found, torch.tensor(expected))
    assert found.shape[1] == count_pooled(3, how)


def test_a_tenth_of_the_places_unless_said_otherwise() -> None:
    torch.testing.assert_close(pool(MAPS, "weldon"), pool(MAPS, "weldon", 2, 2))
