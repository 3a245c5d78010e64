"""Focusing losses: what they doubt, what they leave out, and what a known no is to them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from losses.cases import LOGITS, MIXED, ONE_YES
from partly import losses

KNOWN_NO = torch.full((2, 4), -1, dtype=torch.int8)


def pull(loss: object, logits: Tensor, z: Tensor) -> Tensor:
    """Where a small step leads: minus the gradient of the sum."""
    logits = logits.clone().requires_grad_()
    loss(logits, z).sum().backward()  # type: ignore[operator]
    assert logits.grad is not None
    return -logits.grad


def test_hill_lets_go_of_what_looks_like_yes() -> None:
    """The pull towards no is largest in between and fades on both sides; that of a known no never does."""
    logits = torch.tensor([[-8.0, 0.5, 8.0]], dtype=torch.float64)
    unknown, no = (-pull(losses.hill, logits, torch.full((1, 3), z, dtype=torch.int8))[0] for z in (0, -1))
    assert unknown[1] > 100 * unknown[0] > 0
    assert unknown[1] > 100 * unknown[2] > 0
    assert no[2] > 0.99


def test_splc_turns_what_is_unknown_and_never_a_known_no() -> None:
    logits = torch.full((2, 4), 2.0, dtype=torch.float64)
    assert (pull(losses.splc, logits, torch.zeros_like(KNOWN_NO)) > 0).all()
    assert (pull(losses.splc, logits, KNOWN_NO) < 0).all()


def test_clipped_no_does_not_count() -> None:
    easy = torch.tensor([[-4.0, -3.0]], dtype=torch.float64)  # p = 0.018, 0.047
    for z in (0, -1):
        assert (losses.asymmetric(easy, torch.full((1, 2), z)) == 0).all()
        assert (pull(losses.asymmetric, easy, torch.full((1, 2), z)) == 0).all()
    assert (losses.asymmetric(easy, torch.ones(1, 2)) > 3).all()


@pytest.mark.parametrize("hidden", [math.nan, math.inf])
def test_ignored_entries_leak_nothing(hidden: float) -> None:
    ignored = torch.tensor([[False, True, False, False], [True, False, False, True]])
    logits = torch.where(ignored, hidden, LOGITS).requires_grad_()
    value = losses.partial_asymmetric(logits, MIXED, ignored=ignored, clip=0.05)
    value.sum().backward()
    whole = losses.partial_asymmetric(LOGITS, MIXED, clip=0.05)
    assert (value[ignored] == 0).all()
    assert torch.equal(value[~ignored], whole[~ignored])
    assert logits.grad is not None
    assert (logits.grad[ignored] == 0).all()
    assert logits.grad.isfinite().all()


def test_without_focus_it_is_cross_entropy() -> None:
    plain = losses.assume_negative(LOGITS, ONE_YES)
    torch.testing.assert_close(losses.focal(LOGITS, ONE_YES, gamma=0.0), plain)
    torch.testing.assert_close(losses.splc(LOGITS, ONE_YES, threshold=1.0, margin=0.0, gamma=0.0), plain)
