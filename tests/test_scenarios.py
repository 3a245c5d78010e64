"""Scenarios: what they keep, how much of it, and that nothing but the truth and the seed decides."""

# Long because each scenario has its own properties.

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from partly import scenarios
from partly.errors import LabelError, SettingError
from partly.labels import Labels, matrix
from partly.labels.hierarchy import Hierarchy
from partly.scenarios import draws, hiding

Array = np.ndarray[Any, Any]
Play = Callable[[Any, float, int], Labels]

SHARE: dict[str, Play] = {
    "uniform": scenarios.uniform,
    "uniform per entry": lambda truth, share, seed: scenarios.uniform(truth, share, seed, per_entry=True),
    "positives": scenarios.positives,
    "positives, one at least": lambda truth, share, seed: scenarios.positives(
        truth, share, seed, keep_at_least_one=True
    ),
    "propensity, scaled": scenarios.propensity,
    "dense": scenarios.dense,
    "coarse_only": lambda truth, share, seed: scenarios.coarse_only(truth, PAIRS, share, seed),
}
ALL: dict[str, Play] = SHARE | {
    "propensity": lambda truth, share, seed: scenarios.propensity(truth, seed=seed),
    "single_positive": lambda truth, share, seed: scenarios.single_positive(truth, seed),
    "one_yes_all_no": lambda truth, share, seed: scenarios.one_yes_all_no(truth, seed),
    "noisy": scenarios.noisy,
    "noisy_plus": lambda truth, share, seed: scenarios.noisy_plus(truth, seed),
}
HONEST = [name for name in ALL if not name.startswith("noisy")]  # what they say is true
BY_ITEM = [
    "uniform",
    "uniform per entry",
    "single_positive",
    "one_yes_all_no",
    "noisy",
    "noisy_plus",
]  # no count over all items

PAIRS = Hierarchy({str(i): f"coarse {i // 2}" for i in range(8)})
truths = hnp.arrays(np.int8, st.tuples(st.integers(0, 6), st.integers(1, 7)), elements=st.sampled_from([1, -1, -1, 0]))
shares = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0])
seeds = st.integers(0, 3)


def full(items: int = 200, width: int = 8, seed: int = 0) -> Labels:
    yes = np.random.default_rng(seed).random((items, width)) < 0.3
    return Labels.from_full(yes, names=range(width), ids=[f"item {i}" for i in range(items)])


def dense(labels: Labels) -> Array:
    return labels.rows(slice(None))


# -------------------------------------------------------------------- what holds for all


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=20)
@given(z=truths, share=shares, seed=seeds)
def test_no_scenario_invents_a_label(name: str, z: Array, share: float, seed: int) -> None:
    truth = Labels.from_ternary(z, ids=[f"item {i}" for i in range(len(z))])
    labels = ALL[name](truth, share, seed)
    said = dense(labels)
    assert labels.shape == truth.shape
    assert labels.names == truth.names
    assert labels.ids == truth.ids
    assert (said[z == 0] == 0).all()
    if name in HONEST:
        assert ((said == 0) | (said == z)).all()
    else:
        assert ((said != 0) == (z != 0)).all()


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=20)
@given(z=truths, share=shares, seed=seeds)
def test_dense_and_sparse_truth_give_the_same(name: str, z: Array, share: float, seed: int) -> None:
    truth, thin = Labels.from_ternary(z), Labels.from_ternary(sp.csr_array(z))
    labels = ALL[name](truth, share, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "BLOCK", 10)  # one or a few items a block
        same = ALL[name](thin, share, seed)
    assert same.sparse
    assert same == labels


@pytest.mark.parametrize("name", ALL)
def test_only_the_seed_decides(name: str) -> None:
    truth = full()
    first = ALL[name](truth, 0.5, 7)
    np.random.default_rng().random()
    assert ALL[name](truth, 0.5, 7) == first
    assert ALL[name](truth, 0.5, np.int64(7)) == first
    assert ALL[name](truth, 0.5, 8) != first


