"""Each replacement beside the function of torch whose place it takes."""

from __future__ import annotations

import pytest
import torch
from scipy.special import ndtri
from torch.nn import functional as F

from partly.export import replacements
from partly.export.replacements import ReplaceFunctions


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 200])
@pytest.mark.parametrize("right", [False, True])
def test_places_among_marks(count: int, right: bool) -> None:
    drawn = torch.Generator().manual_seed(count)
    marks = torch.randint(0, 6, (3, count), generator=drawn).float().sort(dim=1).values  # many are equal
    values = torch.randint(-1, 8, (3, 50), generator=drawn).float() / 1.5
    values[:, :8] = torch.arange(-1.0, 7.0)
    assert torch.equal(
        replacements.searchsorted(marks, values, right=right), torch.searchsorted(marks, values, right=right)
    )


def test_quantiles_of_the_normal_distribution() -> None:
    p = torch.cat([torch.linspace(1e-6, 1 - 1e-6, 10_001), torch.tensor([1e-30, 1e-15, 0.075, 0.925])]).double()
    torch.testing.assert_close(replacements.ndtri(p), torch.from_numpy(ndtri(p.numpy())), rtol=0, atol=1e-6)


@pytest.mark.parametrize("width", [1, 16, 37])
def test_sums_of_absolute_differences(width: int) -> None:
    x, marks = torch.randn(4, width), torch.randn(6, width)
    by_hand = torch.tensor([[float((a - b).abs().sum()) for b in marks] for a in x])
    torch.testing.assert_close(replacements.cdist(x, marks, p=1.0), by_hand)


@pytest.mark.parametrize("padding", [None, 0])
def test_means_of_rows(padding: int | None) -> None:
    index, table = torch.randint(0, 4, (6, 5)), torch.randn(4, 3)
    index[0] = 0  # nothing but padding
    made = replacements.embedding_bag(index, table, mode="mean", padding_idx=padding)
    torch.testing.assert_close(made, F.embedding_bag(index, table, mode="mean", padding_idx=padding))


def test_they_take_their_places_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(replacements.REPLACEMENTS, torch.special.ndtri, lambda p: p + 7)
    with ReplaceFunctions():
        assert torch.special.ndtri(torch.tensor(0.5)).item() == 7.5
        bag = torch.nn.EmbeddingBag(4, 3, mode="mean", padding_idx=0)  # asks the function
        torch.testing.assert_close(bag(torch.tensor([[1, 0]])), bag.weight[1:2])
    assert torch.special.ndtri(torch.tensor(0.5)).item() == 0.0
