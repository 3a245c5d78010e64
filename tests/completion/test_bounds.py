"""Bounds against counting by hand: every sample, every order."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

from partly.completion.bounds import SequentialTest, fewest_yes, leading, log_evidence, p_value_missed, wrong_p


def slow_wrong_p(errors: int, sample: int, zone: int, wrong: int) -> float:
    """Every sample of a zone with `errors` + `wrong` wrong entries, one by one."""
    total = min(errors + wrong, zone)
    entries = [True] * total + [False] * (zone - total)
    drawn = [sum(entries[i] for i in chosen) for chosen in itertools.combinations(range(zone), sample)]
    return sum(count <= errors for count in drawn) / len(drawn)


@pytest.mark.parametrize(
    ("errors", "sample", "zone", "wrong"), [(0, 3, 8, 2), (1, 4, 9, 3), (2, 5, 9, 9), (0, 0, 5, 2)]
)
def test_wrong_p_counts_samples(errors: int, sample: int, zone: int, wrong: int) -> None:
    assert wrong_p(errors, sample, zone, wrong) == pytest.approx(slow_wrong_p(errors, sample, zone, wrong))


@pytest.mark.parametrize("risk", [0.1, 0.3])
@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_precision_is_seldom_certified_wrongly(risk: float, allowed: int) -> None:
    """For every zone and sample: passing although more than `allowed` unsampled entries are wrong is rare."""
    for zone, sample in itertools.product((6, 9), (2, 4, 5)):
        for wrong in range(zone + 1):
            broken = sum(
                hypergeom.pmf(errors, zone, wrong, sample)
                for errors in range(sample + 1)
                if wrong - errors > allowed and wrong_p(errors, sample, zone, allowed + 1) <= risk
            )
            assert broken <= risk + 1e-12


@pytest.mark.parametrize("risk", [0.1, 0.3])
@pytest.mark.parametrize("share", [0.25, 0.4])
def test_too_many_missed_yes_are_seldom_certified(risk: float, share: float) -> None:
    """For every number of yes, of yes in the zone and of known ones: every outcome, weighted by its probability."""
    for (fewest, most), known in itertools.product(((0, 6), (3, 10)), (1, 4, 8)):
        for hidden in range(fewest, most + 1):
            for in_zone in range(known + hidden + 1):
                broken = sum(
                    hypergeom.pmf(missed, known + hidden, in_zone, known)
                    for missed in range(known + 1)
                    if in_zone - missed > share * hidden + 1e-12
                    and p_value_missed(missed, known, share, (fewest, most)) <= risk
                )
                assert broken <= risk + 1e-12


def test_missed_p_of_many_yes_is_binomial() -> None:
    p = p_value_missed(3, 300, 0.05, (10**6, 2 * 10**6))
    assert p == pytest.approx(binom.cdf(3, 300, 0.05), rel=0.02)
    assert p_value_missed(0, 300, 0.05, (10**6, 2 * 10**6)) < p < p_value_missed(9, 300, 0.05, (10**6, 2 * 10**6))
    assert p_value_missed(0, 300, 0.05, (0, 0)) == 0.0  # nothing is hidden


@pytest.mark.parametrize("risk", [0.05, 0.3])
def test_the_number_of_yes_is_seldom_overestimated(risk: float) -> None:
    entries, known = 12, 5
    for yes in range(entries + 1):
        too_high = sum(
            hypergeom.pmf(k, entries, yes, known)
            for k in range(known + 1)
            if hypergeom.pmf(k, entries, yes, known) and fewest_yes(k, known, entries, risk) > yes
        )
        assert too_high <= risk + 1e-12
    assert fewest_yes(0, known, entries, risk) == 0
    assert fewest_yes(5, 5, 5, risk) == 5


def test_wrong_p_of_a_zone_without_end_is_binomial() -> None:
    assert wrong_p(2, 100, 10**7, 5 * 10**5) == pytest.approx(binom.cdf(2, 100, 0.05), rel=1e-3)


def test_the_classic_59() -> None:
    """95 % at 95 % takes 59 answers without error, in a zone without end."""
    assert wrong_p(0, 59, 10**9, 5 * 10**7) <= 0.05 < wrong_p(0, 58, 10**9, 5 * 10**7)


@given(
    st.lists(st.tuples(st.floats(0.01, 0.99), st.floats(0.1, 3)), min_size=1, max_size=7),
)
def test_evidence_is_no_more_than_one_on_average(parts: list[tuple[float, float]]) -> None:
    """Losses of two values, of mean 0 together: every outcome, weighted by its chance."""
    mean = sum(chance * size for chance, size in parts) / len(parts)
    largest = max(size for _, size in parts) - mean
    total = 0.0
    for outcome in itertools.product((0, 1), repeat=len(parts)):
        chance = math.prod(p if hit else 1 - p for hit, (p, _) in zip(outcome, parts, strict=True))
        losses = np.array([hit * size - mean for hit, (_, size) in zip(outcome, parts, strict=True)])
        total += chance * math.exp(log_evidence(losses, largest))
    assert total <= 1 + 1e-9


def test_evidence_grows_with_losses_below_zero() -> None:
    assert log_evidence(np.full(200, -0.05), 0.95) > math.log(100)
    assert log_evidence(np.empty(0), 1.0) == 0.0


@pytest.mark.parametrize(("zone", "wrong"), [(7, 2), (8, 3), (6, 5)])
def test_a_race_is_seldom_won_by_chance_whenever_one_looks(zone: int, wrong: int) -> None:
    """Every order of a zone that just bears the claim out: the evidence may be looked at after each draw."""
    orders = list(itertools.combinations(range(zone), wrong))
    for risk in (0.2, 0.4, 0.7):
        won = 0
        for places in orders:
            errors = np.isin(np.arange(zone), places)
            tests = (SequentialTest.of(errors[:n], zone, wrong) for n in range(1, zone + 1))
            won += any(test.log >= -math.log(risk) for test in tests)
        assert won / len(orders) <= risk


@pytest.mark.parametrize("precision", [0.5, 0.75])
def test_unasked_entries_are_seldom_certified_wrongly(precision: float) -> None:
    """Every zone of 9 and every order: certified at some time, though too many of the unasked entries are wrong."""
    zone, risk = 9, 0.3
    for wrong in range(zone + 1):
        orders = list(itertools.combinations(range(zone), wrong))
        broken = 0
        for places in orders:
            errors = np.isin(np.arange(zone), places)
            for drawn in range(1, zone):
                allowed = math.floor((1 - precision) * (zone - drawn))
                claim = allowed + 1 + int(errors[:drawn].sum())
                passes = SequentialTest.of(errors[:drawn], zone, claim).log >= -math.log(risk)
                if passes and errors[drawn:].sum() > allowed:
                    broken += 1
                    break
        assert broken / len(orders) <= risk


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 30))
def test_evidence_grows_with_the_claim(errors: list[bool], wrong: int) -> None:
    """So a claim that depends on the errors so far is tested as safely as a fixed one."""
    less, more = (SequentialTest.of(np.array(errors, bool), 40, claim).log for claim in (wrong, wrong + 1))
    assert less <= more + 1e-12


def test_a_race_says_how_many_draws_it_takes() -> None:
    race = SequentialTest.of(np.array([False, True, False]), 10_000, 501)
    more = race.count_needed_draws(0.025, 1000)
    assert more is not None
    for draws, enough in ((more, True), (more - 1, False)):
        after = SequentialTest.of(np.array([False, True, False] + [False] * draws), 10_000, 501)
        assert (after.log >= -math.log(0.025)) is enough
    assert race.count_needed_draws(0.025, more - 1) is None


def test_a_race_that_found_all_errors_is_lost() -> None:
    race = SequentialTest.of(np.array([True, True]), 100, 2)
    assert race.log == -math.inf
    assert race.count_needed_draws(0.05, 98) is None


def test_leading_stops_at_the_first_that_fails() -> None:
    passed = np.array([[True, True, False], [True, False, True], [False, True, True]])
    assert leading(passed).tolist() == [2, 1, 0]
