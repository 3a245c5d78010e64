"""Model and teachers as one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from partly import Labels, items, metrics
from partly.teachers import Scores, combination, contract, large_arrays
from partly.teachers.combination import Combination
from partly.teachers.score_matrix import LazyScores
from partly.teachers.standardization import measure

ITEMS, LABELS = 600, 8


def simulated(known: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, Labels]:
    """Truth, out-of-fold logits of a weak model, scores of a good teacher, and labels of which so much is known."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(ITEMS, LABELS))
    truth = (hidden + 0.5 * rng.normal(size=hidden.shape) > 1).astype(int)
    model = (0.5 * hidden + rng.normal(size=hidden.shape) - 1.5).astype(np.float32)
    teacher = (20 + 4 * (hidden + rng.normal(size=hidden.shape))).astype(np.float32)
    labels = np.where(rng.random(truth.shape) < known, truth, np.nan)
    return truth, model, teacher, Labels.from_nan(labels)


def mean_ap(scores: np.ndarray, truth: np.ndarray) -> float:
    return float(np.nanmean(metrics.average_precision(scores, Labels.from_full(truth))))


@pytest.mark.parametrize("only_yes", [False, True])
def test_a_good_teacher_helps_on_items_that_were_not_fitted(only_yes: bool) -> None:
    truth, model, teacher, labels = simulated(0.2)
    if only_yes:
        labels = Labels.from_positives((labels.ternary() > 0).astype(int))
    half = np.arange(ITEMS) < ITEMS // 2
    found = combination.fit(model[half], [teacher[half]], labels[half], names=["t"])
    assert found.combination.used == (0,)
    combined = found.combination(model[~half], [teacher[~half]])
    assert mean_ap(combined, truth[~half]) > mean_ap(model[~half], truth[~half]) + 0.1
    assert mean_ap(found.out_of_fold, truth[half]) > mean_ap(model[half], truth[half]) + 0.1
    assert found.combination.thresholds is not None
    called = 1 / (1 + np.exp(-combined)) >= found.combination.thresholds
    assert 0.3 * truth.mean() < called.mean() < 3 * truth.mean()


def test_a_permuted_teacher_changes_nothing() -> None:
    _, model, teacher, labels = simulated(0.2)
    permuted = teacher[:, np.roll(np.arange(LABELS), 1)]
    found = combination.fit(model, [permuted], labels)
    assert found.combination.used == ()
    np.testing.assert_array_equal(found.out_of_fold, model)
    np.testing.assert_array_equal(found.combination(model, [permuted]), model)
    assert found.combination.thresholds is None


def test_without_labels_the_teacher_alone_decides() -> None:
    truth, model, teacher, _ = simulated(0.0)
    nothing = Labels.from_nan(np.full(truth.shape, np.nan))
    constant = np.zeros_like(model)
    found = combination.fit(constant, [teacher], nothing)
    alone = mean_ap(teacher, truth)
    assert alone > 2 * truth.mean()
    assert mean_ap(found.combination(constant, [teacher]), truth) > alone - 0.05
    np.testing.assert_array_equal(found.combination.teachers_only([teacher]), found.combination(constant, [teacher]))


def test_a_label_without_known_yes_is_scored_at_once() -> None:
    truth, model, teacher, labels = simulated(0.2)
    z = labels.ternary().copy()
    z[:, 0] = np.where(z[:, 0] > 0, 0, z[:, 0])
    model[:, 0] = -3.0  # the model has never seen a yes
    found = combination.fit(model, [teacher], Labels.from_ternary(z))
    combined = found.combination(model, [teacher])
    assert mean_ap(combined[:, :1], truth[:, :1]) > mean_ap(teacher[:, :1], truth[:, :1]) - 0.05


def test_gaps_of_the_teacher_leave_the_model() -> None:
    _, model, teacher, labels = simulated(0.2)
    teacher[::2] = np.nan
    found = combination.fit(model, [teacher], labels).combination
    combined = found(model, [teacher])
    assert np.isfinite(combined).all()
    expected = found.bias + found.slopes[0] * (model[::2] - found.center)
    np.testing.assert_allclose(combined[::2], expected, rtol=1e-5, atol=1e-5)


def test_a_certain_model_of_a_single_yes_is_hardly_believed() -> None:
    truth, model, teacher, labels = simulated(0.2)
    z = labels.ternary().copy()
    z[np.flatnonzero(z[:, 0] > 0)[1:], 0] = 0
    model[:, 0] = 30 * np.random.default_rng(5).normal(size=len(model))
    found = combination.fit(model, [teacher], Labels.from_ternary(z)).combination
    spread = found.slopes[0] * model.std(axis=0)
    assert 0.3 < spread[0] < 0.8  # log(1 + 1) times a slope near 1
    assert (found.slopes[0, 1:] > 5 * found.slopes[0, 0]).all()
    combined = found(model, [teacher])
    assert mean_ap(combined[:, :1], truth[:, :1]) > mean_ap(teacher[:, :1], truth[:, :1]) - 0.2


def test_only_models_that_are_too_certain_are_scaled() -> None:
    z = np.zeros((100, 4), int)
    z[:3, 0], z[3:50, 0] = 1, -1  # 3 yes
    z[:1, 1], z[1:50, 1] = 1, -1  # a single yes
    z[:50, 2] = -1  # no yes
    z[:30, 3], z[30:, 3] = 1, -1
    logits = np.repeat([[2.0], [-2.0]], 50, axis=0) * np.ones(4)
    arguments = (logits, np.zeros(4), Labels.from_ternary(z), None, False)
    np.testing.assert_allclose(combination.scale_model(*arguments), [np.log(4) / 2, np.log(2) / 2, 0, 1])


