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


# -------------------------------------------------------------------- by loss

KEEP = [1.0, 0.995, 0.9, 2 / 3, 0.5, 1 / 3, 0.0]


@st.composite
def batches(draw: st.DrawFn, ties: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Losses of two networks, and z."""
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    size = shape[0] * shape[1]
    ranks = st.lists(st.integers(0, 3), min_size=size, max_size=size) if ties else st.permutations(range(size))
    own, peer = (torch.tensor(draw(ranks), dtype=torch.float32).view(shape) for _ in range(2))
    z = draw(st.lists(st.sampled_from([-1, 0, 0, 0, 1]), min_size=size, max_size=size))
    return own, peer, torch.tensor(z, dtype=torch.int8).view(shape)


def slowly(own: Tensor, peer: Tensor, z: Tensor, keep_high: float, keep_low: float) -> list[tuple[int, int]]:
    """Sort all unknown entries, cut, sort again, cut again."""
    kept = [(i, j) for i in range(z.shape[0]) for j in range(z.shape[1]) if z[i, j] == 0]
    kept = sorted(kept, key=lambda at: peer[at].item())[: int(keep_high * len(kept) + 1e-9)]
    return sorted(kept, key=lambda at: -own[at].item())[: int(keep_low * len(kept) + 1e-9)]


def places(mask: Tensor) -> set[tuple[int, int]]:
    return {(i, j) for i, j in mask.nonzero().tolist()}


@given(batches(ties=False), st.sampled_from(KEEP), st.sampled_from(KEEP))
def test_co_label_selection_keeps_exactly_what_a_loop_keeps(
    case: tuple[Tensor, Tensor, Tensor], keep_high: float, keep_low: float
) -> None:
    own, peer, z = case
    kept = selection.co_label_selection(own, peer, z, keep_high, keep_low)
    assert (kept.shape, kept.dtype) == (z.shape, torch.bool)
    assert places(kept) == set(slowly(own, peer, z, keep_high, keep_low))
    # The larger the logit, the larger the loss of a no: their order is the same.
    logits = [torch.special.logit((values + 1) / (values.numel() + 1)) for values in (own, peer)]
    assert torch.equal(selection.co_label_selection(*logits, z, keep_high, keep_low), kept)


@given(batches(ties=True), st.sampled_from(KEEP), st.sampled_from(KEEP))
def test_co_label_selection_with_equal_losses(
    case: tuple[Tensor, Tensor, Tensor], keep_high: float, keep_low: float
) -> None:
    """As many as without ties, the same ones each time, and of the right losses where there is one cut alone."""
    own, peer, z = case
    kept = selection.co_label_selection(own, peer, z, keep_high, keep_low)
    assert int(kept.sum()) == len(slowly(own, peer, z, keep_high, keep_low))
    assert (z[kept] == 0).all()
    assert torch.equal(selection.co_label_selection(own, peer, z, keep_high, keep_low), kept)
    for values, shares in ((peer, (keep_high, 1.0)), (own, (1.0, keep_low))):
        found = values[selection.co_label_selection(own, peer, z, *shares)].tolist()
        assert sorted(found) == sorted(values[at].item() for at in slowly(own, peer, z, *shares))


def test_co_label_selection_by_hand() -> None:
    z = torch.tensor([[0, 1, 0], [0, -1, 0]], dtype=torch.int8)
    own = torch.tensor([[1.0, 9.0, 2.0], [3.0, 9.0, 4.0]])
    peer = torch.tensor([[5.0, 9.0, 6.0], [7.0, 9.0, 8.0]])
    # Of four unknown entries the peer's largest loss goes, then of three the smallest of one's own.
    kept = selection.co_label_selection(own, peer, z, 0.75, 2 / 3)
    assert kept.tolist() == [[False, False, True], [True, False, False]]
    assert torch.equal(selection.co_label_selection(own, peer, z, 1.0, 1.0), z == 0)
    assert not selection.co_label_selection(own, peer, z, 0.0, 1.0).any()


@pytest.mark.parametrize(("unknown", "keep", "count"), [(0, 0.5, 0), (1, 1.0, 1), (1, 0.99, 0), (2, 0.5, 1)])
def test_co_label_selection_of_few(unknown: int, keep: float, count: int) -> None:
    z = torch.tensor([[1, -1] + [0] * unknown], dtype=torch.int8)
    losses = torch.rand(z.shape, generator=torch.Generator().manual_seed(0))
    for shares in ((keep, 1.0), (1.0, keep)):
        assert int(selection.co_label_selection(losses, losses, z, *shares).sum()) == count


@pytest.mark.parametrize(
    ("labels", "tau_h", "tau_l", "high", "low"),
    [(80, 0.012, 0.06, 114, 562), (20, 0.005, 0.02, 12, 46), (81, 0.02, 0.06, 192, 565)],
)
def test_co_label_selection_at_the_size_of_the_paper(
    labels: int, tau_h: float, tau_l: float, high: int, low: int
) -> None:
    """A batch of 120 items with one yes each, of COCO, VOC and NUS-WIDE."""
    z = torch.zeros(120, labels, dtype=torch.int8)
    z[:, 3] = 1
    own, peer = torch.rand((2, *z.shape), generator=torch.Generator().manual_seed(0))
    unknown = 120 * (labels - 1)
    first = selection.co_label_selection(own, peer, z, 1 - tau_h, 1.0)
    both = selection.co_label_selection(own, peer, z, 1 - tau_h, 1 - tau_l)
    assert unknown - int(first.sum()) == high
    assert int(first.sum()) - int(both.sum()) == low
    assert not (both & ~first).any()


@given(batches(ties=True), st.sampled_from(KEEP))
def test_small_and_large_losses_share_the_entries(case: tuple[Tensor, Tensor, Tensor], keep: float) -> None:
    losses, _, z = case
    unknown = z == 0
    small, large = selection.small_loss(losses, unknown, keep), selection.large_loss(losses, unknown, 1 - keep)
    assert torch.equal(small | large, unknown)
    assert not (small & large).any()
    assert int(small.sum()) == int(keep * int(unknown.sum()) + 1e-9)
    if small.any() and large.any():
        assert losses[small].max() <= losses[large].min()


def test_no_gradient_flows_through_a_choice() -> None:
    own, peer = torch.rand((2, 2, 3), requires_grad=True)
    assert not selection.co_label_selection(own, peer, torch.zeros(2, 3), 0.5, 0.5).requires_grad
