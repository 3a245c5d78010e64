"""generalized-robust: its terms by hand, and how they change over the schedule."""

from __future__ import annotations

import math

import torch

from losses.cases import no, sigmoid, yes
from methods.by_hand import check_defaults
from partly import losses
from partly.clock import Clock
from partly.methods import generalized_robust


def test_goes_from_start_to_end() -> None:
    logits, z = torch.tensor([[-2.0, 0.5, 2.0, 1.0]]), torch.tensor([[0, 0, 0, 1]], dtype=torch.int8)
    ends = {"slope": (0.0, 4.0), "offset": (-2.0, -6.0), "centre": (0.5, 0.9), "width": (2.0, 1.0)}
    settings = {
        f"{name}_{end}": v for name, pair in ends.items() for end, v in zip(("start", "end"), pair, strict=True)
    }
    for epoch, share in ((0, 0.0), (1, 0.25), (4, 1.0)):
        now = {name: (1 - share) * a + share * b for name, (a, b) in ends.items()}
        found = generalized_robust.loss(logits, z, Clock(0, epochs=4, epoch=epoch), **settings)
        torch.testing.assert_close(found, losses.generalized_robust(logits, z, **now))


def test_defaults() -> None:
    """At the beginning, in the middle and shortly before the end: slope, offset, centre and width of that time."""
    for epoch, (slope, offset, centre, width) in {
        0: (0.0, -2.0, 0.5, 2.0),
        5: (5.0, -5.0, 0.65, 1.25),
        9: (9.0, -7.4, 0.77, 0.65),
    }.items():

        def unknown(x: float, slope=slope, offset=offset, centre=centre, width=width) -> float:
            p = sigmoid(x)
            is_yes = sigmoid(slope * p + offset)
            trust = math.exp(-((p - centre) ** 2) / (2 * width**2))
            return trust * (is_yes * (1 - p**0.01) / 0.01 + (1 - is_yes) * p)

        check_defaults("generalized-robust", yes, no, unknown, Clock(0, epochs=10, steps=4, epoch=epoch))