def test_scenarios_do_not_share_their_numbers() -> None:
    truth = full()
    kept = dense(scenarios.single_positive(truth, 0)) == 1
    assert (kept != (dense(scenarios.noisy_plus(truth, 0)) == 1)).any()


@pytest.mark.parametrize("name", BY_ITEM)
def test_an_item_does_not_depend_on_those_that_follow(name: str) -> None:
    truth = full()
    assert ALL[name](truth[:50], 0.4, 3) == ALL[name](truth, 0.4, 3)[:50]


@pytest.mark.parametrize("name", SHARE)
@settings(max_examples=20)
@given(z=truths, seed=seeds)
def test_what_is_known_at_one_share_is_known_at_every_larger_one(name: str, z: Array, seed: int) -> None:
    known = [dense(SHARE[name](Labels.from_ternary(z), share, seed)) != 0 for share in (0, 0.1, 0.3, 0.5, 0.8, 1)]
    for less, more in pairwise(known):
        assert (more | ~less).all()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_next_to_nothing(name: str, shape: tuple[int, int]) -> None:
    if name == "coarse_only" and not shape[1]:
        with pytest.raises(LabelError, match="None of the"):
            ALL[name](np.ones(shape), 0.5, 0)
        return
    assert ALL[name](np.ones(shape), 0.5, 0).shape == shape


@pytest.mark.parametrize("name", ALL)
def test_an_array_is_a_truth(name: str) -> None:
    truth = full(20)
    array = np.where(dense(truth) == 1, 1, 0)
    assert (dense(ALL[name](array, 0.5, 1)) == dense(ALL[name](truth, 0.5, 1))).all()
    with pytest.raises(LabelError, match="truth takes 1 yes, 0 no"):
        ALL[name](dense(truth), 0.5, 1)


# -------------------------------------------------------------------- how much of what


@given(z=truths, share=st.floats(0, 1), seed=seeds)
def test_uniform_keeps_an_exact_count_per_item(z: Array, share: float, seed: int) -> None:
    labels = scenarios.uniform(Labels.from_ternary(z), share, seed)
    expected = [min(round(share * z.shape[1]), int((row != 0).sum())) for row in z]
    assert labels.known_per_item().tolist() == expected


def test_uniform_treats_all_labels_alike() -> None:
    labels = scenarios.uniform(np.ones((4000, 10)), 0.3, 0)
    per_label = labels.counts()[0]  # 1200 expected, standard deviation 29
    assert per_label.sum() == 12000
    assert abs(per_label - 1200).max() < 150


def test_uniform_per_entry_keeps_each_with_the_same_chance() -> None:
    labels = scenarios.uniform(np.ones((2000, 10)), 0.3, 0, per_entry=True)
    assert abs(labels.summary()["known_share"] - 0.3) < 0.02  # standard deviation 0.003
    assert len(set(labels.known_per_item())) > 5
    assert scenarios.uniform(np.ones((50, 10)), 1, 0, per_entry=True).summary()["unknown"] == 0
    assert scenarios.uniform(np.ones((50, 10)), 0, 0, per_entry=True).summary()["unknown"] == 500


@given(z=truths, share=st.floats(0, 1), seed=seeds)
def test_positives_keeps_an_exact_share_of_the_yes_and_no_no(z: Array, share: float, seed: int) -> None:
    summary = scenarios.positives(Labels.from_ternary(z), share, seed).summary()
    assert summary["yes"] == round(share * int((z == 1).sum()))
    assert summary["no"] == 0


@given(z=truths, share=st.floats(0, 1), seed=seeds)
def test_positives_can_keep_one_of_each_item(z: Array, share: float, seed: int) -> None:
    labels = scenarios.positives(Labels.from_ternary(z), share, seed, keep_at_least_one=True)
    items_with_yes = (z == 1).any(axis=1)
    assert ((dense(labels) == 1).any(axis=1) == items_with_yes).all()
    assert labels.summary()["yes"] == max(round(share * int((z == 1).sum())), int(items_with_yes.sum()))


