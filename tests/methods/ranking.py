"""What the tests of methods that rank share: a time after their warm-up, and some logits and labels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from partly.clock import Clock

LATE = Clock(0, epochs=4, steps=3, epoch=3)


def random_case(items: int = 6, labels: int = 8) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(4)
    logits = torch.from_numpy(rng.normal(scale=2, size=(items, labels)))
    return logits, torch.from_numpy(rng.choice([-1, 0, 1], size=(items, labels)).astype(np.int8))
