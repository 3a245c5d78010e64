"""cls: the loss of a batch against loops over its entries, what is left out of it, and the paper's presets."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from losses.cases import no, yes
from methods.two import EARLY, LATE, case, made
from partly import losses
from partly.clock import Clock
from partly.errors import SettingError
from partly.methods import cls
from partly.methods.cls import Cls


def cls_loss(own: Tensor, peer: Tensor, z: Tensor, high: float, low: float, correct: bool = False) -> float:
    """Entry by entry."""
    entries = [(i, j) for i in range(len(z)) for j in range(z.shape[1])]
    unknown = sorted((at for at in entries if z[at] == 0), key=lambda at: no(peer[at].item()))
    count = math.floor((1 - high) * len(unknown) + 1e-9)
    kept, likely = unknown[:count], unknown[count:]
    kept = sorted(kept, key=lambda at: -no(own[at].item()))[: math.floor((1 - low) * len(kept) + 1e-9)]
    total = sum(yes(own[at].item()) for at in entries if z[at] == 1)
    total += sum(no(own[at].item()) for at in entries if z[at] == -1)
    total += sum(no(own[at].item()) for at in kept)
    total += sum(yes(own[at].item()) for at in likely) if correct else 0.0
    return total / z.numel()


@pytest.mark.parametrize("correct", [False, True])
@pytest.mark.parametrize(("tau_h", "tau_l"), [(0.1, 0.2), (0.1, 0.0), (0.0, 0.2), (0.0, 0.0), (1.0, 0.5)])
def test_against_loops(tau_h: float, tau_l: float, correct: bool) -> None:
    f, g, z = case()
    method = made(Cls, tau_h=tau_h, tau_l=tau_l, ramp=0.5, correct=correct)
    for epoch, reached in [(0, 0.0), (1, 0.2), (4, 0.8), (5, 1.0), (9, 1.0)]:
        shares = reached * tau_h, reached * tau_l, correct
        found = method.loss(f, g, z, Clock(0, epochs=10, steps=1, epoch=epoch))
        assert found.item() == pytest.approx(cls_loss(f, g, z, *shares) + cls_loss(g, f, z, *shares), rel=1e-9)


def test_gradient_is_that_of_the_kept_entries_alone() -> None:
    f, g, z = case()
    made(Cls, tau_h=0.1, tau_l=0.3, ramp=0.0).loss(f, g, z, EARLY).backward()
    unknown = int((z == 0).sum())
    left_out = math.ceil(0.1 * unknown) + math.ceil(0.3 * (unknown - math.ceil(0.1 * unknown)))
    for own in (f, g):
        plain = (torch.sigmoid(own) - (z > 0).double()) / z.numel()
        none = own.grad == 0
        assert (z[none] == 0).all()
        assert int(none.sum()) == left_out
        torch.testing.assert_close(own.grad[~none], plain[~none])


def test_never_leaves_out_a_known_no() -> None:
    f, g, z = case()
    with torch.no_grad():
        f[z == -1], g[z == -1] = 50.0, 50.0  # the largest losses of all
    made(Cls, tau_h=1.0, tau_l=1.0, ramp=0.0).loss(f, g, z, EARLY).backward()
    assert torch.equal(f.grad != 0, z != 0)


def test_without_shares_is_assume_negative() -> None:
    f, g, z = case()
    expected = losses.assume_negative(f, z).mean() + losses.assume_negative(g, z).mean()
    torch.testing.assert_close(made(Cls, tau_h=0, tau_l=0).loss(f, g, z, LATE), expected)
    torch.testing.assert_close(made(Cls, tau_h=0.5, tau_l=0.5).loss(f, g, z, EARLY), expected)


def test_leaks_nothing_of_what_it_leaves_out() -> None:
    f, g, z = case()
    place = tuple((z == 0).nonzero()[0].tolist())
    with torch.no_grad():
        f[place], g[place] = float("inf"), float("inf")  # the likeliest yes for both
    loss = made(Cls, tau_h=0.05, tau_l=0.05, ramp=0.0).loss(f, g, z, EARLY)
    loss.backward()
    assert loss.isfinite()
    assert f.grad.isfinite().all()


def test_presets_are_the_figures_of_the_paper() -> None:
    high = {
        "voc": (0.02, [0.002, 0.003, 0.005, 0.005]),
        "coco": (0.06, [0.005, 0.010, 0.012, 0.012]),
        "nus-wide": (0.06, [0.006, 0.012, 0.020, 0.020]),
    }
    for data, (tau_l, every) in high.items():
        for left, tau_h in zip(("75", "50", "25", "single"), every, strict=True):
            method = made(Cls, preset=f"{data}-{left}")
            assert (method.tau_h, method.tau_l) == (tau_h, tau_l)
    assert len(cls.PRESETS) == 13
    assert set(cls.PRESETS) == set(cls.Preset.__args__)
    own = made(Cls, preset="coco-25", tau_h=0.0)
    assert (own.tau_h, own.tau_l) == (0.0, 0.06)


@pytest.mark.parametrize("settings", [{"tau_h": 1.5}, {"tau_l": -0.5}, {"ramp": 2.0}])
def test_impossible_settings_are_refused(settings: dict[str, float]) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(SettingError, match=f"{name} = {value}"):
        made(Cls, **settings)
