"""Criteria: each against a slow, obvious loop, what changes nothing, and what is undefined."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score

import partly
from partly import Labels, metrics, model_choice, priors
from partly.errors import DataError, SettingError
from partly.model_choice import criteria
from partly.model_choice.recalibration import fit_scale

Array = np.ndarray[Any, Any]

NAMES = [
    "auc", "auc-unknown-as-no", "auc-unknown-as-no-weighted", "average-precision", "average-precision-corrected",
    "average-precision-unknown-as-no", "log-loss", "log-rank", "reciprocal-rank",
]  # fmt: skip
BY_RANK = [name for name in NAMES if name not in ("log-loss", "reciprocal-rank")]

shapes = st.tuples(st.integers(1, 9), st.integers(1, 4))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Array, Array]:
    """Scores, with ties, and z; only yes in half of the cases."""
    shape = draw(shapes)
    scores = draw(hnp.arrays(np.float64, shape, elements=st.integers(-3, 3).map(float)))
    values = draw(st.sampled_from([[1, 0], [1, 0, -1]]))
    return scores, draw(hnp.arrays(np.int8, shape, elements=st.sampled_from(values)))


def made(items: int = 300, width: int = 5, known: float = 0.4, only_yes: bool = False) -> tuple[Array, Array]:
    rng = np.random.default_rng(width)
    truth = np.where(rng.random((items, width)) < rng.uniform(0.05, 0.4, width), 1, -1).astype(np.int8)
    scores = rng.normal(size=truth.shape) + 1.5 * (truth == 1)
    z = np.where(rng.random(truth.shape) < known, truth, 0)
    return scores, np.where(z == 1, 1, 0).astype(np.int8) if only_yes else z


# -------------------------------------------------------------------- the slow, obvious way


def nan_mean(values: list[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def pairs_won(yes: Array, no: Array) -> float:
    won = [1.0 if a > b else 0.5 if a == b else 0.0 for a in yes for b in no]
    return sum(won) / len(won) if won else math.nan


def precision_at_each_yes(yes: Array, no: Array, hidden: float = 0.0) -> float:
    if not len(yes) or not len(no):
        return math.nan
    found = []
    for a in yes:
        hits, above = sum(b >= a for b in yes), sum(b > a for b in yes)
        more = hidden * (hits + above) / 2 / len(yes)
        found.append(min(1, (hits + more) / (hits + sum(b >= a for b in no))))
    return sum(found) / len(found)


def slow(name: str, s: Array, z: Array) -> float:
    columns = [(s[:, j], z[:, j]) for j in range(s.shape[1])]
    known = [(a[b == 1], a[b == -1]) for a, b in columns]
    rest = [(a[b == 1], a[b != 1]) for a, b in columns]
    if name == "auc":
        return nan_mean([pairs_won(*pair) for pair in known])
    if name == "auc-unknown-as-no":
        return nan_mean([pairs_won(*pair) for pair in rest])
    if name == "auc-unknown-as-no-weighted":
        each = [pairs_won([a], no) for yes, no in rest for a in yes]
        return nan_mean(each)
    if name == "average-precision":
        return nan_mean([precision_at_each_yes(*pair) for pair in known])
    if name == "average-precision-unknown-as-no":
        return nan_mean([precision_at_each_yes(*pair) for pair in rest])
    if name == "average-precision-corrected":
        shares = priors.estimate(s, Labels.from_ternary(z))
        hidden = [share * len(s) - len(yes) for share, (yes, _) in zip(shares, rest, strict=True)]
        return nan_mean([precision_at_each_yes(*pair, more) for pair, more in zip(rest, hidden, strict=True)])
    assert name == "log-rank"
    ranks = [1 + sum(a > b) + (sum(a == b) - 1) / 2 for a, c in columns for b in a[c == 1]]
    return -nan_mean([math.log(rank / len(s)) for rank in ranks])


@pytest.mark.parametrize("name", BY_RANK)
@settings(max_examples=60)
@given(case=cases())
def test_a_criterion_against_a_loop(name: str, case: tuple[Array, Array]) -> None:
    s, z = case
    assert model_choice.score(name, s, Labels.from_ternary(z)) == pytest.approx(slow(name, s, z), nan_ok=True)


def test_reciprocal_rank_by_hand() -> None:
    """On calibrated scores whose order within items is that of the scores, since the labels are alike."""
    s = np.array([[3.0, 2, 1], [1, 3, 2], [2, 1, 3], [3, 1, 2], [2, 3, 1], [1, 2, 3]])
    z = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 0], [0, 1, 1]], np.int8)
    # one yes: rank 1 each; two yes are not in each other's way, and the third label stands below them
    assert model_choice.score("reciprocal-rank", s, Labels.from_ternary(z)) == 1
    z[5] = [1, 0, 0]  # the lowest of its item: rank 3
    found = model_choice.score("reciprocal-rank", s, Labels.from_ternary(z))
    assert 0.8 < found < 1


def test_reciprocal_rank_against_a_loop() -> None:
    s, z = made(items=60)
    fit = fit_scale(criteria.select_entries(s, Labels.from_ternary(z)))
    logits = fit.scale * (s - s.mean(axis=0)) / s.std(axis=0) + fit.biases
    found = []
    for i, j in np.argwhere(z == 1):
        found.append(1 / (1 + sum(logits[i, k] > logits[i, j] for k in range(5) if z[i, k] != 1)))
    assert model_choice.score("reciprocal-rank", s, Labels.from_ternary(z)) == pytest.approx(np.mean(found))


def test_auc_is_that_of_scikit_learn() -> None:
    s, z = made()
    each = [roc_auc_score(z[z[:, j] != 0, j], s[z[:, j] != 0, j]) for j in range(5)]
    assert model_choice.score("auc", s, Labels.from_ternary(z)) == pytest.approx(np.mean(each))


def test_average_precision_is_that_of_the_metrics() -> None:
    s, z = made()
    labels = Labels.from_ternary(z)
    expected = np.nanmean(metrics.average_precision(s, labels))
    assert model_choice.score("average-precision", s, labels) == pytest.approx(expected)


def test_correcting_by_the_observed_share_corrects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    s, z = made(only_yes=True)
    labels = Labels.from_ternary(z)
    plain = model_choice.score("average-precision-unknown-as-no", s, labels)
    assert model_choice.score("average-precision-corrected", s, labels) > plain
    monkeypatch.setattr(priors, "estimate", lambda scores, labels, method: labels.counts()[0] / len(labels))
    assert model_choice.score("average-precision-corrected", s, labels) == pytest.approx(plain)


def test_whole_numbers_and_halves_are_scores() -> None:
    s, z = made()
    labels = Labels.from_ternary(z)
    for name in NAMES:
        whole = model_choice.score(name, np.round(10 * s).astype(int), labels)
        assert model_choice.score(name, np.round(10 * s), labels) == pytest.approx(whole, rel=1e-5)
        assert model_choice.score(name, np.round(10 * s).astype(np.float16), labels) == pytest.approx(whole, rel=1e-3)


def test_a_constant_explains_nothing() -> None:
    s, z = made()
    assert model_choice.score("log-loss", np.ones_like(s), Labels.from_ternary(z)) == pytest.approx(0, abs=1e-6)


def test_hidden_yes_draw_the_auc_to_one_half_by_a_known_factor() -> None:
    """Missing completely at random: AUC' - 1/2 = (1 - share of yes among the others) (AUC - 1/2)."""
    rng = np.random.default_rng(0)
    y = rng.random(40_000) < 0.3
    s = (rng.normal(size=y.shape) + y)[:, None]
    known = y & (rng.random(y.shape) < 0.25)
    true = model_choice.score("auc", s, Labels.from_full(y[:, None]))
    hidden = (y & ~known).sum() / (~known).sum()
    found = model_choice.score("auc-unknown-as-no", s, Labels.from_positives(known[:, None]))
    assert found - 0.5 == pytest.approx((1 - hidden) * (true - 0.5), abs=0.01)


