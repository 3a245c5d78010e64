"""The first layer against numpy in float64, and the shape that every network has."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import nn

from partly.items import Arrays, Items, as_items, is_items
from partly.networks import Network, Standardize

VALUES = st.floats(-1e4, 1e4, width=32)


def measured(x: np.ndarray | torch.Tensor | Items) -> Standardize:
    """The layer for these items; pictures come as [N, C, H, W] of any size."""
    if not is_items(x):
        x = np.asarray(x)
        x = Arrays(x.transpose(0, 2, 3, 1), "pictures") if x.ndim == 4 else as_items(x)
    return Standardize(x.statistics, x.shape)


def by_numpy(x: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Mean 0 and scale 1 by feature or by channel; a constant one becomes 0."""
    axes = (0, *range(2, x.ndim))
    mean = x.astype(np.float64).mean(axis=axes, keepdims=True)
    scale = x.astype(np.float64).std(axis=axes, keepdims=True)
    constant = scale <= 1e-6 * np.maximum(np.abs(mean), 1e-12)
    return np.where(constant, 0.0, (new - mean) / np.where(constant, 1.0, scale))


@given(arrays(np.float32, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=VALUES))
def test_features(x: np.ndarray) -> None:
    layer = measured(x)
    expected = by_numpy(x, x)
    # What float32 can hold of x - mean, in units of the scale.
    resolution = np.abs(x).max(axis=0) * 2.0**-22 * layer.inverse_scale.numpy()
    assert (np.abs(layer(torch.from_numpy(x)).numpy() - expected) <= 1e-5 + resolution).all()


@given(arrays(np.uint8, (3, 2, 4, 5)))
def test_pictures_by_channel(x: np.ndarray) -> None:
    out = measured(x)(torch.from_numpy(x))
    assert out.dtype == torch.float32
    np.testing.assert_allclose(out.numpy(), by_numpy(x, x), atol=1e-4)


def test_new_items_are_measured_by_the_old_ones() -> None:
    rng = np.random.default_rng(0)
    x, new = rng.normal(5, 3, (50, 4)).astype(np.float32), rng.normal(size=(7, 4)).astype(np.float32)
    np.testing.assert_allclose(measured(x)(torch.from_numpy(new)), by_numpy(x, new), atol=1e-5)


def test_worked_by_hand() -> None:
    layer = measured(torch.tensor([[1.0, 7.0], [3.0, 7.0]]))
    assert layer.mean.tolist() == [2, 7]
    assert layer.inverse_scale.tolist() == [1, 0]
    assert layer(torch.tensor([[5.0, 1e6]])).tolist() == [[3, 0]]


def test_a_constant_feature_is_0_even_where_rounding_makes_it_vary() -> None:
    x = torch.full((1000, 1), 0.1)
    x[0] = 0.1 + 1e-8
    assert measured(x)(x).abs().max() == 0


def test_a_large_offset_leaves_the_scale() -> None:
    x = 1e5 + torch.randn(500, 1, generator=torch.Generator().manual_seed(0))
    out = measured(x)(x)
    assert abs(out.mean()) < 0.02
    assert out.std() == pytest.approx(1, abs=0.01)


def test_many_parts_give_the_same_as_one() -> None:
    x = torch.randint(0, 256, (5, 1, 1024, 1025), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    layer = measured(x)  # parts of 3 and 2 pictures
    assert layer.mean.item() == pytest.approx(x.numpy().mean(dtype=np.float64), rel=1e-6)
    assert 1 / layer.inverse_scale.item() == pytest.approx(x.numpy().astype(np.float64).std(), rel=1e-6)


def test_of_sparse_items_what_is_0_stays_0() -> None:
    x = np.array([[0, 2, 0], [0, 0, 7], [0, 4, 0]], np.float32)
    layer = measured(as_items(sp.csr_array(x)))
    assert layer.mean.tolist() == [0, 0, 0]
    np.testing.assert_allclose(layer(torch.from_numpy(x)), x / np.where(x.any(axis=0), x.std(axis=0), 1), rtol=1e-6)


def test_a_constant_feature_of_sparse_items_is_0_too() -> None:
    """Also where rounding makes it vary, though its mean is not there to be compared with."""
    x = np.full((1000, 2), 0.1, np.float32)
    x[0, 1] = 0.1 + 1e-8
    layer = measured(as_items(sp.csr_array(x)))
    assert layer(torch.from_numpy(x)).abs().max() == 0


def test_mean_and_scale_are_saved_and_never_trained() -> None:
    layer = measured(torch.randn(5, 3))
    assert sorted(layer.state_dict()) == ["inverse_scale", "mean"]
    assert not list(layer.parameters())


def test_network_is_features_then_head() -> None:
    features, head = nn.Linear(3, 4), nn.Linear(4, 2)
    network = Network(features, head)
    x = torch.randn(5, 3)
    assert torch.equal(network.features(x), features(x))
    assert torch.equal(network(x), head(features(x)))