def test_positives_may_take_all_yes_of_an_item() -> None:
    left = scenarios.positives(np.ones((100, 2)), 0.25, 0).known_per_item()
    assert left.sum() == 50
    assert (left == 0).any()


def chances(truth: Array, share: float | None) -> list[float]:
    """Jain, Prabhu and Varma (2016) as they write it, label by label; then one factor, found by halving."""
    items, a, b = len(truth), 0.55, 1.5
    c = (math.log(items) - 1) * (b + 1) ** a
    counts = [int((truth[:, j] == 1).sum()) for j in range(truth.shape[1])]
    found = [1 / (1 + c * math.exp(-a * math.log(count + b))) for count in counts]
    if share is None:
        return found
    low, high = 0.0, 1e6
    for _ in range(200):
        factor = (low + high) / 2
        known = sum(min(1, factor * p) * n for p, n in zip(found, counts, strict=True))
        low, high = (factor, high) if known < share * sum(counts) else (low, factor)
    return [min(1, factor * p) for p in found]


@pytest.mark.parametrize("share", [None, 0.1, 0.5, 0.8, 0.97])
def test_propensity_names_rare_labels_less_often(share: float | None) -> None:
    rates = np.array([0.6, 0.3, 0.1, 0.02, 0.005, 0])
    truth = np.where(np.random.default_rng(0).random((8000, 6)) < rates, 1, -1).astype(np.int8)
    expected = chances(truth, share)
    assert hiding.propensities((truth == 1).sum(axis=0), 8000, share)[:5] == pytest.approx(expected[:5], rel=1e-6)
    if share is None or share < 0.8:
        assert expected == sorted(expected, reverse=True)
    labels = scenarios.propensity(Labels.from_ternary(truth), share, 3)
    decide = draws.draw_rows("propensity", 3, slice(0, 8000), 6)
    said = dense(labels)
    for i, j in np.ndindex(*truth.shape):
        assert said[i, j] == (truth[i, j] == 1 and decide[i, j] < expected[j])
    if share is not None:
        assert labels.counts()[0].sum() / (truth == 1).sum() == pytest.approx(share, abs=0.02)


@given(z=truths, share=shares, seed=seeds)
def test_propensity_expects_the_share_that_was_asked_for(z: Array, share: float, seed: int) -> None:
    yes = (z == 1).sum(axis=0)
    chance = hiding.propensities(yes, len(z), share)
    assert ((chance >= 0) & (chance <= 1)).all()
    assert (chance * yes).sum() == pytest.approx(share * yes.sum())
    assert not scenarios.propensity(Labels.from_ternary(z), share, seed).counts()[1].any()


@given(z=truths, seed=seeds)
def test_single_positive_keeps_one_yes_and_no_no(z: Array, seed: int) -> None:
    said = dense(scenarios.single_positive(Labels.from_ternary(z), seed))
    assert (said == 1).sum(axis=1).tolist() == (z == 1).any(axis=1).astype(int).tolist()
    assert not (said == -1).any()


@given(z=truths, seed=seeds)
def test_one_yes_all_no_hides_nothing_but_the_other_yes(z: Array, seed: int) -> None:
    truth = Labels.from_ternary(z)
    said, one = dense(scenarios.one_yes_all_no(truth, seed)), dense(scenarios.single_positive(truth, seed))
    for i, j in np.ndindex(*z.shape):
        assert said[i, j] == (z[i, j] if z[i, j] == -1 else one[i, j])


@pytest.mark.parametrize("scenario", [scenarios.single_positive, scenarios.noisy_plus])
def test_every_yes_has_the_same_chance(scenario: Any) -> None:
    truth = np.zeros((3000, 6))
    truth[:, [1, 2, 5]] = 1
    kept = scenario(truth, 0).counts()[0]
    assert kept[[0, 3, 4]].tolist() == [0, 0, 0]
    assert abs(kept[[1, 2, 5]] - 1000).max() < 130  # standard deviation 26


