"""co-teaching: each learns from the items that fit the other best, against loops."""

from __future__ import annotations

import pytest

from methods.two import case, item_losses, made
from partly.clock import Clock
from partly.errors import SettingError
from partly.methods.co_teaching import CoTeaching


@pytest.mark.parametrize(("epoch", "left"), [(0, 12), (1, 10), (3, 8), (5, 6), (9, 6)])
def test_each_learns_from_what_fits_the_other(epoch: int, left: int) -> None:
    """One half is forgotten from the fifth of ten epochs on, a tenth more in each epoch before."""
    f, g, z = case()
    found = made(CoTeaching, forget=0.5, ramp=0.5).loss(f, g, z, Clock(0, epochs=10, steps=1, epoch=epoch))
    own_f, own_g = item_losses(f, z), item_losses(g, z)
    for_f = sorted(range(12), key=own_g.__getitem__)[:left]
    for_g = sorted(range(12), key=own_f.__getitem__)[:left]
    expected = (sum(own_f[i] for i in for_f) + sum(own_g[i] for i in for_g)) / left
    assert found.item() == pytest.approx(expected, rel=1e-9)
    found.backward()
    assert sorted(for_f) == f.grad.abs().sum(dim=1).nonzero().squeeze(1).tolist()
    assert sorted(for_g) == g.grad.abs().sum(dim=1).nonzero().squeeze(1).tolist()


@pytest.mark.parametrize("settings", [{"forget": -0.1}, {"ramp": 1.1}])
def test_impossible_settings_are_refused(settings: dict[str, float]) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(SettingError, match=f"{name} = {value}"):
        made(CoTeaching, **settings)
