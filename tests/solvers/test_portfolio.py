"""How much a forest counts, what may be spent, and what is said of a portfolio."""

from __future__ import annotations

import math

import numpy as np
import pytest

from partly.errors import SettingError
from partly.solvers.blending import relative_gains
from partly.solvers.calibration import calibrate
from partly.solvers.portfolio import (
    DEFICIT_FLOOR,
    DEFICIT_SHARE,
    FOREST_WEIGHT,
    blend_with_forest,
    explain_portfolio,
    parse_budget,
)


def scores(noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    targets = (rng.random((3, 200)) < 0.4).astype(np.float32)
    return (targets + noise * np.random.default_rng(seed).normal(size=targets.shape)).astype(np.float32), targets


def test_a_forest_that_is_as_good_has_its_share_and_one_that_lacks_has_less() -> None:
    kernels, targets = scores(0.5, 1)
    ones = np.ones_like(targets)
    for noise in (0.5, 0.7, 2.0):
        forest, _ = scores(noise, 2)
        losses = [calibrate(part, ones, targets).loss for part in (kernels, forest)]
        best, own = relative_gains(losses, ones, targets)
        _, share = blend_with_forest([kernels, forest], losses, ones, targets)
        assert share == pytest.approx(
            FOREST_WEIGHT * math.exp(min(0.0, own - best) / (DEFICIT_SHARE * best + DEFICIT_FLOOR)), rel=1e-6
        )
    _, none = blend_with_forest([kernels, np.zeros_like(kernels)], [losses[0], math.inf], ones, targets)
    assert none < 1e-6


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(None, (300, False)), ("inf", (math.inf, False)), (5, (300, False)), ("0.5", (30, False)), ("20x", (20, True))],
)
def test_budgets(budget: object, expected: tuple[float, bool]) -> None:
    assert parse_budget(budget) == expected


@pytest.mark.parametrize("budget", ["soon", 0, -3, "x", "0x", float("nan")])
def test_a_budget_that_is_none_is_refused(budget: object) -> None:
    with pytest.raises(SettingError, match="minutes"):
        parse_budget(budget)


def test_the_reason_says_what_counts_and_what_does_not() -> None:
    parts = [{"name": "linear", "score": 0.2, "weight": 0.001}, {"name": "gaussian_raw", "score": 0.5, "weight": 0.999}]
    words = explain_portfolio(parts, 0.55, {"forest": "the budget was spent"}, only_yes=True, related=True, crowd=0.5)
    for said in (
        "gaussian raw 100%",
        "55.0%",
        "50.0%",
        "20.0%",
        "count as negatives",
        "forest (the budget was spent)",
        "0.5",
    ):
        assert said in words
    assert "linear 0%" not in words
    plain = explain_portfolio(parts, 0.55, {}, only_yes=False, related=False, crowd=0.0)
    assert "left out" not in plain
    assert "known entries" in plain
