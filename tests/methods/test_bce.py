"""bce: what is unknown has no loss, and still divides."""

from __future__ import annotations

import pytest

from losses.cases import LOGITS, MIXED, no, yes
from methods.by_hand import check_defaults
from partly import methods


def test_defaults() -> None:
    check_defaults("bce", yes, no, lambda _: 0.0)


def test_the_mean_is_over_all_entries() -> None:
    """Of eight, three are known: yes at 2 and at 1.5, no at -3."""
    found = methods.find("bce").make(LOGITS, MIXED).mean().item()
    assert found == pytest.approx((yes(2.0) + yes(1.5) + no(-3.0)) / 8)
