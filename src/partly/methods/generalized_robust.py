"""Generalized robust loss (GR): unknown entries are a weighted mixture of robust positives and negatives.

When to use
    Only positives are known, and the network is trained long enough for a schedule to matter.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  v (k (1 - p^q) / q + (1 - k) (1 - (1 - p)^r) / r)
    k = sigmoid(slope p + offset),  v = exp(-(p - centre)^2 / (2 width^2)),  q = yes_power,  r = no_power;
    slope, offset, centre and width go linearly from start to end over the schedule; k and v have no gradient

Reference
    Y. Chen, C. Li, X. Dai, J. Li, W. Sun, Y. Wang, R. Zhang, T. Zhang, B. Wang. Boosting Single Positive Multi-label
    Classification with Generalized Robust Loss. IJCAI 2024. "GR loss".

Known negatives
    Ordinary negatives.

Differences from the paper
    The authors' code counts whole epochs, in two ways that differ by one; here the elapsed share of the schedule
    counts. The loss is computed from logits.

Defaults
    slope_end = 10 and offset_end = -8 were chosen by validation with one positive per item and an MLP head; the
    authors have 2 and -2 for VOC.
"""

from __future__ import annotations

from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.method import About

ABOUT = About(
    search={"slope_end": (0.0, 10.0), "offset_end": (-8.0, 0.0), "centre_end": (0.5, 1.0)}, learns_from_unknown=True
)


def loss(
    logits: Tensor,
    z: Tensor,
    clock: Clock,
    *,
    slope_start: float = 0.0,
    slope_end: float = 10.0,
    offset_start: float = -2.0,
    offset_end: float = -8.0,
    centre_start: float = 0.5,
    centre_end: float = 0.8,
    width_start: float = 2.0,
    width_end: float = 0.5,
    yes_power: float = 0.01,
    no_power: float = 1.0,
) -> Tensor:
    def now(start: float, end: float) -> float:
        return start + (end - start) * clock.progress

    return losses.generalized_robust(
        logits,
        z,
        slope=now(slope_start, slope_end),
        offset=now(offset_start, offset_end),
        centre=now(centre_start, centre_end),
        width=now(width_start, width_end),
        yes_power=yes_power,
        no_power=no_power,
    )
