"""Reliability beside a loop over the bins, and in the page."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from partly import Labels
from partly.report.plots import choose_style
from partly.report.reliability import BINS, describe_reliability, draw_reliability, measure_reliability


def test_bins_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    p = rng.random((200, 3)).astype(np.float32)
    y = np.where(rng.random(p.shape) < 0.8, rng.random(p.shape) < p**2, np.nan)
    found = measure_reliability(p, Labels.from_nan(y))
    assert found is not None
    error, total = 0.0, 0
    for k in range(BINS):
        inside = (p >= k / BINS) & (p < (k + 1) / BINS) & ~np.isnan(y)
        assert found.count[k] == inside.sum()
        assert found.mean[k] == pytest.approx(p[inside].mean(), abs=1e-6)
        assert found.share[k] == pytest.approx(y[inside].mean())
        low, high = binomtest(int(y[inside].sum()), int(inside.sum())).proportion_ci(method="wilson")
        np.testing.assert_allclose(found.margins()[:, k], [y[inside].mean() - low, high - y[inside].mean()], atol=1e-6)
        error += inside.sum() * abs(p[inside].mean() - y[inside].mean())
        total += inside.sum()
    assert found.error == pytest.approx(error / total, abs=1e-6)
    assert "too high" in describe_reliability(found)


def test_of_yes_alone_nothing_can_be_said() -> None:
    assert measure_reliability(np.full((3, 1), 0.5), Labels.from_positives([[1], [1], [0]])) is None


def test_a_probability_of_one_is_in_the_last_bin_and_it_can_be_drawn() -> None:
    found = measure_reliability(np.array([[1.0], [0.0]]), Labels.from_full([[1], [0]]))
    assert found is not None
    assert found.count.tolist() == [1, 1]
    assert (found.error, describe_reliability(found)) == (0.0, "calibration error 0.000")
    assert draw_reliability([(choose_style(0), found)]).startswith(b"<svg")