@given(z=truths, seed=seeds)
def test_noisy_plus_calls_all_but_one_yes_no(z: Array, seed: int) -> None:
    said = dense(scenarios.noisy_plus(Labels.from_ternary(z), seed))
    assert (said == 1).sum(axis=1).tolist() == (z == 1).any(axis=1).astype(int).tolist()
    assert (z[said == 1] == 1).all()
    assert ((said == -1) == ((z != 0) & (said != 1))).all()


@given(z=truths, share=st.floats(0, 1), seed=seeds)
def test_dense_knows_an_exact_number_of_items(z: Array, share: float, seed: int) -> None:
    full = np.where(z == 1, 1, -1).astype(np.int8)
    per_item = scenarios.dense(Labels.from_ternary(full), share, seed).known_per_item().tolist()
    assert sorted(per_item, reverse=True) == [z.shape[1] if i < round(share * len(z)) else 0 for i in range(len(z))]


def test_noisy_flips_entries_of_both_kinds() -> None:
    truth = np.random.default_rng(0).random((2000, 20)) < 0.5
    labels = scenarios.noisy(truth, 0.8, 0)
    right = (dense(labels) == 1) == truth
    assert labels.summary()["unknown"] == 0
    for kind in (truth, ~truth):
        assert abs(right[kind].mean() - 0.8) < 0.015  # standard deviation 0.003
    assert (dense(scenarios.noisy(truth, 1, 0)) == np.where(truth, 1, -1)).all()
    assert (dense(scenarios.noisy(truth, 0, 0)) == np.where(truth, -1, 1)).all()
    chance = (dense(scenarios.noisy(truth, 0.5, 0)) == 1) == truth
    assert abs(chance.mean() - 0.5) < 0.02


# -------------------------------------------------------------------- coarse labels

DEEP = Hierarchy({"cat": "feline", "lion": "feline", "feline": "animal", "dog": "animal", "oak": "plant"})
NAMES = ["animal", "feline", "plant", "cat", "lion", "dog", "oak", "stone"]
DEEP_TRUTH = [
    [1, 1, 0, 1, 0, 0, 0, 1],  # a cat and a stone
    [0, 0, 1, 0, 0, 0, 1, 0],  # an oak
    [1, 0, 0, 0, 0, 1, 0, 0],  # a dog
]


def test_coarse_only_by_hand() -> None:
    labels = scenarios.coarse_only(Labels.from_full(DEEP_TRUTH, names=NAMES), DEEP, 0, 0)
    assert labels.ternary().tolist() == [
        [1, 1, -1, 0, 0, 0, -1, 0],
        [-1, -1, 1, -1, -1, -1, 0, 0],
        [1, -1, -1, -1, -1, 0, -1, 0],
    ]


def test_coarse_only_where_the_truth_has_fine_labels_only() -> None:
    truth = Labels.from_full([row[3:] for row in DEEP_TRUTH], names=NAMES[3:])
    labels = scenarios.coarse_only(truth, DEEP, 0, 0)
    assert labels.names == truth.names
    assert labels.ternary().tolist() == [[0, 0, 0, -1, 0], [-1, -1, -1, 0, 0], [-1, -1, 0, -1, 0]]


@pytest.mark.parametrize(("share", "whole"), [(0, 0), (0.001, 1), (0.1, 20), (0.5, 100), (1, 200)])
def test_coarse_only_knows_some_items_wholly(share: float, whole: int) -> None:
    fine = np.random.default_rng(0).random((200, 8)) < 0.5
    fine[:, 0] = True  # in no item does everything follow from a no
    truth = Labels.from_full(np.column_stack([fine, fine[:, ::2] | fine[:, 1::2]]), names=PAIRS.leaves + PAIRS.roots)
    labels = scenarios.coarse_only(truth, PAIRS, share, 0)
    plain = scenarios.coarse_only(truth, PAIRS, 0, 0)
    assert labels.known[:, 8:].all()
    assert not plain.summary()["items_wholly_known"]  # so that every wholly known one was chosen
    chosen = labels.known_per_item() == 12
    assert chosen.sum() == whole
    assert (dense(labels)[~chosen] == dense(plain)[~chosen]).all()


