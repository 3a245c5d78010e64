"""co-teaching-plus: co-teaching at first, then among the items on which the two disagree, against loops."""

from __future__ import annotations

import pytest

from methods.two import LATE, differ, item_losses, made, some_agree
from partly.clock import Clock
from partly.errors import SettingError
from partly.methods.co_teaching_plus import CoTeachingPlus


def test_among_all_then_among_those_in_dispute() -> None:
    f, g, z = some_agree()
    method = made(CoTeachingPlus, forget=0.25, ramp=0.0, warmup=0.3)
    own_f, own_g = item_losses(f, z), item_losses(g, z)
    for epoch, among in [(0, list(range(12))), (2, list(range(12))), (3, differ(f, g)), (9, differ(f, g))]:
        left = len(among) * 3 // 4
        for_f = sorted(among, key=own_g.__getitem__)[:left]
        for_g = sorted(among, key=own_f.__getitem__)[:left]
        expected = (sum(own_f[i] for i in for_f) + sum(own_g[i] for i in for_g)) / left
        found = method.loss(f, g, z, Clock(0, epochs=10, steps=1, epoch=epoch))
        assert found.item() == pytest.approx(expected, rel=1e-9)
    assert method.loss(f, f * 2, z, LATE) is None


@pytest.mark.parametrize("settings", [{"warmup": -1.0}, {"forget": 1.5}])
def test_impossible_settings_are_refused(settings: dict[str, float]) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(SettingError, match=f"{name} = {value}"):
        made(CoTeachingPlus, **settings)
