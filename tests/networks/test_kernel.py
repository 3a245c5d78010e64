"""The head of linear and kernel features side by side."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from partly import networks
from partly.errors import SettingError
from partly.items import as_items, to_absent
from partly.networks import kernel
from partly.networks.kernel import Nystroem
from partly.networks.layers import FeatureUnion

NAMES = ["linear", "linear_raw", "gaussian", "gaussian_raw", "laplace"]


def features(count: int = 40) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(count, 3)) * [1, 10, 0.1] + [0, 50, 1]).astype(np.float32)


def members(network: networks.Network) -> FeatureUnion:
    return network.get_submodule("features.1")


def test_the_kinds_lie_side_by_side() -> None:
    x = features()
    network = networks.build(as_items(x), 4, "kernel", {"axes": 12, "landmarks": 30})
    parts = members(network)
    assert list(parts.parts) == list(parts.spans) == NAMES
    assert [span.stop - span.start for span in parts.spans.values()] == [3, 3, 12, 12, 12]
    assert network.head.in_features == parts.width == 42
    found = network.features(torch.from_numpy(x))
    standardized_x = network.features[0](torch.from_numpy(x))
    for name, span in parts.spans.items():
        torch.testing.assert_close(found[:, span], parts.parts[name](standardized_x))


def test_the_linear_ones_by_hand() -> None:
    """Standardised; and off their mean with the scales that they came with, but for a common factor."""
    x = features()
    network = networks.build(as_items(x), 4, "kernel")
    found, spans = network.features(torch.from_numpy(x)).numpy(), members(network).spans
    off, scale = x - x.mean(axis=0), x.std(axis=0)
    np.testing.assert_allclose(found[:, spans["linear"]], off / scale, atol=1e-3)
    np.testing.assert_allclose(found[:, spans["linear_raw"]], off / np.sqrt((scale**2).mean()), atol=1e-3)


def test_raw_scales_say_which_features_are_near() -> None:
    """For the raw Gaussian kernel the second feature decides, for the plain one all do."""
    x = features()
    network = networks.build(as_items(x), 4, "kernel")
    moved = torch.from_numpy(x).clone()
    moved[:, 2] += 0.1  # as far as the third feature is wide, and nothing beside the second
    change = (network.features(moved) - network.features(torch.from_numpy(x))).abs()
    spans = members(network).spans
    assert change[:, spans["gaussian"]].mean() > 20 * change[:, spans["gaussian_raw"]].mean()


def test_landmarks_are_training_items() -> None:
    x = features()
    network = networks.build(as_items(x), 4, "kernel", {"landmarks": 10})
    landmarks = members(network).parts["gaussian"][1].landmarks
    standardized_x = network.features[0](torch.from_numpy(x))
    assert len(landmarks) == 10
    assert ((landmarks[:, None] - standardized_x).abs().sum(dim=2).min(dim=1).values < 1e-5).all()
    assert len({tuple(row) for row in landmarks.tolist()}) == 10


@pytest.mark.parametrize(("inputs", "norm"), [(kernel.MAX_L1_FEATURES, 1), (kernel.MAX_L1_FEATURES + 1, 2)])
def test_of_very_many_features_distances_are_euclidean(inputs: int, norm: int) -> None:
    trunk, _ = kernel.head(inputs, 2, lambda count: torch.randn(min(count, 6), inputs), torch.ones(inputs))
    laplace = trunk.parts["laplace"][1]
    assert isinstance(laplace, Nystroem)
    assert (laplace.norm, laplace.power) == (norm, 1)


def test_no_more_examples_are_held_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def examples(count: int) -> torch.Tensor:
        asked.append(count)
        return torch.randn(count, 4)

    monkeypatch.setattr(kernel, "MAX_EXAMPLE_NUMBERS", 4 * 7)
    kernel.head(4, 2, examples, torch.ones(4))
    assert asked
    assert max(asked) == 7


def test_what_is_loaded_has_the_same_sizes_and_says_the_same() -> None:
    items, x = as_items(features()), torch.from_numpy(features())
    network = networks.build(items, 4, "kernel", {"axes": 9})
    again = networks.build(to_absent(items), 4, "kernel", {"axes": 9})
    shapes = {name: tensor.shape for name, tensor in network.state_dict().items()}
    assert {name: tensor.shape for name, tensor in again.state_dict().items()} == shapes
    again.load_state_dict(network.state_dict())
    assert torch.equal(again(x), network(x))


@pytest.mark.parametrize("setting", ["landmarks", "axes"])
def test_nothing_is_not_enough(setting: str) -> None:
    with pytest.raises(SettingError, match=setting):
        networks.build(as_items(features()), 4, "kernel", {setting: 0})
