"""A batch in parts is the batch."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from partly.networks.in_parts import in_parts


@pytest.mark.parametrize("kept", [0, math.inf])
@pytest.mark.parametrize("part", [1, 6, 100])
def test_parts_are_put_together(part: int, kept: float) -> None:
    seen: list[int] = []

    def work(x: Tensor, y: Tensor) -> Tensor:
        seen.append(len(x))
        return (x * y).sum(dim=1, keepdim=True)

    x, y = torch.arange(14.0).view(7, 2).requires_grad_(), torch.full((7, 2), 2.0)
    made = in_parts(work, 3, part, kept, x, y)
    assert made.flatten().tolist() == [2.0 * (2 * i + 2 * i + 1) for i in range(7)]
    assert seen == {1: [1] * 7, 6: [2, 2, 2, 1], 100: [7]}[part]
    made.sum().backward()
    assert torch.equal(x.grad, y)
    assert len(seen) == {1: 7, 6: 4, 100: 1}[part] * (2 if kept == 0 else 1)  # again, for the gradient