def test_weights_of_zero_are_as_unknown() -> None:
    truth, model, teacher, labels = simulated(0.3)
    rng = np.random.default_rng(1)
    weights = (rng.random(truth.shape) < 0.5).astype(np.float32)
    hidden = Labels.from_ternary(np.where(weights > 0, labels.ternary(), 0))
    one, other = (
        combination.fit(model, [teacher], labels, weights),
        combination.fit(model, [teacher], hidden),
    )
    np.testing.assert_allclose(one.combination.slopes, other.combination.slopes, rtol=1e-5)


def test_a_combination_survives_json() -> None:
    _, model, teacher, labels = simulated(0.2)
    teacher[:, 2] = np.nan
    found = combination.fit(model, [teacher], labels, names=["mine"]).combination
    back = Combination.from_json(json.loads(json.dumps(found.to_json())))
    np.testing.assert_array_equal(back(model, [teacher]), found(model, [teacher]))
    assert (back.names, back.used, back.precision) == (("mine",), found.used, found.precision)
    broken = found.to_json() | {"bias": [0.0]}
    with pytest.raises(ValueError, match="different sizes"):
        Combination.from_json(broken)


def test_out_of_fold_logits_come_from_other_folds() -> None:
    """Changing the labels of one item must not change its own out-of-fold logits by way of the slopes."""
    _, model, teacher, labels = simulated(0.2)
    z = labels.ternary().copy()
    z[0] = -z[0] if z[0].any() else 1
    before, after = (
        combination._cross_fit(*_parts(model, teacher, said))[0] for said in (labels, Labels.from_ternary(z))
    )
    np.testing.assert_array_equal(before, after)


def _parts(model: np.ndarray, teacher: np.ndarray, labels: Labels) -> tuple:
    fixed = combination.fit(model, [teacher], simulated(0.2)[3])
    entries = combination.collect(
        model,
        fixed.combination.center,
        np.ones(LABELS),
        [teacher],
        fixed.combination.standardizations,
        labels,
        None,
        False,
    )
    slopes = combination.Slopes(
        fixed.combination.slopes.astype(float),
        fixed.combination.bias.astype(float),
        fixed.combination.pooled,
        10.0,
        (0,),
    )
    return fixed.combination, np.ones(LABELS), model, [teacher], entries, slopes, 0


def test_agreement_is_the_correlation_of_common_opinions() -> None:
    rng = np.random.default_rng(0)
    first = rng.normal(size=(50, 2)).astype(np.float32)
    second = (0.5 * first + rng.normal(size=first.shape)).astype(np.float32)
    second[:20, 0] = np.nan
    parts = [measure([scores]) for scores in (first, second)]
    found = combination.measure_agreement([first, second], parts)
    pairs = []
    for j in range(2):
        for i in range(50):
            if np.isfinite(second[i, j]):
                standard = [(s[i, j] - np.nanmean(s[:, j])) / np.nanstd(s[:, j]) for s in (first, second)]
                pairs.append(standard)
    x, y = np.array(pairs).T
    assert found[0, 1] == found[1, 0] == pytest.approx(x @ y / np.sqrt(x @ x * (y @ y)), abs=1e-5)
    np.testing.assert_allclose(np.diag(found), 1, atol=1e-6)


@pytest.mark.parametrize("only_yes", [False, True])
def test_blocks_and_scores_on_request_change_nothing(monkeypatch: pytest.MonkeyPatch, only_yes: bool) -> None:
    _, model, teacher, labels = simulated(0.2)
    teacher[::7, 2] = np.nan
    if only_yes:
        labels = Labels.from_positives((labels.ternary() > 0).astype(int))
    expected = combination.fit(model, [teacher], labels)
    monkeypatch.setattr(contract, "ENTRIES_AT_A_TIME", 50 * LABELS)
    monkeypatch.setattr(large_arrays, "MAX_IN_MEMORY", 0)
    lazy = LazyScores(Scores(teacher), items.features(np.zeros((ITEMS, 1))), labels.names)
    found = combination.fit(model, [lazy], labels)
    np.testing.assert_allclose(found.combination.slopes, expected.combination.slopes, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.out_of_fold, expected.out_of_fold, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.combination.thresholds, expected.combination.thresholds, atol=1e-4)


def test_many_entries_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, model, teacher, labels = simulated(0.5)
    monkeypatch.setattr(combination.stacking, "MAX_ENTRIES", 700)
    monkeypatch.setattr(combination, "MAX_THRESHOLD_ENTRIES", 300 * LABELS)
    found = combination.fit(model, [teacher], labels)
    entries = combination.collect(
        model,
        found.combination.center,
        np.ones(LABELS),
        [teacher],
        found.combination.standardizations,
        labels,
        None,
        False,
    )
    assert 500 < len(entries) <= 700
    row, column, value = labels.entries()
    known = dict(zip(zip(row.tolist(), column.tolist(), strict=True), value.tolist(), strict=True))
    assert [known[i, j] for i, j in zip(entries.item.tolist(), entries.label.tolist(), strict=True)] == (
        entries.target.tolist()
    )
    assert mean_ap(found.out_of_fold, truth) > mean_ap(model, truth) + 0.1
    called = 1 / (1 + np.exp(-found.out_of_fold)) >= found.combination.thresholds
    assert 0.3 * truth.mean() < called.mean() < 3 * truth.mean()
