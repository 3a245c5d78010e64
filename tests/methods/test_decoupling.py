"""decoupling: the loss of a batch against loops: all items at first, then those on which the two disagree."""

from __future__ import annotations

import pytest

from methods.two import LATE, differ, item_losses, made, some_agree
from partly.clock import Clock
from partly.errors import SettingError
from partly.methods.decoupling import Decoupling


def test_all_items_then_those_in_dispute() -> None:
    f, g, z = some_agree()
    method = made(Decoupling, warmup=0.3)
    own = [a + b for a, b in zip(item_losses(f, z), item_losses(g, z), strict=True)]
    for epoch, items in [(0, range(12)), (2, range(12)), (3, differ(f, g)), (9, differ(f, g))]:
        found = method.loss(f, g, z, Clock(0, epochs=10, steps=1, epoch=epoch))
        assert found.item() == pytest.approx(sum(own[i] for i in items) / len(items), rel=1e-9)
    assert method.loss(f, f * 2, z, LATE) is None


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(SettingError, match=r"warmup = 1\.5"):
        made(Decoupling, warmup=1.5)