def test_coarse_only_refuses_a_truth_that_contradicts_the_hierarchy() -> None:
    with pytest.raises(LabelError, match="'cat' is yes and 'animal' is no"):
        scenarios.coarse_only(Labels.from_full([[1, 0]], names=["cat", "animal"]), DEEP, 0.1, 0)


# -------------------------------------------------------------------- settings and names


@pytest.mark.parametrize("name", [*SHARE, "noisy"])
@pytest.mark.parametrize("share", [-0.1, 1.5, 10, float("nan"), "0.1", None, True])
def test_a_share_is_a_number_from_0_to_1(name: str, share: Any) -> None:
    if name.startswith("propensity") and share is None:
        return  # the chances as they are
    with pytest.raises(SettingError, match="share must be a number from 0 to 1"):
        ALL[name](full(), share, 0)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", [0.5, "0", None, True])
def test_a_seed_is_a_whole_number(name: str, seed: Any) -> None:
    with pytest.raises(SettingError, match="seed must be a whole number"):
        ALL[name](full(), 0.5, seed)


def test_every_scenario_has_a_name() -> None:
    assert scenarios.names() == [
        "uniform", "positives", "propensity", "single-positive", "one-yes-all-no", "dense", "noisy", "noisy-plus",
        "coarse-only", "uniform-per-entry",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniform:0.1", lambda t: scenarios.uniform(t, 0.1, 5)),
        ("uniform-per-entry:0.1", lambda t: scenarios.uniform(t, 0.1, 5, per_entry=True)),
        ("positives:0.25", lambda t: scenarios.positives(t, 0.25, 5)),
        ("single-positive", lambda t: scenarios.single_positive(t, 5)),
        (" single_positive ", lambda t: scenarios.single_positive(t, 5)),
        ("one-yes-all-no", lambda t: scenarios.one_yes_all_no(t, 5)),
        ("propensity", lambda t: scenarios.propensity(t, seed=5)),
        ("propensity:0.25", lambda t: scenarios.propensity(t, 0.25, 5)),
        ("dense: .5", lambda t: scenarios.dense(t, 0.5, 5)),
        ("noisy:0.9", lambda t: scenarios.noisy(t, 0.9, 5)),
        ("noisy-plus", lambda t: scenarios.noisy_plus(t, 5)),
        ("coarse-only:0.01", lambda t: scenarios.coarse_only(t, PAIRS, 0.01, 5)),
    ],
)
def test_a_scenario_by_its_name(text: str, expected: Callable[[Labels], Labels]) -> None:
    truth = full()
    assert scenarios.parse(text)(truth, 5, hierarchy=PAIRS) == expected(truth)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("unifrom:0.1", ["no scenario 'unifrom'", "Did you mean 'uniform'?"]),
        ("Uniform:0.1", ["Did you mean 'uniform'?"]),
        ("", ["no scenario ''", "Available: uniform, positives"]),
        ("uniform", ["no share given", "write 'uniform:0.1'"]),
        ("noisy-plus:0.1", ["takes no share", "write 'noisy-plus'"]),
        ("uniform:", ["number from 0 to 1"]),
        ("propensity:2", ["propensity: share must be a number from 0 to 1", "got 2.0"]),
        ("uniform:10", ["number from 0 to 1", "10 % is 0.1", "got 10.0"]),
        ("uniform:10%", ["number from 0 to 1", "got '10%'"]),
        ("uniform:nan", ["number from 0 to 1"]),
    ],
)
def test_a_name_that_is_none_is_refused(text: str, words: list[str]) -> None:
    with pytest.raises(SettingError) as caught:
        scenarios.parse(text)
    for word in words:
        assert word in str(caught.value)


def test_coarse_only_needs_a_hierarchy() -> None:
    play = scenarios.parse("coarse-only:0.1")
    with pytest.raises(SettingError, match="needs a hierarchy"):
        play(full(), 0)
