"""Platt's line and isotonic steps beside scikit-learn's own, and with hidden yes beside what is true."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

from partly.calibration.maps import IsotonicMap, PlattMap, fit_isotonic, fit_platt, map_from_dict, map_to_dict
from partly.calibration.samples import CalibrationSample


def drawn(count: int = 300, slope: float = 0.5, bias: float = -1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    s = 3 * rng.normal(size=count)
    return s, (rng.random(count) < expit(slope * s + bias)).astype(float)


def judged(s: np.ndarray, y: np.ndarray) -> CalibrationSample:
    return CalibrationSample(s[y == 1], s[y == 0])


@pytest.mark.parametrize("seed", range(3))
def test_platt_is_that_of_scikit_learn(seed: int) -> None:
    s, y = drawn(seed=seed)
    found = fit_platt(judged(s, y))
    assert found is not None
    np.testing.assert_allclose(expit(found(s)), _SigmoidCalibration().fit(s, y).predict(s), atol=2e-4)


@pytest.mark.parametrize("seed", range(3))
def test_isotonic_is_that_of_scikit_learn_with_blunt_ends(seed: int) -> None:
    s, y = drawn(seed=seed)
    found, new = fit_isotonic(judged(s, y)), np.linspace(-12, 12, 99)
    assert found is not None
    expected = IsotonicRegression(out_of_bounds="clip").fit(s, y).predict(new)
    np.testing.assert_allclose(expit(found(new)), expected, atol=1 / 302 + 1e-9)
    expected = IsotonicRegression(out_of_bounds="clip").fit(s, y).predict(s)
    np.testing.assert_allclose(expit(found(s)), np.clip(expected, 1 / 302, 301 / 302), atol=1e-12)


@pytest.mark.parametrize("make", [fit_platt, fit_isotonic])
def test_with_only_yes_known_the_chance_gives_the_true_probabilities(make: type) -> None:
    s, y = drawn(40_000)
    named = (y == 1) & (np.random.default_rng(9).random(len(y)) < 0.25)
    found = make(CalibrationSample(s[named], s[~named], chance=0.25))
    grid = np.array([-4.0, 0.0, 2.0, 4.0])
    np.testing.assert_allclose(expit(found(grid)), expit(0.5 * grid - 1), atol=0.06)
    blind = make(CalibrationSample(s[named], s[~named]))  # taking unknown for no
    assert (expit(blind(grid)) < expit(found(grid)) / 2).all()


@pytest.mark.parametrize("make", [fit_platt, fit_isotonic])
def test_scores_that_do_not_rise_with_yes_have_no_map(make: type) -> None:
    assert make(CalibrationSample(np.array([-2.0, -1.0, -1.5]), np.array([1.0, 2.0, 1.5]))) is None


def test_maps_go_through_json() -> None:
    for map in (PlattMap(2.0, -1.0), IsotonicMap((0.0, 1.0), (0.2, 0.7))):
        assert map_from_dict(map_to_dict(map)) == map
