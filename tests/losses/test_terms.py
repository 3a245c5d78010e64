"""A loss is its terms, weight times the cross-entropy with the target, for every method that says what they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor

from losses.cases import CLOSE, MIXED, by_entry, inputs, no, yes
from partly import losses, methods
from partly.errors import SettingError
from partly.losses import terms
from partly.methods.one_class import loss as one_class

WITH_TERMS = {name: info for name, info in methods.discover().items() if info.about.terms}


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
        weights, targets = info.about.terms(z, **settings)
        slow = [
            [w * (max(f, 0) - t * f + np.log1p(np.exp(-abs(f)))) for w, t, f in zip(*rows, strict=True)]
            for rows in zip(weights.tolist(), targets.tolist(), logits.tolist(), strict=True)
        ]
        np.testing.assert_allclose(info.make(logits, z, **settings), slow, rtol=1e-6, atol=1e-9)


def both(target: float) -> Callable[[float], float]:
    """Cross-entropy of a logit with a target between no and yes."""
    return lambda logit: target * yes(logit) + (1 - target) * no(logit)


@given(inputs())
def test_derived_losses_against_loops(case: tuple[Tensor, Tensor]) -> None:
    """Every entry by itself: the loss of a yes, of a no and of an unknown entry, without weights and targets."""
    logits, z = case
    share = 1 / max(z.shape[1] - 1, 1)
    for entries, *by_value in (
        (losses.assume_negative(logits, z), yes, no, no),
        (losses.down_weight(logits, z, weight=0.3), yes, no, lambda logit: 0.3 * no(logit)),
        (losses.weak_assume_negative(logits, z), yes, no, lambda logit: share * no(logit)),
        (losses.label_smoothing(logits, z, smoothing=0.2), both(0.8), both(0.2), both(0.2)),
        (losses.negative_label_smoothing(logits, z, smoothing=0.2), yes, no, both(0.2)),
        (one_class(logits, z, weight=0.3), yes, no, lambda logit: 0.3 * yes(logit)),
    ):
        np.testing.assert_allclose(entries, by_entry(logits, z, *by_value), **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["assume_negative", "bce", "down_weight", "label_smoothing"])
def test_terms_and_entries_have_the_precision_of_the_logits(name: str, dtype: torch.dtype) -> None:
    logits = torch.zeros(MIXED.shape, dtype=dtype)
    assert {part.dtype for part in getattr(terms, name)(MIXED, dtype=dtype)} == {dtype}
    assert getattr(losses, name)(logits, MIXED).dtype == dtype


@pytest.mark.parametrize("of", [terms.down_weight, terms.label_smoothing, terms.negative_label_smoothing])
def test_settings_out_of_range_are_refused_where_a_head_is_solved_too(of: Callable[..., object]) -> None:
    setting = "weight" if of is terms.down_weight else "smoothing"
    with pytest.raises(SettingError, match=setting):
        of(MIXED, **{setting: -0.1})
