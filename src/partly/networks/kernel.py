"""Linear and kernel features side by side: the features themselves, and how near an item is to some training items, by
a Gaussian kernel, and by a Laplace kernel on normal scores.

The linear and the Gaussian ones come twice: standardised, and with the scales that the features came with, which say
something where they are principal axes or counts.

Under a loss that is a weighted cross-entropy of each entry (`bce`, `assume-negative`, ...) each kind is solved by
itself, and counts by what it is worth on held-out entries; `solve` = false trains all of them together, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor, nn

from partly.errors import within
from partly.networks.feature_union import Members
from partly.networks.kernels import AXES, LANDMARKS, SAMPLE, Clipped, NormalScores, Nystroem, Rescaled

ROOM = 1 << 26  # numbers in the examples that are held at a time
MANY = 400  # features: of more, sums of absolute differences take too long, and Euclidean distances are taken instead


def head(
    inputs: int,
    labels: int,
    examples: Callable[[int], Tensor],
    scales: Tensor,
    *,
    landmarks: int = LANDMARKS,
    axes: int = AXES,
    solve: bool = True,
) -> tuple[nn.Module, nn.Module]:
    within(1, math.inf, landmarks=landmarks, axes=axes)
    room = max(1, ROOM // inputs)
    some, normal = examples(min(landmarks, room)), NormalScores(examples(min(SAMPLE, room)))
    raw, clipped = Rescaled(scales), Clipped()
    parts = {
        "linear": nn.Identity(),
        "linear_raw": raw,
        "gaussian": nn.Sequential(clipped, Nystroem(clipped(some), axes)),
        "gaussian_raw": nn.Sequential(raw, clipped, Nystroem(clipped(raw(some)), axes)),
        "laplace": nn.Sequential(normal, Nystroem(normal(some), axes, power=1, norm=1 if inputs <= MANY else 2)),
    }
    widths = {name: inputs if name.startswith("linear") else min(axes, len(some)) for name in parts}
    members = Members(parts, widths)
    return members, nn.Linear(members.width, labels)
