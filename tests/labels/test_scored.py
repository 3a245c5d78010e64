"""Scores beside labels: the pairs of each label, whatever the form and the blocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from partly import Labels
from partly.labels import matrix, scored


def case() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 5)), rng.choice([1, 0, -1], (7, 5)).astype(np.int8)


@pytest.mark.parametrize("block", [1, 10, matrix.BLOCK])
@pytest.mark.parametrize("sparse", [False, True])
def test_label_by_label(sparse: bool, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "BLOCK", block)
    s, z = case()
    z[:, 2] = 0
    labels = Labels.from_ternary(sp.csr_array(z) if sparse else z)
    known, rest = list(scored.iter_yes_no(s, labels.ternary())), list(scored.iter_yes_rest(s, labels))
    assert len(known) == len(rest) == 5
    for j in range(5):
        yes = sorted(s[i, j] for i in range(7) if z[i, j] == 1)
        assert sorted(known[j][0]) == sorted(rest[j][0]) == yes
        assert sorted(known[j][1]) == sorted(s[i, j] for i in range(7) if z[i, j] == -1)
        assert sorted(rest[j][1]) == sorted(s[i, j] for i in range(7) if z[i, j] != 1)


def test_auc_by_hand() -> None:
    assert scored.auc(np.array([3, 1]), np.array([2, 1, 0])) == (3 + 1.5) / 6
    assert scored.auc(np.array([np.inf]), np.array([-np.inf, np.inf])) == 0.75
    assert math.isnan(scored.auc(np.array([1.0]), np.array([])))
    assert math.isnan(scored.auc(np.array([]), np.array([1.0])))


@given(seed=st.integers(0, 10**6))
def test_auc_against_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    yes, scores = rng.random(20) < 0.3, rng.integers(0, 6, 20).astype(np.float32)
    if yes.any() and not yes.all():
        assert scored.auc(scores[yes], scores[~yes]) == pytest.approx(roc_auc_score(yes, scores))
    else:
        assert math.isnan(scored.auc(scores[yes], scores[~yes]))


def test_a_mean_is_over_what_is_defined() -> None:
    assert scored.mean(np.array([1, np.nan, 2])) == 1.5
    assert math.isnan(scored.mean(np.array([np.nan])))


@given(seed=st.integers(0, 10**6), size=st.integers(1, 9))
def test_precision_against_the_rest_needs_no_more_than_a_block(seed: int, size: int) -> None:
    """To the bit what sorting all scores gives."""
    rng = np.random.default_rng(seed)
    s, z = rng.integers(0, 6, (9, 4)).astype(np.float32) / 5, (rng.random((9, 4)) < rng.random()).astype(np.int8)
    only = Labels.from_positives(sp.csr_array(z))
    parts = [s[start : start + size] for start in range(0, 9, size)]
    found = scored.average_precision_against_rest(parts, scored.gather_known(scored.enumerate_rows(parts), only))
    wanted = [scored.average_precision(yes, no) for yes, no in scored.iter_yes_rest(s, only)]
    np.testing.assert_array_equal(found, wanted)


@given(seed=st.integers(0, 10**6), packed=st.booleans())
def test_rows_may_come_in_any_order(seed: int, packed: bool) -> None:
    rng = np.random.default_rng(seed)
    s, z = rng.random((8, 3), np.float32), rng.integers(-1, 2, (8, 3))
    labels = Labels.from_ternary(sp.csr_array(z) if packed else z)
    order = np.array_split(rng.permutation(8), 3)
    found = scored.gather_known(((rows, s[rows]) for rows in order), labels)
    wanted = np.where(z != 0, s, 0) if packed else s
    np.testing.assert_array_equal(found.toarray() if packed else found, wanted)
