"""splc: focal terms by hand, and when it begins to take what is unknown for yes."""

from __future__ import annotations

import torch

from losses.cases import no, sigmoid, yes
from methods.by_hand import check_defaults
from partly.clock import Clock
from partly.methods import splc


def test_takes_nothing_for_yes_before_its_start() -> None:
    logits, z = torch.full((1, 2), 3.0), torch.tensor([[0, -1]], dtype=torch.int8)
    before, after = (
        splc.loss(logits, z, Clock(0, epochs=10, steps=4, epoch=epoch, step=step), start=0.25)
        for epoch, step in ((2, 1), (2, 2))
    )
    assert torch.equal(before[0, 0], before[0, 1])
    assert after[0, 0] < 0.01 < after[0, 1]
    assert torch.equal(after[0, 1], before[0, 1])


def focal_yes(x: float) -> float:
    return (1 - sigmoid(x)) ** 2 * yes(x)


def focal_no(x: float) -> float:
    return sigmoid(x) ** 2 * no(x)


def test_defaults() -> None:
    """From the tenth of the schedule on, what is unknown and above 0.6 is a yes; a known yes is taken 1 lower."""
    before, after = (Clock(0, epochs=10, steps=4, epoch=epoch) for epoch in (0, 1))
    check_defaults("splc", lambda x: focal_yes(x - 1), focal_no, focal_no, before)
    check_defaults(
        "splc",
        lambda x: focal_yes(x - 1),
        focal_no,
        lambda x: focal_yes(x) if sigmoid(x) > 0.6 else focal_no(x),
        after,
    )
