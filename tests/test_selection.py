"""Choosing entries by rank, against sorting by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from partly import selection


@st.composite
def choices(draw: st.DrawFn) -> tuple[Tensor, Tensor, int]:
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    size = shape[0] * shape[1]
    values = draw(st.lists(st.integers(-3, 3), min_size=size, max_size=size))  # many are equal
    among = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    return (
        torch.tensor(values, dtype=torch.float32).view(shape),
        torch.tensor(among).view(shape),
        draw(st.integers(0, size + 2)),
    )


@given(choices())
def test_largest_and_smallest(case: tuple[Tensor, Tensor, int]) -> None:
    values, among, count = case
    ranked = sorted(values[among].tolist())
    wanted = min(count, len(ranked))
    for choose, expected in (
        (selection.largest, ranked[len(ranked) - wanted :]),
        (selection.smallest, ranked[:wanted]),
    ):
        chosen = choose(values, among, count)
        assert chosen.shape == values.shape
        assert chosen.dtype == torch.bool
        assert not (chosen & ~among).any()
        assert sorted(values[chosen].tolist()) == expected
        assert torch.equal(choose(values, among, count), chosen)


def test_infinite_values_and_no_gradient() -> None:
    values = torch.tensor([[-torch.inf, 1.0, torch.inf, -torch.inf]], requires_grad=True)
    among = torch.tensor([[True, True, True, False]])
    assert selection.largest(values, among, 3).tolist() == [[True, True, True, False]]
    assert selection.largest(values * 2, among, 1).tolist() == [[False, False, True, False]]
    assert not selection.largest(values * 2, among, 1).requires_grad


@pytest.mark.parametrize(
    ("share", "total", "count"), [(0.0, 9, 0), (0.02, 6, 1), (1 / 3, 6, 2), (0.07, 100, 7), (1.0, 7, 7), (0.5, 0, 0)]
)
def test_share_of(share: float, total: int, count: int) -> None:
    assert selection.share_of(share, total) == count
