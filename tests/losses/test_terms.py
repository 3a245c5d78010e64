"""A loss is its terms, weight times the cross-entropy with the target, for every method that says what they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from partly import methods

WITH_TERMS = {name: info for name, info in methods.discover().items() if hasattr(info.module, "terms")}


def test_the_convex_ones_have_terms() -> None:
    assert set(WITH_TERMS) == {
        "assume-negative",
        "bce",
        "down-weight",
        "label-smoothing",
        "negative-label-smoothing",
        "one-class",
        "partial-bce",
        "weak-assume-negative",
    }


@pytest.mark.parametrize("name", WITH_TERMS)
def test_terms_are_the_loss(name: str) -> None:
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(scale=3, size=(9, 5)))
    z = torch.from_numpy(rng.integers(-1, 2, (9, 5)).astype(np.int8))
    info = WITH_TERMS[name]
    for settings in ({}, *({key: 0.3} for key in info.settings if key in ("weight", "smoothing", "gamma"))):
        weights, targets = info.module.terms(z, **settings)
        slow = [
            [w * (max(f, 0) - t * f + np.log1p(np.exp(-abs(f)))) for w, t, f in zip(*rows, strict=True)]
            for rows in zip(weights.tolist(), targets.tolist(), logits.tolist(), strict=True)
        ]
        np.testing.assert_allclose(info.make(logits, z, **settings), slow, rtol=1e-6, atol=1e-9)
