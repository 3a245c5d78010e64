"""cls, decoupling, co-teaching, co-teaching-plus and jocor: the loss of a batch against loops over its entries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from conformance.bench import make_pool, make_task
from losses.cases import LOGITS, no, sigmoid, yes
from partly import losses
from partly.clock import Clock
from partly.errors import SettingError
from partly.methods import cls, jocor
from partly.methods.cls import Cls
from partly.methods.co_teaching import CoTeaching
from partly.methods.co_teaching_plus import CoTeachingPlus
from partly.methods.decoupling import Decoupling
from partly.methods.jocor import Jocor
from partly.two_networks import TwoNetworks

EARLY, LATE = Clock(0, epochs=10, steps=1), Clock(0, epochs=10, steps=1, epoch=9)


def made(kind: type[Any], **settings: Any) -> TwoNetworks:
    method: TwoNetworks = kind(make_task(make_pool()), **settings)
    return method


def case(items: int = 12, labels: int = 8, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of f and g, and z."""
    rng = np.random.default_rng(seed)
    f, g = torch.from_numpy(rng.normal(-1, 2, (2, items, labels)))
    z = torch.from_numpy(rng.choice(np.array([-1, 0, 1], np.int8), (items, labels), p=[0.1, 0.7, 0.2]))
    return f.requires_grad_(), g.clone().requires_grad_(), z


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


# -------------------------------------------------------------------- cls


@pytest.mark.parametrize("correct", [False, True])
@pytest.mark.parametrize(("tau_h", "tau_l"), [(0.1, 0.2), (0.1, 0.0), (0.0, 0.2), (0.0, 0.0), (1.0, 0.5)])
def test_cls_against_loops(tau_h: float, tau_l: float, correct: bool) -> None:
    f, g, z = case()
    method = made(Cls, tau_h=tau_h, tau_l=tau_l, ramp=0.5, correct=correct)
    for epoch, reached in [(0, 0.0), (1, 0.2), (4, 0.8), (5, 1.0), (9, 1.0)]:
        shares = reached * tau_h, reached * tau_l, correct
        found = method.loss(f, g, z, Clock(0, epochs=10, steps=1, epoch=epoch))
        assert found.item() == pytest.approx(cls_loss(f, g, z, *shares) + cls_loss(g, f, z, *shares), rel=1e-9)


def test_cls_gradient_is_that_of_the_kept_entries_alone() -> None:
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


def test_cls_never_leaves_out_a_known_no() -> None:
    f, g, z = case()
    with torch.no_grad():
        f[z == -1], g[z == -1] = 50.0, 50.0  # the largest losses of all
    made(Cls, tau_h=1.0, tau_l=1.0, ramp=0.0).loss(f, g, z, EARLY).backward()
    assert torch.equal(f.grad != 0, z != 0)


def test_cls_without_shares_is_assume_negative() -> None:
    f, g, z = case()
    expected = losses.assume_negative(f, z).mean() + losses.assume_negative(g, z).mean()
    torch.testing.assert_close(made(Cls, tau_h=0, tau_l=0).loss(f, g, z, LATE), expected)
    torch.testing.assert_close(made(Cls, tau_h=0.5, tau_l=0.5).loss(f, g, z, EARLY), expected)


def test_cls_leaks_nothing_of_what_it_leaves_out() -> None:
    f, g, z = case()
    place = tuple((z == 0).nonzero()[0].tolist())
    with torch.no_grad():
        f[place], g[place] = float("inf"), float("inf")  # the likeliest yes for both
    loss = made(Cls, tau_h=0.05, tau_l=0.05, ramp=0.0).loss(f, g, z, EARLY)
    loss.backward()
    assert loss.isfinite()
    assert f.grad.isfinite().all()


def test_cls_presets_are_the_figures_of_the_paper() -> None:
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


# -------------------------------------------------------------------- whole items


def item_losses(logits: Tensor, z: Tensor) -> list[float]:
    return [
        sum(yes(x) if known == 1 else no(x) for x, known in zip(row, knowns, strict=True)) / len(row)
        for row, knowns in zip(logits.tolist(), z.tolist(), strict=True)
    ]


def differ(f: Tensor, g: Tensor) -> list[int]:
    return [
        i
        for i in range(len(f))
        if any((sigmoid(a) > 0.5) != (sigmoid(b) > 0.5) for a, b in zip(f[i].tolist(), g[i].tolist(), strict=True))
    ]


