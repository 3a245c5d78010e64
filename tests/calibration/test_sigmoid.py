"""A probability is a function of its logit: of nothing that stands beside it, and of no number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from scipy.special import expit

from partly.calibration.maps import SINGLE_THREAD_ENTRIES, sigmoid

LENGTHS = [
    *range(201),
    SINGLE_THREAD_ENTRIES - 1,
    SINGLE_THREAD_ENTRIES,
    SINGLE_THREAD_ENTRIES + 1,
    3 * SINGLE_THREAD_ENTRIES + 17,
]


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_a_probability_depends_on_nothing_beside_it(threads: int) -> None:
    rng = np.random.default_rng(threads)
    for length in LENGTHS:
        x = rng.normal(0, 4, length).astype(np.float32)
        order = rng.permutation(length)
        alone = [sigmoid(np.full(1, one))[0] for one in x[:200]]
        found = sigmoid(x)
        assert found[:200].tolist() == alone, length
        assert sigmoid(x[order]).tolist() == found[order].tolist(), length


def test_values_are_those_of_scipy_in_order_and_between_0_and_1() -> None:
    x = np.r_[-np.inf, np.linspace(-120, 120, 1_000_003), np.inf].astype(np.float32)
    found = sigmoid(x)
    np.testing.assert_allclose(found, expit(x.astype(np.float64)), rtol=3e-7, atol=1e-38)
    assert (np.diff(found) >= 0).all()
    assert (found[0], found[-1]) == (0, 1)


def test_shapes_and_orders_of_memory_are_kept_and_the_logits_left_alone() -> None:
    x = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    before, out = x.copy(), np.empty((7, 5), np.float32)
    assert sigmoid(x, out=out) is out
    np.testing.assert_array_equal(sigmoid(x.T), out.T)
    np.testing.assert_array_equal(x, before)
    assert sigmoid(np.empty((0, 5), np.float32)).shape == (0, 5)
