"""Estimates of the share of yes: by a loop, their bounds, and what is right where the assumptions hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import partly
from partly import Labels, model_choice
from partly.errors import DataError, SettingError

Array = np.ndarray[Any, Any]
priors = model_choice.priors
METHODS = ["elkan-noto", "tice", "best-bin"]


def separated(known: float, items: int = 6000, gap: float = 5.0) -> tuple[Array, Array, Labels]:
    """Truth, scores that tell yes from no, and yes known by chance."""
    rng = np.random.default_rng(0)
    truth = rng.random((items, 4)) < np.array([0.05, 0.1, 0.2, 0.4])
    scores = rng.normal(size=truth.shape) + gap * truth
    return truth, scores, Labels.from_positives(truth & (rng.random(truth.shape) < known))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("known", [0.2, 0.5, 1.0])
def test_where_yes_can_be_told_from_no_the_estimate_is_right(method: str, known: float) -> None:
    truth, scores, labels = separated(known)
    found = priors.estimate(scores, labels, method)
    assert found == pytest.approx(truth.mean(axis=0), rel=0.25)
    assert (labels.counts()[0] / len(labels) <= found).all()


def test_where_they_overlap_the_estimate_is_too_high() -> None:
    truth, scores, labels = separated(0.3, gap=1.0)
    for method in METHODS:
        assert (priors.estimate(scores, labels, method) > 1.1 * truth.mean(axis=0)).all(), method


def ratio_by_tops(s: Array, yes: Array) -> float:
    """`tice` of one label: all tops of the list, one after the other."""
    if yes.sum() < 3:
        return math.nan
    best = 0.0
    for end in sorted(set(s[yes])):
        size, known = int((s >= end).sum()), int((yes & (s >= end)).sum())
        if known >= (5 if yes.sum() >= 10 else max(2, yes.sum() // 2)):
            best = max(best, (known - math.sqrt(known)) / size)
    return 1 / best


def ratio_by_bins(s: Array, yes: Array) -> float:
    """`best-bin` of one label."""
    n, rest = int(yes.sum()), int((~yes).sum())
    if n < 3 or not rest:
        return math.nan
    doubt = math.sqrt(math.log(4 / 0.1) / 2 / n) + math.sqrt(math.log(4 / 0.1) / 2 / rest)
    tops = []
    for end in sorted(set(s[yes])):
        of_yes, of_rest = (yes & (s >= end)).sum() / n, (~yes & (s >= end)).sum() / rest
        tops.append((of_rest / of_yes + 1.01 * doubt / of_yes, of_rest / of_yes))
    return 1 + min(1, min(tops)[1]) * rest / n


def drawn_together(ratios: list[float], yes: list[int]) -> list[float]:
    """Towards the ratio below which a quarter of the known yes lie."""
    own = [(max(r, 1.0), n) for r, n in zip(ratios, yes, strict=True) if not math.isnan(r)]
    if not own:
        return [1.0] * len(yes)
    each = sorted(r for r, n in own for _ in range(n))
    pooled = each[math.ceil(len(each) / 4) - 1]
    weights = [n / (n + 100) if not math.isnan(r) else 0.0 for r, n in zip(ratios, yes, strict=True)]
    return [max(r, 1.0) ** w * pooled ** (1 - w) if w else pooled for r, w in zip(ratios, weights, strict=True)]


@pytest.mark.parametrize(("method", "ratio"), [("tice", ratio_by_tops), ("best-bin", ratio_by_bins)])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), items=st.integers(5, 60), ties=st.booleans())
def test_against_a_loop(method: str, ratio: Any, seed: int, items: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    y = rng.random((items, 5)) < rng.uniform(0, 0.6, 5)
    s = rng.normal(size=y.shape) + 2 * y
    s = np.round(s) if ties else s
    n = y.sum(axis=0)
    ratios = drawn_together([ratio(s[:, j], y[:, j]) for j in range(5)], n.tolist())
    expected = [min(1, max(a / items, r * max(a, 0.5) / items)) for r, a in zip(ratios, n, strict=True)]
    assert priors.estimate(s, Labels.from_positives(y), method) == pytest.approx(expected)


def test_elkan_noto_by_its_definition() -> None:
    """With scores that are the logits of the chance to be known, c is the mean chance over known yes."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20_000, 2)) * 1.5 - 2
    chance = 1 / (1 + np.exp(-logits))
    known = rng.random(chance.shape) < chance
    c = np.array([chance[known[:, j], j].mean() for j in range(2)])
    found = priors.estimate(logits, Labels.from_positives(known), "elkan-noto")
    assert found == pytest.approx(known.mean(axis=0) / c, rel=0.03)


def test_the_observed_share_by_hand() -> None:
    labels = Labels.from_ternary([[1, -1, 0], [-1, -1, 0], [0, 1, 0], [0, 0, 0]])
    pooled = 2 / 5
    expected = [(1 + 2 * pooled) / 4, (1 + 2 * pooled) / 5, pooled]
    assert priors.estimate(np.zeros((4, 3)), labels, "observed") == pytest.approx(expected)
    assert priors.estimate(np.zeros((4, 3)), labels) == pytest.approx(expected)


@settings(max_examples=80, deadline=None)
@given(
    case=st.tuples(st.integers(1, 12), st.integers(1, 4)).flatmap(
        lambda shape: st.tuples(
            hnp.arrays(np.float64, shape, elements=st.integers(-2, 2).map(float)),
            hnp.arrays(np.int8, shape, elements=st.sampled_from([1, 0, 0])),
            hnp.arrays(np.int8, shape, elements=st.sampled_from([1, 0, -1])),
        )
    ),
    method=st.sampled_from(["auto", *METHODS]),
)
def test_between_the_share_of_known_yes_and_1(case: tuple[Array, Array, Array], method: str) -> None:
    scores, only_yes, some = case
    for z in (only_yes, some):
        labels = Labels.from_ternary(z)
        found = priors.estimate(scores, labels, method)
        assert np.isfinite(found).all()
        assert (found >= (z == 1).mean(axis=0)).all()
        assert (found <= 1).all()


def test_a_label_without_known_yes_has_the_ratio_of_the_others() -> None:
    _, scores, labels = separated(0.5)
    z = labels.rows(slice(None)).copy()
    z[:, 1] = 0
    found = priors.estimate(scores, Labels.from_ternary(z))
    others = priors.estimate(scores[:, [0, 2, 3]], Labels.from_ternary(z[:, [0, 2, 3]]))
    assert found[[0, 2, 3]] == pytest.approx(others)
    assert 0.5 / len(z) < found[1] < 0.01


def test_wrong_input_is_refused() -> None:
    labels = Labels.from_positives([[1, 0], [0, 1]])
    with pytest.raises(SettingError, match=r"no estimator 'tic'\. Did you mean 'tice'"):
        priors.estimate(np.ones((2, 2)), labels, "tic")
    with pytest.raises(SettingError, match="'observed' needs known no's"):
        priors.estimate(np.ones((2, 2)), labels, "observed")
    with pytest.raises(DataError, match="both must be items x labels"):
        priors.estimate(np.ones((2, 3)), labels)
    assert partly.priors is priors
