"""Probabilities of logits, each by itself: what stands beside it changes no bit.

torch is three times as fast as SciPy here, but works on several entries at a time, and on what is left at the end of an
array one by one, which gives other bits; where there are threads, each has such an end. So it is given parts that leave
nothing over and that it does not share between threads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import pad

Floats = npt.NDArray[np.float32]
TOGETHER = 64  # entries: a multiple of what any processor takes at a time
UNSHARED = 1 << 15  # entries: no thread of torch's takes fewer


def sigmoid(logits: Floats, out: Floats | None = None) -> Floats:
    """1 / (1 + exp(-logits)), of any shape; out: where it goes, contiguous."""
    made = np.empty(logits.shape, np.float32) if out is None else out
    given, found = (torch.from_numpy(of).view(-1) for of in (np.ascontiguousarray(logits), made))
    for part, place in zip(given.split(UNSHARED), found.split(UNSHARED), strict=True):
        place.copy_(pad(part, (0, -len(part) % TOGETHER)).sigmoid_()[: len(part)])
    return made
