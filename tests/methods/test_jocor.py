"""jocor: the joint loss of a batch against loops, and the divergence that draws the two together."""

from __future__ import annotations

import math

import pytest
import torch

from losses.cases import LOGITS, sigmoid
from methods.two import EARLY, case, item_losses, made
from partly.errors import SettingError
from partly.methods import jocor
from partly.methods.jocor import Jocor


def test_the_items_with_the_smallest_joint_loss() -> None:
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


def test_divergence_and_its_gradient() -> None:
    assert jocor.divergence(LOGITS, LOGITS / 2).mean().item() == pytest.approx(0.0889303836, rel=1e-8)
    f, g = LOGITS.clone().requires_grad_(), (LOGITS / 2).requires_grad_()
    assert torch.autograd.gradcheck(jocor.divergence, (f, g))
    wild = torch.tensor([[1e4, -1e4]]), torch.tensor([[-1e4, -1e4]])
    assert jocor.divergence(*wild).tolist() == [[2e4, 0.0]]


@pytest.mark.parametrize("settings", [{"agreement": 1.5}, {"forget": 1.5}])
def test_impossible_settings_are_refused(settings: dict[str, float]) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(SettingError, match=f"{name} = {value}"):
        made(Jocor, **settings)
