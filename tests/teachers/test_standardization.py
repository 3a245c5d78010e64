"""Scores per label and per item, against loops."""

from __future__ import annotations

import numpy as np

from partly.teachers.standardization import measure


def test_per_label_and_per_item_by_loops() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(100, 3, (50, 5)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.2] = np.nan
    found = measure([scores[:20], scores[20:]])
    t, u = np.zeros_like(scores), np.zeros_like(scores)
    for j in range(5):
        own = scores[~np.isnan(scores[:, j]), j].astype(float)
        for i in range(50):
            if not np.isnan(scores[i, j]):
                t[i, j] = (scores[i, j] - own.mean()) / own.std()
    for i in range(50):
        opinions = [j for j in range(5) if not np.isnan(scores[i, j])]
        values = np.array([t[i, j] for j in opinions], float)
        for j in opinions:
            u[i, j] = (t[i, j] - values.mean()) / values.std() if len(opinions) >= 3 else t[i, j]
    np.testing.assert_allclose(found.per_label(scores), t, atol=1e-4)
    np.testing.assert_allclose(found.per_item(scores), u, atol=1e-3)


def test_labels_without_opinion_or_variation_stay_at_zero() -> None:
    scores = np.array([[1, 5, np.nan], [2, 5, np.nan], [3, 5, np.nan]], np.float32)
    found = measure([scores])
    np.testing.assert_array_equal(found.per_label(scores)[:, 1:], 0)
    assert np.isfinite(found.per_item(scores)).all()


def test_two_labels_are_not_standardized_per_item() -> None:
    scores = np.random.default_rng(0).normal(size=(10, 2)).astype(np.float32)
    found = measure([scores])
    np.testing.assert_array_equal(found.per_item(scores), found.per_label(scores))
