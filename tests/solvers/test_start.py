"""The solved start: the plain baseline for what is known, without a fold, and on either side of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from partly.engine import make_config, resolve
from partly.engine.fitting import fit
from partly.items import Items, as_items
from partly.labels import Labels
from partly.solvers.start import Baseline, can_start, make_solved_start
from plans import task_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 5)).astype(np.float32)
TRUTH = np.where(X @ RNG.normal(size=(5, 4)) + RNG.normal(size=(90, 4)) > 0, 1, -1).astype(np.int8)
SOME = np.where(RNG.random(TRUTH.shape) < 0.4, TRUTH, 0).astype(np.int8)
PARTLY, ONLY_YES = Labels.from_ternary(SOME), Labels.from_ternary(np.maximum(SOME, 0))
ITEMS: Items = as_items(X)


def baseline(labels: Labels, head: str = "kernel") -> Baseline:
    return Baseline(task_of(ITEMS, 4, head, labels))


@pytest.mark.parametrize("head", ["kernel", "linear"])
@pytest.mark.parametrize(("labels", "name"), [(PARTLY, "bce"), (ONLY_YES, "assume-negative")])
def test_it_is_the_plain_method_bit_for_bit(labels: Labels, name: str, head: str) -> None:
    solved = baseline(labels, head)
    assert solved.name == name
    plain = fit(resolve(make_config(name, head), (ITEMS, labels)))
    start = solved.start()
    assert torch.equal(start.weight, plain.method.network.head.weight)
    assert torch.equal(start.bias, plain.method.network.head.bias)
    assert np.array_equal(start.out_of_fold().numpy(), plain.out_of_fold)


@pytest.mark.parametrize("head", ["kernel", "linear"])
def test_without_a_fold_it_scores_the_fold_as_out_of_fold_scores_do(head: str) -> None:
    solved = baseline(PARTLY, head)
    for fold in range(solved.search_folds):
        start, rows = solved.start_without(fold), np.flatnonzero(solved.fold == fold)
        with torch.no_grad():
            logits = start.features(torch.from_numpy(X[rows])) @ start.weight.T + start.bias
        # Solved along a path there, and at once here: the same minimum up to the solver's tolerance.
        assert torch.allclose(logits, solved.out_of_fold()[rows], atol=0.05)


def test_a_fold_does_not_know_its_own_labels() -> None:
    other = SOME.copy()
    fold = baseline(PARTLY).fold
    rows = np.flatnonzero(fold == 1)
    other[rows] = -other[rows]
    one, two = (baseline(Labels.from_ternary(z)) for z in (SOME, other))
    two.method.load_state_dict(one.method.state_dict())  # the penalties and the blend, which all folds choose
    first, second = (solved.start_without(1) for solved in (one, two))
    # All folds are solved in one batch, and stop together: the same minima up to the solver's tolerance.
    for a, b in ((first.weight, second.weight), (first.contrast(), second.contrast())):
        assert torch.allclose(a, b, atol=0.02)
    assert torch.allclose(first.out_of_fold(), second.out_of_fold(), atol=0.05)
    assert not torch.allclose(one.start().weight, Baseline(two.task).start().weight, atol=0.1)
    assert first.out_of_fold().shape == (len(X) - len(rows), 4)


def test_the_contrast_is_not_zero_and_repeats() -> None:
    solved = baseline(ONLY_YES)
    contrast = solved.start().contrast()
    assert contrast.abs().max() > 0
    assert torch.equal(contrast, baseline(ONLY_YES).start().contrast())
    assert not solved.start().no_contrast().any()


def test_a_loaded_model_gets_a_start_without_weights() -> None:
    task = task_of(ITEMS, 4, "kernel")
    start = make_solved_start(task)
    assert start.baseline is None
    assert not start.weight.any()
    assert start.weight.shape == baseline(PARTLY).start().weight.shape


def test_features_that_fit_into_memory_can_start() -> None:
    assert can_start(task_of(ITEMS, 4, "gnn", optimizer="sgd"))
    assert not can_start(task_of(as_items(np.zeros((4, 16, 16, 3), np.uint8)), 4))
    assert not can_start(task_of(as_items(np.zeros((100_000, 1), np.float32)), 100_000))
