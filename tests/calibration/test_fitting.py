"""Calibrations of several labels: which entries they rest on, who falls back on what, and that it is said."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import _SigmoidCalibration

from partly import Labels
from partly.calibration import MIN_ENTRIES, Calibration, fit_calibration
from partly.errors import SettingError

nan = np.nan
N = 400


def drawn(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits that are too bold by 3, the truth, and what is known of it: label 2 has few known entries, 3 none."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(N, 4)) * 1.5 - 0.5
    truth = (rng.random(logits.shape) < expit(logits)).astype(float)
    known = np.where(rng.random(truth.shape) < [0.6, 0.9, 0.02, 0.0], truth, nan)
    return (3 * logits).astype(np.float32), truth, known


def test_each_label_is_calibrated_on_its_own_known_entries() -> None:
    logits, truth, known = drawn()
    made = fit_calibration(logits, known, "platt", "f1")
    for j in (0, 1):
        s, y = logits[~np.isnan(known[:, j]), j], known[~np.isnan(known[:, j]), j]
        expected = _SigmoidCalibration().fit(s, y).predict(logits[:, j])
        np.testing.assert_allclose(expit(made(logits)[:, j]), expected, atol=2e-4)
        called = expit(made(logits)[:, j]) >= made.thresholds[j]
        best = max(f1(y, s >= t) for t in s)
        assert f1(y, called[~np.isnan(known[:, j])]) == pytest.approx(best)
    hidden = np.isnan(known[:, :2])
    before, after = (log_loss(expit(of[:, :2])[hidden], truth[:, :2][hidden]) for of in (logits, made(logits)))
    assert after < before - 0.1


def f1(y: np.ndarray, called: np.ndarray) -> float:
    return float(2 * (called & (y == 1)).sum() / (called.sum() + (y == 1).sum()))


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    p = p.astype(float).clip(1e-12, 1 - 1e-12)
    return float(-np.where(y == 1, np.log(p), np.log(1 - p)).mean())


def test_labels_with_too_few_known_entries_take_that_of_all_together_and_are_named() -> None:
    logits, _, known = drawn()
    made = fit_calibration(logits, Labels.from_nan(known, names=list("abcd")), "platt", "f1")
    assert [label.map_from for label in made.labels] == ["own", "own", "pooled", "none"]
    assert [label.threshold_from for label in made.labels] == ["own", "own", "pooled", "none"]
    judged = ~np.isnan(known[:, :3])
    pooled = _SigmoidCalibration().fit(logits[:, :3][judged], known[:, :3][judged])
    np.testing.assert_allclose(expit(made(logits)[:, 2]), pooled.predict(logits[:, 2]), atol=2e-4)
    np.testing.assert_array_equal(made(logits)[:, 3], logits[:, 3])
    assert made.labels[3].threshold == 0.5
    told = " ".join(made.describe(list("abcd")))
    assert f"No calibration of its own for c (fewer than {MIN_ENTRIES['platt']} known yes or no" in told
    assert "for d (" in told
    assert "stay unchanged" in told


def test_with_only_yes_known_a_share_takes_the_place_of_the_no() -> None:
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(4000, 2)) * 4 - 2
    truth = rng.random(logits.shape) < expit(logits)
    known = np.where(truth & (rng.random(truth.shape) < 0.3), 1.0, nan)
    low = (logits - 3).astype(np.float32)  # as of a model that took unknown for no
    made = fit_calibration(low, Labels.from_nan(known, names=["a", "b"]), "platt", "f1")
    assert all(label.share is not None for label in made.labels)
    np.testing.assert_allclose([label.share for label in made.labels], truth.mean(axis=0), atol=0.06)
    p = expit(made(low))
    assert log_loss(p, truth) < log_loss(expit(low), truth) - 0.1
    for j in range(2):
        found = f1(truth[:, j].astype(float), p[:, j] >= made.thresholds[j])
        assert found > max(f1(truth[:, j].astype(float), low[:, j] >= t) for t in np.unique(low)[::40]) - 0.03
    assert "No known no for a, b: an estimated share of yes" in " ".join(made.describe(["a", "b"]))


def test_the_share_of_yes_is_called() -> None:
    logits, _, known = drawn()
    made = fit_calibration(logits, known, None, "share")
    assert made(logits) is logits
    called = (expit(logits) >= made.thresholds).mean(axis=0)
    for j in (0, 1):
        assert called[j] == pytest.approx(np.nanmean(known[:, j]), abs=0.01)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_without_a_goal_what_was_called_yes_stays_so(method: str) -> None:
    logits, _, known = drawn()
    own = np.array([0.3, 0.6, 0.5, 0.9], np.float32)
    made = fit_calibration(logits, known, method, None, own)
    before, after = expit(logits) >= own, expit(made(logits).astype(float)) >= made.thresholds
    assert (before <= after).all()  # steps make some scores equal
    assert (before != after).mean() < (0.001 if method == "platt" else 0.15)
    assert fit_calibration(logits, known, method).thresholds.tolist() == [0.5] * 4


def test_it_goes_through_json() -> None:
    logits, _, known = drawn()
    for method in ("platt", "isotonic"):
        made = fit_calibration(logits, known, method, "precision:0.99")
        again = Calibration.from_dict(json.loads(json.dumps(made.to_dict())))
        assert again == made
        np.testing.assert_array_equal(again(logits), made(logits))


def test_a_precision_that_no_threshold_has_is_never_called_and_named() -> None:
    logits, _, known = drawn()
    logits[:, 0] *= -1
    made = fit_calibration(logits, Labels.from_nan(known, names=list("abcd")), None, "precision:0.97")
    assert not made.labels[0].reached
    assert made.labels[0].threshold == 1
    assert "No threshold reaches precision:0.97 for a" in " ".join(made.describe(list("abcd")))


@pytest.mark.parametrize(("method", "goal"), [("plat", None), ("sigmoid", None), (None, "f2")])
def test_what_there_is_not_is_refused(method: str | None, goal: str | None) -> None:
    with pytest.raises(SettingError, match=r"Available:|Did you mean"):
        fit_calibration(np.zeros((2, 1)), [[1.0], [0.0]], method, goal)
