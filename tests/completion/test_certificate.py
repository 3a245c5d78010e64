"""Certificates from known entries: counted the slow way, and held to their promise over many draws of what is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from completion.boards import board, truth_and_chance
from partly.completion import certificate
from partly.completion.certificate import certify_no, certify_yes, count_zones, find_recall_limit

Z, CHANCE = truth_and_chance()


def drawn(seed: int, share: float = 0.3, whole_items: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    draws = rng.random((len(Z), 1)) if whole_items else rng.random(Z.shape)
    return np.broadcast_to(draws < share, Z.shape)


@pytest.mark.parametrize("value", [1, -1])
def test_zones_are_counted_entry_by_entry(value: int) -> None:
    of = board(Z, CHANCE, drawn(1))
    zones = count_zones(of, value)
    chance = CHANCE if value == 1 else 1 - CHANCE
    assert (np.diff(zones.thresholds) < 0).all()
    for t in (0, len(zones.thresholds) // 2, len(zones.thresholds) - 1):
        for j in (0, 3):
            inside = [i for i in range(len(Z)) if chance[i, j] >= max(zones.thresholds[t], 0.5)]
            known = [i for i in inside if of.observed[i, j] != 0]
            assert zones.size[t, j] == len(inside)
            assert zones.candidates[t, j] == len(inside) - len(known)
            assert zones.known[t, j] == len(known)
            assert zones.errors[t, j] == sum(of.observed[i, j] != value for i in known)
            assert zones.expected_errors[t, j] == pytest.approx(sum(1 - chance[i, j] for i in known))


@pytest.mark.parametrize(("whole_items", "precision", "share"), [(False, 0.9, 0.3), (True, 0.8, 0.5)])
def test_the_promise_is_kept_over_many_draws_of_what_is_known(
    whole_items: bool, precision: float, share: float
) -> None:
    """Risk 0.2, 100 draws: more broken promises than chance allows at 0.1 % would show a bound that does not hold."""
    broken = certified = 0
    for seed in range(100):
        of = board(Z, CHANCE, drawn(seed, share, whole_items))
        assert not (whole_items and of.is_random_sample)
        side, _ = certify_yes(of, precision, 0.2)
        if side.threshold is not None:
            filled = of.candidates & (side.threshold <= CHANCE)
            assert side.filled == filled.sum()
            certified += 1
            broken += bool((Z[filled] == 1).mean() < precision)
    assert certified > 50
    assert beta.ppf(0.001, broken, 100 - broken + 1) <= 0.2 if broken else True


def test_labels_that_are_certified_alone_keep_their_own_promise() -> None:
    short = []
    for seed in range(40):
        of = board(Z, CHANCE, drawn(seed, 0.5))
        side, _ = certify_yes(of, 0.85, 0.2)
        for name in side.labels:
            j = of.names.index(name)
            filled = of.candidates[:, j] & (CHANCE[:, j] >= side.threshold)
            short.append((Z[filled, j] == 1).mean() < 0.85)
    assert len(short) > 20
    assert np.sum(short) / (40 * Z.shape[1]) <= 0.2  # of all labels and draws: certified, and short of the target


def test_a_zone_that_passes_for_a_precision_passes_for_a_lower_one() -> None:
    for known in (drawn(3), drawn(3, whole_items=True)):
        of = board(Z, CHANCE, known)
        zones = count_zones(of, 1)
        kind = certificate.EntryTest if of.is_random_sample else certificate.ItemTest
        strict, lax = (kind(of, zones, allowed) for allowed in (0.05, 0.2))
        assert all(lax.measure_evidence(t) >= strict.measure_evidence(t) for t in range(len(zones.thresholds)))


def test_more_is_filled_in_for_a_lower_precision() -> None:
    of = board(*truth_and_chance(2, 3000), known=np.random.default_rng(0).random((3000, 6)) < 0.2)
    filled = [certify_yes(of, precision, 0.025)[0].filled for precision in (0.8, 0.9, 0.95, 0.98)]
    assert filled == sorted(filled, reverse=True)
    assert filled[0] > filled[-1] > 0


def test_nothing_is_filled_in_where_nothing_can_be_promised() -> None:
    few = board(Z, CHANCE, drawn(0, 0.02))
    assert certify_yes(few, 0.99, 0.025)[0].threshold is None
    useless = board(Z, np.full_like(CHANCE, 0.6), drawn(0))
    assert certify_yes(useless, 0.9, 0.025)[0].filled == 0
    unsure = board(Z, np.full_like(CHANCE, 0.5) - 1e-9, drawn(0))
    assert certify_yes(unsure, 0.9, 0.025)[0].threshold is None


def test_a_label_that_is_hardly_known_is_left_alone() -> None:
    known = drawn(0, 0.5).copy()
    known[:, 2] = False
    known[:3, 2] = True
    of = board(Z, CHANCE, known)
    assert not of.fillable[2]
    assert of.fillable[[0, 1, 3, 4, 5]].all()


def test_a_label_of_which_only_yes_is_known_is_left_alone() -> None:
    known = drawn(0, 0.5) & ((Z == 1) | (np.arange(6) != 4))
    assert board(Z, CHANCE, known).fillable.tolist() == [True, True, True, True, False, True]


@pytest.mark.parametrize(("whole_items", "share"), [(False, 0.3), (True, 0.5)])
def test_few_hidden_yes_become_no_over_many_draws_of_what_is_known(whole_items: bool, share: float) -> None:
    broken = certified = 0
    for seed in range(60):
        of = board(Z, CHANCE, drawn(seed, share, whole_items))
        side = certify_no(of, 0.1, 0.2)
        if side.threshold is not None:
            filled = of.candidates & (side.threshold <= 1 - CHANCE)
            assert side.filled == filled.sum()
            assert side.known_yes == (of.observed == 1).sum()
            certified += 1
            broken += bool((filled & (Z == 1)).sum() > 0.1 * (of.candidates & (Z == 1)).sum())
    assert certified > 30
    assert beta.ppf(0.001, broken, 60 - broken + 1) <= 0.2 if broken else True


def test_more_is_filled_in_as_no_where_more_may_be_missed() -> None:
    of = board(*truth_and_chance(2, 3000), known=np.random.default_rng(0).random((3000, 6)) < 0.2)
    filled = [certify_no(of, share, 0.02).filled for share in (0.02, 0.05, 0.2)]
    assert 0 < filled[0] < filled[1] < filled[2]


def test_scores_without_information_fill_in_hardly_any_no() -> None:
    """Where every zone has its share of the yes, at most about the allowed share of the entries can become no."""
    z, _ = truth_and_chance(2, 3000)
    noise = np.random.default_rng(5).uniform(0.01, 0.49, z.shape)
    of = board(z, noise, known=np.random.default_rng(0).random(z.shape) < 0.3)
    assert certify_no(of, 0.05, 0.02).filled <= 0.05 * of.candidates.sum()
    assert certify_yes(board(z, 1 - noise, of.observed != 0), 0.9, 0.05)[0].threshold is None


def test_implied_yes_are_neither_known_nor_hidden() -> None:
    known = drawn(0, 0.4)
    of = board(Z, CHANCE, known)
    implied = np.zeros_like(Z)
    rows, columns = np.nonzero((Z == 1) & ~known & (CHANCE < 0.2))
    implied[rows, columns] = 1  # yes that the scores take for no
    without = replace(of, candidates=of.candidates & (implied == 0), implied=implied)
    assert certify_no(without, 0.1, 0.1).filled >= certify_no(of, 0.1, 0.1).filled


def test_recall_is_certified_up_to_a_threshold() -> None:
    of = board(*truth_and_chance(2, 3000), known=np.random.default_rng(0).random((3000, 6)) < 0.3)
    z, chance = truth_and_chance(2, 3000)
    zones = count_zones(of, 1)
    limit = find_recall_limit(of, zones, 0.7, 0.05)
    hidden = of.candidates & (z == 1)
    assert (chance[hidden] >= limit).mean() >= 0.7
    assert find_recall_limit(of, zones, 0.6, 0.05) >= limit
    assert find_recall_limit(of, zones, 0.999, 0.05) == -np.inf
