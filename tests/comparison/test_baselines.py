from __future__ import annotations

import pytest

from comparison.making import line, lines
from partly.comparison import baselines, overview, score_tables
from partly.comparison.groups import gather

TUNED = {"estimator": "tuned-logistic-regression"}
RACE = {"assume-negative": [0.4, 0.5], "bce": [0.50, 0.60], "partial-bce": [0.6, 0.7]}


def yardsticks(*scores: float, **changes):
    how = {"head": "auto", "settings": TUNED} | changes
    return [line("per-label", seed, score, **how) for seed, score in enumerate(scores)]


def behind(*more):
    (block,) = gather([*lines(RACE), *more])
    return baselines.behind(block)


def test_the_best_naive_row_is_measured_by_tuned_scikit_learn_seed_by_seed():
    assert behind(*yardsticks(0.52, 0.61)) == pytest.approx(0.015)
    assert behind(*yardsticks(0.45, 0.55)) == pytest.approx(-0.05)
    assert behind(*yardsticks(0.52)) == pytest.approx(0.02)  # the seed that both have


def test_a_tuned_naive_row_counts_as_well():
    assert behind(*yardsticks(0.52, 0.61), *(line("bce", s, 0.7, tune=3) for s in (0, 1))) == pytest.approx(-0.135)


def test_what_is_no_yardstick_does_not_count():
    assert behind() is None
    assert behind(*yardsticks(0.9, 0.9, settings={})) is None  # not tuned
    (block,) = gather(yardsticks(0.9, 0.9))  # nobody to be measured
    assert baselines.behind(block) is None


def test_yardsticks_are_found_in_any_lines_on_the_same_known_entries():
    there = [*lines(RACE), *yardsticks(0.5, 0.6), *yardsticks(0.1, 0.2, data="other"), *yardsticks(None, data="none")]
    assert baselines.yardstick(there, "tiny", "uniform:0.5") == {0: 0.5, 1: 0.6}
    assert baselines.yardstick(there, "other", "uniform:0.5") == {0: 0.1, 1: 0.2}
    assert baselines.yardstick(there, "tiny", "uniform:0.1") == {}
    assert baselines.yardstick(there, "tiny", "uniform:0.5", "partial") == {}
    assert baselines.yardstick(there, "none", "uniform:0.5") == {}


@pytest.mark.parametrize(("ahead", "shown"), [(0.004, True), (0.006, False)])
def test_a_table_whose_baseline_is_not_at_its_best_is_not_shown(ahead, shown):
    found = [*lines(RACE), *yardsticks(0.5 + ahead, 0.6 + ahead)]
    text, page = score_tables.markdown(found), overview.render(found)
    assert ("| **partial-bce**" in text) == shown
    assert ("wins at uniform:0.5" in text) == shown  # nor does it have a say in who wins
    assert ("Not shown: the best naive row is 0.6 points of mAP below" in text) == (not shown)
    assert ('<th scope="row"><bdi>partial-bce</bdi>' in page) == shown
    assert page.count("Not shown: the best naive row is 0.6 points of mAP below") == 2 * (
        not shown
    )  # picture and table
    assert ("no race has a baseline at its best" in page) == (not shown)