# -------------------------------------------------------------------- what changes nothing


@pytest.mark.parametrize("name", BY_RANK)
@settings(max_examples=30)
@given(case=cases(), seed=st.integers(0, 9))
def test_a_strictly_increasing_transformation_of_a_label_changes_nothing(
    name: str, case: tuple[Array, Array], seed: int
) -> None:
    s, z = case
    rng = np.random.default_rng(seed)
    other = np.sinh(s * rng.uniform(0.1, 2, s.shape[1])) + rng.normal(size=s.shape[1])
    labels = Labels.from_ternary(z)
    assert model_choice.score(name, other, labels) == pytest.approx(model_choice.score(name, s, labels), nan_ok=True)


@pytest.mark.parametrize("name", ["log-loss", "reciprocal-rank"])
@pytest.mark.parametrize("only_yes", [False, True])
def test_scale_and_shift_of_a_label_change_nothing(name: str, only_yes: bool) -> None:
    s, z = made(only_yes=only_yes)
    labels = Labels.from_ternary(z)
    other = s * np.array([0.1, 3, 1, 20, 5]) + np.array([100, -3, 0, 1, 7])
    assert model_choice.score(name, other, labels) == pytest.approx(model_choice.score(name, s, labels), rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(case=cases(), seed=st.integers(0, 9))
def test_neither_order_nor_form_of_the_labels_matters(name: str, case: tuple[Array, Array], seed: int) -> None:
    s, z = case
    if name == "reciprocal-rank":  # rounding decides which of two labels with equal calibrated scores is ahead
        s = s + np.random.default_rng(seed).uniform(-0.4, 0.4, s.shape)
    first = model_choice.score(name, s, Labels.from_ternary(z))
    order = np.random.default_rng(seed).permutation(len(s))
    again = model_choice.score(name, s[order], Labels.from_ternary(sp.csr_array(z[order])))
    assert again == pytest.approx(first, rel=1e-5, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("name", ["auc", "average-precision"])
def test_scores_of_unknown_entries_do_not_matter_to_what_judges_known_ones(name: str) -> None:
    s, z = made()
    other = np.where(z == 0, np.random.default_rng(1).normal(size=s.shape), s)
    labels = Labels.from_ternary(z)
    assert model_choice.score(name, other, labels) == model_choice.score(name, s, labels)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_hidden_under_an_unknown_entry_does_not_matter(name: str) -> None:
    s, z = made()
    rng = np.random.default_rng(0)
    hidden = [np.where(z == 0, np.nan, (z == 1).astype(float)), np.ma.masked_array(rng.random(z.shape) < 0.5, z == 0)]
    hidden[1].data[z != 0] = (z == 1)[z != 0]
    one, two = (model_choice.score(name, s, Labels.from_nan(h)) for h in hidden)
    assert one == two


@pytest.mark.parametrize("only_yes", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_better_model_scores_higher(name: str, only_yes: bool) -> None:
    s, z = made(items=2000, only_yes=only_yes)
    labels = Labels.from_ternary(z)
    noise = np.random.default_rng(1).normal(size=s.shape)
    same = {"prior": priors.estimate(s, labels).tolist()} if name == "average-precision-corrected" else {}
    good, fair, none = (model_choice.score(name, made, labels, **same) for made in (s, s + 2 * noise, noise))
    if only_yes and name in ("auc", "average-precision"):
        assert math.isnan(good)
    else:
        assert good > fair > none


@pytest.mark.parametrize("name", NAMES)
def test_without_a_known_yes_it_is_undefined(name: str) -> None:
    for z in (np.zeros((4, 2)), -np.ones((4, 2)), np.zeros((0, 2))):
        labels = Labels.from_ternary(z.astype(np.int8))
        assert math.isnan(model_choice.score(name, np.ones(z.shape), labels))


# -------------------------------------------------------------------- names, defaults and the door


def test_every_criterion_says_what_it_assumes() -> None:
    assert list(partly.criteria()) == NAMES
    for words in partly.criteria().values():
        assert len(words["assumes"]) > 50
        assert words["summary"].endswith(".")
    assert "Hanley" in partly.criteria()["auc"]["citation"]
    assert partly.criteria()["average-precision-corrected"]["settings"] == {"prior": "auto"}


def test_a_decorated_function_is_a_criterion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(criteria._CRITERIA, "_functions", dict(criteria._CRITERIA._functions))

    @criteria.criterion()
    def share_above(scores: Array, labels: Labels, *, cut: float = 0.0) -> float:
        """The share of scores above a cut.

        Assumes: nothing.
        """
        return float((scores > cut).mean())

    assert partly.criteria()["share-above"]["assumes"] == "nothing."
    assert model_choice.score("share-above", [[1.0, 3.0]], [[1, 0]], cut=2.0) == 0.5


def test_the_page_names_every_criterion_and_estimator() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "choosing.md").read_text("utf-8")
    for name in [*NAMES, *priors.names()]:
        assert f"`{name}`" in page, name


def test_the_default_depends_on_whether_a_no_is_known() -> None:
    assert model_choice.default([[1, 0, np.nan]]) == "log-loss"
    assert model_choice.default(Labels.from_positives([[1, 0, 0]])) == "auc-unknown-as-no-weighted"
    assert model_choice.default(Labels.from_positives([[0, 0]])) in criteria.discover()


def test_wrong_input_is_refused() -> None:
    labels = Labels.from_positives([[1, 0], [0, 1]])
    with pytest.raises(SettingError, match=r"no criterion 'acu'\. Did you mean 'auc'"):
        model_choice.score("acu", np.ones((2, 2)), labels)
    with pytest.raises(SettingError, match=r"no setting 'priors'\. Did you mean 'prior'"):
        model_choice.score("average-precision-corrected", np.ones((2, 2)), labels, priors="tice")
    with pytest.raises(DataError, match=r"shape \(2, 3\) and labels \(2, 2\)"):
        model_choice.score("auc", np.ones((2, 3)), labels)
    with pytest.raises(SettingError, match="prior holds 3 shares for 2 labels"):
        model_choice.score("average-precision-corrected", np.ones((2, 2)), labels, prior=(0.1, 0.2, 0.3))
    with pytest.raises(DataError, match="1 of 4 scores are NaN"):
        model_choice.score("auc", [[1, np.nan], [0, 0]], labels)
    with pytest.raises(DataError, match="log-loss takes finite scores"):
        model_choice.score("log-loss", [[1, np.inf], [0, 0]], labels)
