"""Hierarchical metrics and federated AP against slow loops over single items, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, logit

from partly import metrics
from partly.errors import LabelError, SettingError
from partly.labels import Hierarchy, Labels

NAMES = ["a", "b", "c", "d", "e"]
GRAPH = Hierarchy({"b": "a", "c": "a", "d": ["b", "c"]})  # e stands alone


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, Labels]:
    count = draw(st.integers(1, 6))
    cells = st.lists(st.sampled_from([0.05, 0.2, 0.5, 0.7, 0.95]), min_size=5, max_size=5)
    scores = np.array(draw(st.lists(cells, min_size=count, max_size=count)))
    values = st.lists(st.sampled_from([0, 0, 1, -1]), min_size=5, max_size=5)
    z = np.array(draw(st.lists(values, min_size=count, max_size=count)), np.int8)
    keep = []
    for i in range(count):
        try:
            GRAPH.check(Labels.from_ternary(z[[i]], names=NAMES))
        except LabelError:
            continue
        keep.append(i)
    return scores[keep], Labels.from_ternary(z[keep].reshape(-1, 5), names=NAMES)


def descendants(name: str) -> list[str]:
    return [other for other in NAMES if other == name or name in GRAPH.ancestors(other)]


def slow(scores: np.ndarray, labels: Labels, bits: dict[str, float]) -> dict[str, float]:
    """The definitions, item by item, with sets of names."""
    items = []
    for s, z in zip(scores, GRAPH.deduce(labels).ternary(), strict=True):
        yes = {name for name, value in zip(NAMES, z, strict=True) if value == 1}
        known = {name for name, value in zip(NAMES, z, strict=True) if value != 0}
        raised = {name: max(s[NAMES.index(other)] for other in descendants(name)) for name in NAMES}
        if yes:
            items.append((yes, known, raised))
    best_f, best_s = 0.0, math.inf
    for k in range(1, 101):
        calls = [{name for name in known if raised[name] >= k / 100} for _, known, raised in items]
        p = [len(called & yes) / len(called) for called, (yes, _, _) in zip(calls, items, strict=True) if called]
        r = [len(called & yes) / len(yes) for called, (yes, _, _) in zip(calls, items, strict=True)]
        if p and sum(p) + sum(r) > 0:
            p_mean, r_mean = sum(p) / len(p), sum(r) / len(r)
            best_f = max(best_f, 2 * p_mean * r_mean / (p_mean + r_mean) if p_mean + r_mean else 0)
        missed = sum(bits[n] for called, (yes, _, _) in zip(calls, items, strict=True) for n in yes - called)
        wrong = sum(bits[n] for called, (yes, _, _) in zip(calls, items, strict=True) for n in called - yes)
        best_s = min(best_s, math.hypot(missed, wrong) / len(items))
    calls = [{name for name in known if raised[name] >= 0.5} for _, known, raised in items]
    right = sum(len(called & yes) for called, (yes, _, _) in zip(calls, items, strict=True))
    return {
        "hP": right / sum(map(len, calls)) if any(calls) else math.nan,
        "hR": right / sum(len(yes) for yes, _, _ in items),
        "Fmax": best_f,
        "Smin": best_s,
        "items": len(items),
    }


@given(cases())
def test_metrics_are_those_of_slow_loops(case: tuple[np.ndarray, Labels]) -> None:
    scores, labels = case
    bits = dict(zip(NAMES, [0.0, 1.0, 2.0, 0.5, 3.0], strict=True))
    if not (GRAPH.deduce(labels).ternary() == 1).any():
        return
    result = metrics.hierarchical(scores, labels, GRAPH, information=list(bits.values()))
    expected = slow(scores, labels, bits)
    assert {name: result[name] for name in expected} == pytest.approx(expected, nan_ok=True)


def test_information_by_hand() -> None:
    names = ["a", "b", "c"]
    z = [[1, 1, -1], [1, 1, 0], [1, -1, -1], [1, -1, 1], [-1, -1, -1]]
    result = metrics.hierarchical(
        np.array([[0.9, 0.9, 0.0]] + [[0.9, 0.0, 0.0]] * 3 + [[0.0] * 3]),
        Labels.from_ternary(z, names=names),
        {"b": "a", "c": "a"},
    )
    # b: 2 of 4 items with a, 1 bit, missed once; c: 1 of 3 known ones, log2(3) bits, missed once. 4 items with a yes.
    assert result["Smin"] == pytest.approx((1 + math.log2(3)) / 4)
    assert result["items"] == 4


def test_intervals_are_those_of_a_slow_jackknife() -> None:
    rng = np.random.default_rng(0)
    y = rng.random((200, 5)) < 0.2
    truth = GRAPH.deduce(Labels.from_ternary(np.where(y, 1, 0), names=NAMES)).ternary() == 1
    scores = 1 / (1 + np.exp(-(rng.normal(size=truth.shape) + 2 * truth - 1)))
    labels = Labels.from_ternary(np.where(truth, 1, -1), names=NAMES)
    bits = [1.0] * 5
    found = metrics.hierarchical(scores, labels, GRAPH, information=bits, confidence=0.9)
    for name, (low, high) in found["intervals"].items():
        rest = [np.arange(200) % 20 != k for k in range(20)]
        others = [metrics.hierarchical(scores[r], labels[r], GRAPH, information=bits)[name] for r in rest]
        margin = stats.t.ppf(0.95, 19) * math.sqrt(19 / 20 * sum((other - np.mean(others)) ** 2 for other in others))
        value = found[name]
        if name == "Smin":
            expected = value - margin, value + margin
        else:
            scale = margin / (value * (1 - value))
            expected = tuple(float(expit(logit(value) + sign * scale)) for sign in (-1, 1))
        assert (low, high) == pytest.approx(expected), name
        assert low < value < high


def test_refusals() -> None:
    labels = Labels.from_full([[0, 1]], names=["x", "y"])
    with pytest.raises(LabelError, match="relates no two"):
        metrics.hierarchical([[0.5, 0.5]], labels, {"a": "b"})
    with pytest.raises(SettingError, match="one number >= 0 for each of the 2 labels"):
        metrics.hierarchical([[0.5, 0.5]], labels, {"x": "y"}, information=[1.0])
    with pytest.raises(LabelError, match="yes below"):
        metrics.hierarchical([[0.5, 0.5]], labels, {"y": "x"})


def slow_federated(scores: list[float], values: list[int]) -> float:
    """AP with interpolated precision (PASCAL VOC 2010 and later), as the code of Open Images computes it."""
    order = sorted((s, z) for s, z in zip(scores, values, strict=True) if z)[::-1]
    total = sum(z == 1 for _, z in order)
    points = []
    for cut in sorted({s for s, _ in order}, reverse=True):
        called = [z for s, z in order if s >= cut]
        points.append((called.count(1) / total, called.count(1) / len(called)))
    area, before = 0.0, 0.0
    for k, (recall, _) in enumerate(points):
        area += (recall - before) * max(precision for _, precision in points[k:])
        before = recall
    return area


@given(cases())
def test_federated_ap_is_that_of_slow_loops(case: tuple[np.ndarray, Labels]) -> None:
    scores, labels = case
    result = metrics.federated_average_precision(scores, labels, GRAPH)
    z = GRAPH.deduce(labels).ternary()
    for j in range(5):
        if (z[:, j] == 1).any():
            assert result[j] == pytest.approx(slow_federated(list(scores[:, j]), list(z[:, j])))
        else:
            assert np.isnan(result[j])


def test_federated_ap_counts_what_the_hierarchy_adds() -> None:
    labels = Labels.from_nan([[1, np.nan], [np.nan, 0], [np.nan, 1]], names=["cat", "animal"])
    scores = np.array([[0.2, 0.9], [0.8, 0.1], [0.5, 0.5]])
    with_hierarchy = metrics.federated_average_precision(scores, labels, {"cat": "animal"})
    assert with_hierarchy.tolist() == [0.5, 1.0]  # the animal that is none is no cat
    assert metrics.federated_average_precision(scores, labels).tolist() == [1.0, 1.0]
