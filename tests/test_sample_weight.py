"""Weights of items and entries: what they mean, where they are kept, and who refuses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from partly import Classifier, Labels, PerLabel, losses
from partly.errors import CheckpointError, DataError, SettingError
from partly.items import as_items
from partly.pool import Pool
from partly.solvers.solved_readout import weights_and_targets

N, D, L = 60, 4, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)).astype(np.float32)
TRUTH = (X[:, :L] > 0).astype(float)
Y = np.where(RNG.random((N, L)) < 0.7, TRUTH, np.nan)
LIES = np.where(RNG.random((N, L)) < 0.4, 1 - TRUTH, TRUTH)  # 40 % of all entries are wrong
HONEST = (LIES == TRUTH).astype(float)
STEPS = {"head": "linear", "head_settings": {"solve": False}, "epochs": 12, "batch_size": 16, "lr": 0.1}
KINDS: dict[str, Callable[[], Any]] = {
    "steps": lambda: Classifier("bce", progress=False, **STEPS),
    "solved": lambda: Classifier("bce", head="linear", progress=False),
    "beside": lambda: Classifier("bce", head="mlp", head_settings={"hidden": 8}, epochs=3, progress=False),
    "per-label": lambda: Classifier("per-label", settings={"c": 1.0}, progress=False),
    "auto": lambda: Classifier(progress=False),
    "PerLabel": lambda: PerLabel(LogisticRegression(), progress=False),
}
QUICK = [kind for kind in KINDS if kind != "auto"]


def p_of(kind: str, y: Any, weight: Any = None) -> np.ndarray:
    return KINDS[kind]().fit(X, y, sample_weight=weight).predict_proba(X)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_know_better_undo_lies(kind: str) -> None:
    """With the weight 0 on what is wrong, the truth is found that is not found without."""
    blind, told = (((p_of(kind, LIES, weight) > 0.5) == TRUTH).mean() for weight in (None, HONEST))
    assert told > 0.9 > 0.85 > blind


@pytest.mark.parametrize("kind", QUICK)
def test_only_ratios_count_and_equal_weights_change_nothing(kind: str) -> None:
    plain, skewed = p_of(kind, Y), RNG.uniform(0.2, 3.0, N)
    assert (p_of(kind, Y, np.full(N, 0.3)) == plain).all()
    assert (p_of(kind, Y, pd.Series(np.ones(N))) == plain).all()
    once = p_of(kind, Y, skewed)
    assert np.abs(once - plain).max() > 1e-3
    np.testing.assert_allclose(p_of(kind, Y, skewed * 8), once, atol=1e-6)
    np.testing.assert_allclose(p_of(kind, Y, np.tile(skewed[:, None], L)), once, atol=1e-6)  # of entries, all the same


@pytest.mark.parametrize("kind", ["solved", "per-label", "PerLabel"])
def test_an_entry_of_weight_0_is_as_good_as_unknown(kind: str) -> None:
    hidden = RNG.random((N, L)) < 0.3
    unknown = p_of(kind, np.where(hidden, np.nan, Y))
    weighed = p_of(kind, Y, np.where(hidden, 0.0, 1.0))
    np.testing.assert_allclose(weighed, unknown, atol=1e-6)


def test_a_step_goes_along_the_weighted_mean() -> None:
    """The gradient of one batch, by a loop over entries."""
    labels, weights = Labels.from_nan(Y), RNG.uniform(0, 2, (N, L)).astype(np.float32)
    (batch,) = Pool(as_items(X), labels, N, weights=weights).in_order()
    logits = torch.zeros(N, L, requires_grad=True)
    batch.apply_weights(losses.bce(logits, batch.z)).mean().backward()
    for i in range(N):
        for j in range(L):
            wanted = 0.0 if np.isnan(Y[i, j]) else weights[i, j] * (0.5 - Y[i, j]) / (N * L)
            assert logits.grad[i, j].item() == pytest.approx(wanted, abs=1e-7)
    of_items = Pool(as_items(X), labels, N, weights=weights[:, :1])
    (batch,) = of_items.in_order()
    assert torch.equal(batch.apply_weights(torch.ones(N)), torch.from_numpy(weights[:, 0]))
    found, _ = weights_and_targets(of_items, lambda z: (torch.ones(z.shape), torch.ones(z.shape)), {})
    np.testing.assert_array_equal(found, np.tile(weights[:, 0], (L, 1)))


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.ones(N - 1), r"shape \[59\].*\[60\], or for each entry, \[60, 3\]"),
        (np.ones((N, 2)), r"shape \[60, 2\]"),
        (1.0, r"shape \[\]"),
        (np.where(np.arange(N) == 4, -1.0, 1.0), r"0 or more\n  item 4: -1.0"),
        (np.where(np.arange(N * L).reshape(N, L) == 4, np.nan, 1.0), r"item 1, label '1': nan"),
        (np.zeros(N), "all known entries have weight zero"),
        (np.where(np.isnan(Y), 1.0, 0.0), "all known entries have weight zero"),
        (["a"] * N, "should be numbers"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weight: Any, words: str) -> None:
    for kind in ("steps", "PerLabel"):
        with pytest.raises(DataError, match=words):
            KINDS[kind]().fit(X, Y, sample_weight=weight)


def test_who_cannot_weigh_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"sample_weight: role .* or take a method that weighs entries: auto"):
        Classifier("role", progress=False, run_dir=tmp_path / "run").fit(X, Y, sample_weight=np.ones(N))
    assert not (tmp_path / "run").exists()
    ranked = Classifier("lsep", progress=False, **STEPS)
    with pytest.raises(SettingError, match=r"lsep has one loss for all labels of an item.*\[N\]"):
        ranked.fit(X, Y, sample_weight=np.ones((N, L)))
    plain, skewed = (ranked.fit(X, Y, sample_weight=w).predict_proba(X) for w in (None, RNG.uniform(0, 2, N)))
    assert (plain != skewed).any()
    with pytest.raises(SettingError, match="KNeighborsClassifier takes no sample_weight"):
        PerLabel(KNeighborsClassifier(), progress=False).fit(X, Y, sample_weight=np.arange(N))


def test_a_folder_goes_on_with_the_same_weights_only(tmp_path: Path) -> None:
    weight = RNG.uniform(0, 2, N)
    for number, made in enumerate((Classifier("bce", **STEPS), PerLabel(ExtraTreesClassifier(5)))):
        made.set_params(progress=False, run_dir=tmp_path / str(number))
        first = made.fit(X, Y, sample_weight=weight).predict_proba(X)
        assert (made.fit(X, Y, sample_weight=weight).predict_proba(X) == first).all()
        with pytest.raises(CheckpointError, match=r"weights?_sha256"):
            made.fit(X, Y)


def test_folds_keep_the_weights_of_their_items() -> None:
    model = Classifier("bce", progress=False, folds=3, **STEPS)
    plain, told = (model.fit(X, LIES, sample_weight=w).out_of_fold_ for w in (None, HONEST))
    assert ((told > 0) == TRUTH).mean() > ((plain > 0) == TRUTH).mean()
