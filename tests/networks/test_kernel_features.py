"""Fixed non-linear features: ranks, kernels and distances, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm, rankdata

from partly.networks.kernel import (
    CLIP,
    NORMAL_CLIP,
    NORMAL_RANGE,
    QUANTILES,
    Clip,
    NormalScores,
    Nystroem,
    Rescale,
    head,
)


def normal_by_hand(column: np.ndarray) -> np.ndarray:
    """The place of each value among all (the mean one of those that are equal), as a normal variable, standardised."""
    place = (rankdata(column, "average") - 1) / (len(column) - 1)
    scores = np.clip(norm.ppf(np.clip(place, 1e-6, 1 - 1e-6)), -NORMAL_CLIP, NORMAL_CLIP)
    if scores.std() < 1e-6:
        return np.zeros_like(scores)
    return np.clip((scores - scores.mean()) / scores.std(), -NORMAL_RANGE, NORMAL_RANGE)


def rows(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


# -------------------------------------------------------------------- normal scores


def test_normal_scores_by_rank() -> None:
    x = rows(60, 4)
    found = NormalScores(x)(x).numpy()
    for j in range(4):
        np.testing.assert_allclose(found[:, j], normal_by_hand(x[:, j].numpy()), atol=1e-3)


@given(arrays(np.float32, st.integers(2, 40), elements=st.integers(-3, 3).map(float)))
def test_values_that_are_shared_stand_in_the_middle_of_their_places(column: np.ndarray) -> None:
    x = torch.from_numpy(column[:, None])
    np.testing.assert_allclose(NormalScores(x)(x).numpy()[:, 0], normal_by_hand(column), atol=2e-3)


def test_up_and_down_are_alike() -> None:
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 3, (50, 3)).astype(np.float32))
    np.testing.assert_allclose(NormalScores(-x)(-x), -NormalScores(x)(x), atol=2e-3)


def test_a_monotone_change_of_a_feature_alters_nothing() -> None:
    x = rows(100, 3)
    changed = torch.stack([x[:, 0].exp(), x[:, 1] ** 3, 1000 * x[:, 2] - 7], dim=1)
    np.testing.assert_allclose(NormalScores(changed)(changed), NormalScores(x)(x), atol=1e-4)


def test_new_values_stand_between_their_neighbours_and_never_outside() -> None:
    x = torch.arange(11, dtype=torch.float32)[:, None]
    scores = NormalScores(x)
    known = scores(x)[:, 0]
    half = scores(x[:-1] + 0.5)[:, 0]
    assert ((half > known[:-1]) & (half < known[1:])).all()
    for far in (1e3, 1e30):
        assert scores(torch.tensor([[-far], [far]]))[:, 0].tolist() == [known[0], known[-1]]


def test_of_many_items_quantiles_are_enough() -> None:
    x = rows(5000, 2)
    scores = NormalScores(x)
    assert scores.marks.shape == (2, QUANTILES)
    found = scores(x).numpy()
    inner = np.abs(found) < 2
    expected = np.stack([normal_by_hand(column) for column in x.numpy().T], axis=1)
    np.testing.assert_allclose(found[inner], expected[inner], atol=0.03)


def test_constant_features_and_few_items_say_nothing() -> None:
    x = rows(20, 3)
    x[:, 1] = 7.5
    found = NormalScores(x)(x)
    assert not found[:, 1].any()
    assert found[:, 0].any()
    one = NormalScores(x[:1])
    assert not one(x[:1]).any()
    assert not one(x).any()


# -------------------------------------------------------------------- scales


def test_clipped_and_rescaled_by_hand() -> None:
    assert Clip()(torch.tensor([[-100.0, -8.0, 3.0, 8.5]])).tolist() == [[-CLIP, -8.0, 3.0, CLIP]]
    rescaled = Rescale(torch.tensor([3.0, 4.0, 0.0]))
    common = np.sqrt((9 + 16) / 3)
    torch.testing.assert_close(rescaled(torch.ones(2, 3)), torch.tensor([[3 / common, 4 / common, 0]] * 2).float())
    assert not Rescale(torch.zeros(2))(torch.ones(1, 2)).any()
    assert torch.isfinite(Rescale(torch.tensor([1e30, 1e-30]))(torch.ones(1, 2))).all()


# -------------------------------------------------------------------- kernels


def kernel_by_hand(x: np.ndarray, y: np.ndarray, landmarks: np.ndarray, power: int, manhattan: bool) -> np.ndarray:
    def distance(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.abs(a - b).sum() if manhattan else np.sqrt(((a - b) ** 2).sum()) ** power)

    apart = sorted(distance(a, b) for i, a in enumerate(landmarks) for b in landmarks[:i])
    median = apart[(len(apart) - 1) // 2]
    return np.array([[np.exp(-distance(a, b) / median) for b in y] for a in x])


@pytest.mark.parametrize(("power", "norm_"), [(2, 2), (1, 2), (1, 1)])
def test_with_as_many_axes_as_landmarks_products_are_the_kernel(power: int, norm_: int) -> None:
    """Between landmarks, and of any item with a landmark: but for a common factor, and off a mean."""
    landmarks, others = rows(25, 4), rows(9, 4, seed=1)
    kernel = Nystroem(landmarks, 25, power, norm_)
    at, elsewhere = (kernel(x).double().numpy() + kernel.mean.double().numpy() for x in (landmarks, others))
    factor = (at @ at.T).trace() / 25
    a, b = landmarks.double().numpy(), others.double().numpy()
    np.testing.assert_allclose(at @ at.T / factor, kernel_by_hand(a, a, a, power, norm_ == 1), atol=2e-3)
    np.testing.assert_allclose(elsewhere @ at.T / factor, kernel_by_hand(b, a, a, power, norm_ == 1), atol=5e-3)


def test_features_are_centred_and_of_size_one() -> None:
    kernel = Nystroem(rows(40, 3), 40)
    features = kernel(kernel.landmarks)
    kept = int((kernel.axes != 0).any(dim=0).sum())
    assert features.mean(dim=0).abs().max() < 1e-2
    assert (features**2).sum(dim=1).mean().item() == pytest.approx(kept, rel=1e-2)


def test_few_axes_are_the_longest_ones() -> None:
    """The kernel matrix is rebuilt as well as any matrix of that rank can."""
    landmarks = rows(30, 4)
    a = landmarks.double().numpy()
    matrix = kernel_by_hand(a, a, a, 2, False)
    values, vectors = np.linalg.eigh(matrix)
    best = (vectors[:, -5:] * values[-5:]) @ vectors[:, -5:].T
    kernel = Nystroem(landmarks, 5)
    assert kernel(landmarks).shape == (30, 5)
    found = kernel(landmarks).double().numpy() + kernel.mean.double().numpy()
    product = found @ found.T
    np.testing.assert_allclose(product * (best.trace() / product.trace()), best, atol=5e-3)


def test_features_do_not_depend_on_the_company() -> None:
    landmarks, x = rows(20, 3), rows(600, 3, seed=2)  # more than are worked out at a time
    for kernel in (Nystroem(landmarks, 10), Nystroem(landmarks, 10, power=1, norm=1)):
        alone = torch.cat([kernel(part) for part in x.split(7)])
        torch.testing.assert_close(kernel(x), alone, rtol=1e-4, atol=1e-4)


def test_more_axes_than_landmarks_are_not_there() -> None:
    assert Nystroem(rows(5, 3), 600)(rows(4, 3)).shape == (4, 5)


@pytest.mark.parametrize(("power", "norm_"), [(2, 2), (1, 2), (1, 1)])
def test_awkward_landmarks_give_finite_features(power: int, norm_: int) -> None:
    constant = rows(12, 3)
    constant[:, 1] = 4.0
    cases = {
        "a constant feature": constant,
        "every item twice": rows(8, 3).repeat(2, 1),
        "most items the same": torch.cat([torch.ones(20, 3), rows(2, 3)]),
        "all items the same": torch.ones(6, 3),
        "one item": rows(1, 3),
        "two items": rows(2, 3),
        "nothing": torch.zeros(4, 3),
    }
    for case, landmarks in cases.items():
        kernel = Nystroem(landmarks, 10, power, norm_)
        for x in (landmarks, rows(5, 3, seed=3), torch.full((1, 3), 1e4)):
            assert torch.isfinite(kernel(x)).all(), case


def test_items_that_come_twice_count_as_one_direction() -> None:
    once, twice = Nystroem(rows(8, 3), 8), Nystroem(rows(8, 3).repeat(2, 1), 16)
    kept = [(kernel.axes.abs() > 0).any(dim=0).sum().item() for kernel in (once, twice)]
    assert kept == [8, 8]
    assert not twice(rows(5, 3, seed=1))[:, 8:].any()


def test_a_kernel_without_landmarks_is_zero_and_loads() -> None:
    kernel, other = (Nystroem(landmarks, 10) for landmarks in (rows(20, 3), torch.zeros(20, 3)))
    kernel.drop()
    other.load_state_dict(kernel.state_dict())
    for each in (kernel, other):
        assert each(rows(5, 3)).shape == (5, 10)
        assert not each(rows(5, 3)).any()
        assert not each.landmarks.numel() + each.axes.numel()


def test_the_saved_distance_counts() -> None:
    """With many items the Laplace kernel is Euclidean; a run of a version that did not know this is not."""
    landmarks, x = rows(20, 3), rows(5, 3, seed=1)
    euclidean, absolute = (Nystroem(landmarks, 10, power=1, norm=norm) for norm in (2, 1))
    assert (euclidean(x) != absolute(x)).any()
    for saved in (euclidean, absolute):
        loaded = Nystroem(torch.zeros(20, 3), 10, power=1, norm=2)
        loaded.load_state_dict(saved.state_dict())
        torch.testing.assert_close(loaded(x), saved(x), rtol=0, atol=0)


@pytest.mark.parametrize(("items", "norm_"), [(4999, 1), (5000, 2)])
def test_many_items_have_euclidean_distances(items: int, norm_: int) -> None:
    x = rows(items, 3)
    members, _ = head(3, 2, lambda count: x[:count], torch.ones(3), landmarks=10, axes=5)
    assert members.parts["laplace"][1].norm == norm_


@pytest.mark.parametrize("power_and_norm", [(2, 2), (1, 2), (1, 1)])
def test_features_are_computed_on_the_device_of_the_items(power_and_norm: tuple[int, int]) -> None:
    """No tensor of the kernel stays on the CPU, or becomes float64: the device `meta` refuses to mix."""
    normal = NormalScores(rows(50, 3))
    features = torch.nn.Sequential(Clip(), Rescale(torch.ones(3)), normal, Nystroem(rows(20, 3), 10, *power_and_norm))
    found = features.to("meta")(torch.empty(4, 3, device="meta"))
    assert (found.device.type, found.dtype, found.shape) == ("meta", torch.float32, (4, 10))
