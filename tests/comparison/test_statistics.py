from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from partly.comparison import statistics
from partly.comparison.statistics import (
    Ranking,
    friedman,
    gap_closed,
    holm,
    mean,
    paired_t,
    rank,
    signed_rank,
)

# J. Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 2006, table 6: AUC of C4.5, with m,
# with cf, with both, on 14 data sets. The paper works out mean ranks 3.143, 2.000, 2.893, 1.964 and chi-square 9.28.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def races(scores: np.ndarray, seeds: int = 1) -> list[dict[str, dict[int, float]]]:
    """[blocks, methods] as races of methods m0, m1, ... with the same score at every seed."""
    return [{f"m{j}": dict.fromkeys(range(seeds), float(v)) for j, v in enumerate(row)} for row in scores]


# ---------------------------------------------------------------- means and gaps


def test_mean_and_interval_by_hand():
    # mean 5, variance (9 + 1 + 4 + 4) / 3 = 6, t with 3 degrees of freedom is 3.18245.
    found = mean([2.0, 4.0, 7.0, 7.0])
    assert found.value == 5.0
    assert found.count == 4
    assert found.margin == pytest.approx(3.18245 * math.sqrt(6 / 4), rel=1e-5)


def test_interval_is_that_of_scipy():
    x = np.random.default_rng(0).normal(size=7)
    low, high = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    found = mean(x)
    assert (found.value - found.margin, found.value + found.margin) == pytest.approx((low, high))


def test_one_value_has_no_interval_and_none_has_no_mean():
    assert mean([0.25]) == statistics.Mean(0.25, None, 1)
    assert mean([]) is None


@pytest.mark.parametrize("seeds", [3, 5])
def test_intervals_cover_at_the_stated_rate(seeds):
    rng = np.random.default_rng(seeds)
    trials = 3000
    hit = sum(abs((found := mean(rng.normal(0.7, 0.01, seeds))).value - 0.7) <= found.margin for _ in range(trials))
    # 4 standard errors of a share of 3,000 around 95 %: 0.016.
    assert abs(hit / trials - 0.95) < 0.016


def test_gap_closed_by_hand_over_common_seeds_only():
    naive, full = {0: 0.4, 1: 0.5, 2: 0.1}, {0: 0.8, 1: 0.8999}
    # Seeds 0 and 1: (0.2 + 0.1) / (0.4 + 0.3999).
    assert gap_closed({0: 0.6, 1: 0.6, 7: 0.9}, naive, full) == pytest.approx(0.3 / 0.7999)
    assert gap_closed(naive, naive, full) == 0.0
    assert gap_closed({0: 0.3, 1: 0.5}, naive, full) == pytest.approx(-0.1 / 0.7999)


@pytest.mark.parametrize(
    "full",
    [
        {0: 0.5, 1: 0.5},  # none
        {0: 0.4, 1: 0.4},  # the other way
        {0: 0.509, 1: 0.509},  # less than a point
        {0: 0.6, 1: 0.9},  # by chance: t = 2.5 / 1.5 with one degree of freedom
        {0: 0.9},  # one seed shows nothing
        {7: 0.9, 8: 0.9},  # no seeds in common
    ],
)
def test_no_real_gap_no_share(full):
    assert gap_closed({0: 0.6, 1: 0.6}, {0: 0.5, 1: 0.5}, full) is None


# ---------------------------------------------------------------- tests


def test_friedman_on_the_worked_example():
    chi_square = stats.chi2.isf(friedman(DEMSAR), 3)
    # The paper does not correct for ties: three pairs (6 each) and one row of four (60), of 14 x 60.
    assert chi_square * (1 - 78 / 840) == pytest.approx(9.28, abs=0.005)
    assert friedman(DEMSAR) == stats.friedmanchisquare(*DEMSAR.T).pvalue


def test_friedman_has_nothing_to_say_of_two_or_of_equals():
    assert friedman(DEMSAR[:, :2]) is None
    assert friedman(np.full((4, 3), 0.5)) == 1.0


