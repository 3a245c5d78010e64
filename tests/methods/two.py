"""What the tests of methods with two networks share: logits of both, losses of whole items, and who disagrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from conformance.bench import make_pool, make_task
from losses.cases import no, sigmoid, yes
from partly.clock import Clock
from partly.co_training import TwoNetworks

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


def some_agree() -> tuple[Tensor, Tensor, Tensor]:
    f, g, z = case()
    with torch.no_grad():
        g[::3] = f[::3] * 0.7
    assert len(differ(f, g)) == 8
    return f, g, z


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