def some_agree() -> tuple[Tensor, Tensor, Tensor]:
    f, g, z = case()
    with torch.no_grad():
        g[::3] = f[::3] * 0.7
    assert len(differ(f, g)) == 8
    return f, g, z


def test_decoupling() -> None:
    f, g, z = some_agree()
    method = made(Decoupling, warmup=0.3)
    own = [a + b for a, b in zip(item_losses(f, z), item_losses(g, z), strict=True)]
    for epoch, items in [(0, range(12)), (2, range(12)), (3, differ(f, g)), (9, differ(f, g))]:
        found = method.loss(f, g, z, Clock(0, epochs=10, steps=1, epoch=epoch))
        assert found.item() == pytest.approx(sum(own[i] for i in items) / len(items), rel=1e-9)
    assert method.loss(f, f * 2, z, LATE) is None


@pytest.mark.parametrize(("epoch", "left"), [(0, 12), (1, 11), (5, 6), (9, 6)])
def test_co_teaching(epoch: int, left: int) -> None:
    f, g, z = case()
    found = made(CoTeaching, forget=0.5, ramp=0.5).loss(f, g, z, Clock(0, epochs=10, steps=1, epoch=epoch))
    own_f, own_g = item_losses(f, z), item_losses(g, z)
    left = math.floor((1 - 0.5 * min(epoch / 5, 1)) * 12)
    for_f = sorted(range(12), key=own_g.__getitem__)[:left]
    for_g = sorted(range(12), key=own_f.__getitem__)[:left]
    expected = (sum(own_f[i] for i in for_f) + sum(own_g[i] for i in for_g)) / left
    assert found.item() == pytest.approx(expected, rel=1e-9)
    found.backward()
    assert sorted(for_f) == f.grad.abs().sum(dim=1).nonzero().squeeze(1).tolist()
    assert sorted(for_g) == g.grad.abs().sum(dim=1).nonzero().squeeze(1).tolist()


def test_co_teaching_plus() -> None:
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


def test_jocor() -> None:
    f, g, z = case()
    found = made(Jocor, forget=0.25, agreement=0.3, ramp=0.0).loss(f, g, z, EARLY)
    joint = []
    for i, (a, b) in enumerate(zip(item_losses(f, z), item_losses(g, z), strict=True)):
        apart = 0.0
        for x, y in zip(f[i].tolist(), g[i].tolist(), strict=True):
            p, q = sigmoid(x), sigmoid(y)
            apart += p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
            apart += q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
        joint.append(0.7 * (a + b) + 0.3 * apart / z.shape[1])
    assert found.item() == pytest.approx(sum(sorted(joint)[:9]) / 9, rel=1e-9)
    found.backward()
    for own in (f, g):  # both are drawn to the other
        assert int((own.grad.abs().sum(dim=1) > 0).sum()) == 9
    everything = made(Jocor, forget=0.25, agreement=0.3, ramp=0.5).loss(f, g, z, EARLY)
    assert everything.item() == pytest.approx(sum(joint) / 12, rel=1e-9)


def test_jocor_divergence_and_its_gradient() -> None:
    assert jocor.divergence(LOGITS, LOGITS / 2).mean().item() == pytest.approx(0.0889303836, rel=1e-8)
    f, g = LOGITS.clone().requires_grad_(), (LOGITS / 2).requires_grad_()
    assert torch.autograd.gradcheck(jocor.divergence, (f, g))
    wild = torch.tensor([[1e4, -1e4]]), torch.tensor([[-1e4, -1e4]])
    assert jocor.divergence(*wild).tolist() == [[2e4, 0.0]]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Cls, {"tau_h": 1.5}),
        (Cls, {"tau_l": -0.5}),
        (Cls, {"ramp": 2.0}),
        (Decoupling, {"warmup": 1.5}),
        (CoTeaching, {"forget": -0.1}),
        (CoTeaching, {"ramp": 1.1}),
        (CoTeachingPlus, {"warmup": -1.0}),
        (CoTeachingPlus, {"forget": 1.5}),
        (Jocor, {"agreement": 1.5}),
        (Jocor, {"forget": 1.5}),
    ],
)
def test_impossible_settings_are_refused(kind: type[TwoNetworks], settings: dict[str, float]) -> None:
    (name,) = settings
    with pytest.raises(SettingError, match=f"{name} = {settings[name]}"):
        made(kind, **settings)
