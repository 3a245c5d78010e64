"""Linear and kernel features side by side: the features themselves, and how near an item is to some training items, by
a Gaussian kernel on standardised features and by a Laplace kernel on normal scores.

Under a loss that is a weighted cross-entropy of each entry (`bce`, `assume-negative`, ...) each kind is solved by itself,
and counts by what it is worth on held-out entries; `solve` = false trains all of them together, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor, nn

from partly.errors import within
from partly.networks.kernels import AXES, LANDMARKS, SAMPLE, Clipped, NormalScores, Nystroem
from partly.networks.members import Members

MANY = 400  # features: of more, sums of absolute differences take too long, and Euclidean distances are taken instead


def head(
    inputs: int,
    labels: int,
    examples: Callable[[int], Tensor],
    *,
    landmarks: int = LANDMARKS,
    axes: int = AXES,
    solve: bool = True,
) -> tuple[nn.Module, nn.Module]:
    within(1, math.inf, landmarks=landmarks, axes=axes)
    clipped, normal = Clipped(), NormalScores(examples(SAMPLE))
    some = examples(landmarks)
    gaussian = Nystroem(clipped(some), axes)
    laplace = Nystroem(normal(some), axes, power=1, norm=1 if inputs <= MANY else 2)
    parts = {
        "linear": nn.Identity(),
        "gaussian": nn.Sequential(clipped, gaussian),
        "laplace": nn.Sequential(normal, laplace),
    }
    members = Members(parts, {"linear": inputs, "gaussian": len(gaussian.mean), "laplace": len(laplace.mean)})
    return members, nn.Linear(members.width, labels)