def test_paired_tests_are_those_of_scipy_and_one_for_the_other_side():
    rng = np.random.default_rng(1)
    for n in (2, 5, 12, 60):
        d = rng.normal(0.3, 1, n)
        d *= np.sign(d.mean())
        assert paired_t(d) == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
        assert paired_t(-d) == 1.0
        d *= np.sign(np.sum(np.sign(d) * stats.rankdata(abs(d)))) or 1
        assert signed_rank(d) == pytest.approx(stats.wilcoxon(d).pvalue)
        assert signed_rank(-d) == 1.0


def test_signed_ranks_by_counting_every_sign():
    d = np.array([0.5, -0.1, 0.4, 0.3, 0.7, 0.2])
    ranks = stats.rankdata(abs(d))
    seen = ranks[d > 0].sum()
    sums = [sum(r for k, r in enumerate(ranks) if bits >> k & 1) for bits in range(2**6)]
    assert signed_rank(d) == pytest.approx(2 * np.mean(np.array(sums) >= seen))


def test_paired_tests_without_anything_to_test():
    assert paired_t(np.array([0.4])) == 1.0
    assert paired_t(np.zeros(3)) == signed_rank(np.zeros(3)) == 1.0
    assert paired_t(np.full(3, 0.5)) == 0.0  # the same difference at every seed


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04: times 4, 3, 2, 1, never below the one before, never above 1.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


# ---------------------------------------------------------------- rankings


def test_ranks_of_the_worked_example():
    found = rank(races(DEMSAR))
    assert found.names == ("m3", "m1", "m2", "m0")
    assert found.ranks == pytest.approx((1.964, 2.000, 2.893, 3.143), abs=5e-4)
    assert found.groups == 14
    assert found.friedman == friedman(DEMSAR)


def test_the_leader_is_tested_against_each_other_method_by_signed_ranks_over_blocks():
    found = rank(races(DEMSAR))
    plain = [stats.wilcoxon(DEMSAR[:, 3] - DEMSAR[:, b], alternative="greater").pvalue for b in (1, 2, 0)]
    assert found.leader == "m3"
    assert list(found.p) == ["m1", "m2", "m0"]
    assert list(found.p.values()) == pytest.approx(holm([min(1, 2 * p) for p in plain]))


def test_ties_share_ranks_and_wins():
    found = rank(races(np.array([[0.5, 0.5, 0.1]] * 2)))
    assert found.ranks == (1.5, 1.5, 3.0)
    assert found.wins == (2, 2, 0)
    assert found.lead == pytest.approx((0, 0, 0.4))


@pytest.mark.parametrize("methods", [2, 3, 5, 22])
def test_blocks_are_asked_where_they_can_answer(methods):
    """As many blocks as are enough, in each of which the order is the same: told apart; with one less, over seeds."""
    blocks = statistics.min_groups(methods)
    same = np.arange(methods) / 100 + np.random.default_rng(6).random((blocks, 1)) / 10
    same += np.random.default_rng(7).random(same.shape) / 1000
    found = rank(races(same))
    assert found.over == "groups"
    assert found.tied == ()
    assert rank(races(same[1:])).over == "seeds"
    assert min(stats.wilcoxon(np.arange(1, blocks)).pvalue * (methods - 1), 1) > 0.05


def test_few_blocks_are_tested_over_seeds():
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.52, 0.01, (3, 4)), rng.normal(0.5, 0.01, (3, 4))  # [blocks, seeds]
    found = rank([{"a": dict(enumerate(x)), "b": dict(enumerate(y))} for x, y in zip(a, b, strict=True)])
    assert found.names == ("a", "b")
    assert found.p["b"] == pytest.approx(stats.ttest_rel(a.mean(axis=0), b.mean(axis=0)).pvalue)
    assert found.friedman is None
    assert (found.groups, found.seeds) == (3, 4)


def test_one_seed_and_few_blocks_say_nothing():
    found = rank(races(np.array([[0.9, 0.1], [0.8, 0.2]])))
    assert found.names == ("m0", "m1")
    assert found.tied == ("m1",)


