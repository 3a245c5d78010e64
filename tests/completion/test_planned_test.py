"""Planned tests: exact by every order of small zones, and nearly as powerful as a single look."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import hypergeom

from partly.completion.planned_test import (
    PlannedTest,
    count_passing_errors,
    failure_probability,
    pass_probability,
    plan_test,
)


def share_of_orders_bounded_too_low(test: PlannedTest, wrong: int) -> float:
    """Every order of a zone with so many wrong entries: the bound may be looked at after each draw."""
    orders = list(itertools.combinations(range(test.zone), wrong))
    failed = 0
    for places in orders:
        errors = np.isin(np.arange(test.zone), places)
        bounds = (test.bound_wrong(errors[:n]) for n in range(test.looks[-1] + 1))
        failed += any(bound is not None and bound < wrong for bound in bounds)
    return failed / len(orders)


@pytest.mark.parametrize("risk", [0.1, 0.3, 0.5])
@pytest.mark.parametrize(("zone", "draws", "allowed"), [(7, 4, 0), (8, 5, 1), (9, 6, 1), (9, 4, 2), (10, 7, 2)])
def test_the_bound_is_too_low_as_seldom_as_planned(zone: int, draws: int, allowed: int, risk: float) -> None:
    test = plan_test(zone, allowed, draws, risk)
    worst = max(share_of_orders_bounded_too_low(test, wrong) for wrong in range(zone + 1))
    assert worst <= risk + 1e-12
    predicted = failure_probability(zone, allowed, np.array(test.looks), np.array(test.limits))
    assert worst == pytest.approx(predicted, abs=1e-9)


@pytest.mark.parametrize("zone", [300, 1000, 5000])
@pytest.mark.parametrize("precision", [0.8, 0.9, 0.95])
def test_looks_cost_at_most_two_errors_of_a_single_look(zone: int, precision: float) -> None:
    allowed = int((1 - precision) * (zone - 200))
    test = plan_test(zone, allowed, 200, 0.04)
    single = count_passing_errors(zone, allowed, 200, 0.04)
    assert single - 2 <= test.limits[-1] <= single
    assert hypergeom.cdf(single, zone, allowed + single + 1, 200) <= 0.04
    assert hypergeom.cdf(single + 1, zone, allowed + single + 2, 200) > 0.04
    assert list(test.limits) == sorted(test.limits)


def test_no_look_passes_where_the_draws_are_too_few() -> None:
    test = plan_test(1000, 50, 10, 0.05)
    assert set(test.limits) == {-1}
    assert test.bound_wrong(np.zeros(10, bool)) is None
    assert test.open_looks(np.zeros(0, bool)) == []


def test_a_bound_counts_the_errors_of_the_look_that_passed() -> None:
    test = PlannedTest(100, 5, (10, 20), (0, 2))
    errors = np.zeros(20, bool)
    assert test.bound_wrong(errors[:9]) is None
    assert test.bound_wrong(errors[:10]) == 5
    errors[11] = errors[15] = True
    assert test.bound_wrong(errors) == 5  # the first look has passed without errors
    errors[3] = True
    assert test.bound_wrong(errors) is None
    errors[15] = False
    assert test.bound_wrong(errors) == 7
    assert test.open_looks(errors[:10]) == [20]
    assert test.open_looks(np.ones(3, bool)) == []


def test_an_uncertain_share_of_errors_makes_a_pass_less_certain() -> None:
    assert pass_probability(-1, 100, 0.01, 50) == 0.0
    certain, uncertain = pass_probability(10, 100, 0.05, 1e9), pass_probability(10, 100, 0.05, 20)
    assert 0.9 < certain < 1
    assert 0.5 < uncertain < certain
