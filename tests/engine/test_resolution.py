"""What a recipe takes where nobody says."""

from __future__ import annotations

import pytest

from partly import engine
from partly.items import Absent


@pytest.mark.parametrize(
    ("items", "epochs"), [(1000, 40), (200_000, 40), (209_664, 40), (1_000_000, 8), (8_000_000, 1), (10**9, 1)]
)
def test_very_many_items_are_gone_through_less_often(items: int, epochs: int) -> None:
    """The first are as ever; from there on no more than 2^17 steps of 64 items, but once at least."""
    assert engine.default_numbers(Absent("features", (5,), items), 5000)["epochs"] == epochs