def test_a_method_that_most_blocks_lack_is_not_ranked():
    some = races(np.random.default_rng(3).random((8, 3)))
    for race in some[:5]:
        del race["m2"]
    found = rank(some)
    assert set(found.names) == {"m0", "m1"}
    assert found.groups == 8


def test_a_block_that_lacks_a_ranked_method_is_left_out():
    some = races(np.random.default_rng(3).random((8, 3)))
    del some[0]["m2"]
    assert rank(some).groups == 7


def test_methods_that_never_met_are_not_compared():
    assert rank([{"a": {0: 0.5}}, {"b": {0: 0.6}}]) is None
    assert rank([]) is None
    found = rank([{"n": {0: 0.1}, "a": {0: 0.5}}, {"n": {0: 0.1}, "b": {0: 0.6}}])
    assert found.names == ("n",)


def test_means_are_those_that_tables_show_and_tests_are_over_common_seeds():
    found = rank([{"a": {0: 0.4, 1: 0.9, 2: 0.9}, "b": {0: 0.5, 1: 0.88}}])
    assert found.names == ("a", "b")  # 0.733 and 0.690
    assert found.p["b"] == 1.0  # at the seeds 0 and 1 it is the other way
    assert found.seeds == 2


def test_a_method_with_few_seeds_cannot_lead():
    race = {"few": {0: 0.9}, "a": {0: 0.8, 1: 0.8, 2: 0.8}, "b": {0: 0.5, 1: 0.5, 2: 0.5}}
    found = rank([race])
    assert (found.names, found.tied) == (("a", "b"), ())


def test_more_wins_against_larger_losses_is_no_win():
    # a is better in 16 of 24 blocks by a little, b in 8 by far: the ranks prefer a, the signed ranks do not.
    d = np.r_[np.linspace(0.001, 0.002, 16), -np.linspace(0.3, 0.4, 8)]
    found = rank([{"a": {0: 0.5 + x}, "b": {0: 0.5}} for x in d])
    assert found.names == ("a", "b")
    assert found.tied == ("b",)
    assert found.lead[1] < 0


def ranking(p: dict[str, float], friedman: float | None = 0.001) -> Ranking:
    names = tuple("abcd")
    return Ranking(names, (1.0, 2.0, 3.0, 4.0), (9, 0, 0, 0), (0.0, 0.1, 0.2, 0.3), p, "groups", friedman, 9, 3)


def test_level_are_those_that_are_not_shown_to_be_worse():
    p = dict.fromkeys("bcd", 0.01)
    assert ranking(p).tied == ()
    assert ranking(p | {"b": 0.2}).tied == ("b",)
    assert ranking(p | {"c": 0.2}).tied == ("c",)  # ranked behind one that is worse


def test_without_a_difference_overall_no_two_differ():
    p = dict.fromkeys("bcd", 0.01)
    assert ranking(p, 0.2).tied == ("b", "c", "d")
    assert ranking(p, None).tied == ()


def test_equal_methods_are_seldom_told_apart():
    rng = np.random.default_rng(4)
    told = sum(len(rank(races(rng.random((12, 3)))).tied) < 2 for _ in range(300))
    # 5 % of 300 and 3 standard errors.
    assert told <= 26


def test_a_method_that_is_better_by_far_is_told_apart():
    rng = np.random.default_rng(5)
    found = rank(races(rng.random((12, 3)) * 0.1 + np.array([0.5, 0.4, 0.2])))
    assert found.names[0] == "m0"
    assert found.tied == ()


def test_one_block_is_ranked_by_its_means():
    race = {"best": {0: 0.9, 1: 0.91, 2: 0.92}, "near": {0: 0.91, 1: 0.9, 2: 0.91}, "far": {0: 0.5, 1: 0.5, 2: 0.52}}
    found = rank([race])
    assert (found.leader, found.tied) == ("best", ("near",))
    found = rank([{"a": {0: 0.9}, "b": {0: 0.1}}])
    assert (found.leader, found.tied) == ("a", ("b",))  # of one seed nothing can be said
    assert rank([{"alone": {0: 0.1}}]).tied == ()
