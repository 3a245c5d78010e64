"""WELDON pooling on worked maps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from partly import networks
from partly.errors import SettingError
from partly.items import as_items
from partly.networks import weldon

MAP = torch.tensor([[4.0, -1.0, 0.0], [2.0, 8.0, -5.0]]).view(1, 1, 2, 3)


def test_a_share_of_a_worked_map() -> None:
    """Of 16 places 10 % are 1.6, so 2: 15^1.5 and 16^1.5, 1 and 2^1.5."""
    maps = torch.arange(1, 17, dtype=torch.float64).view(1, 1, 4, 4) ** 1.5
    expected = ((15**1.5 + 64) / 2 + (1 + 2**1.5) / 2) / 2
    assert weldon(maps, 0.1, 0.1).item() == pytest.approx(expected, rel=1e-12)
    assert expected == pytest.approx(31.4807943295, abs=1e-10)


@pytest.mark.parametrize(
    ("k_max", "k_min", "expected"),
    [
        (1, 1, (8 - 5) / 2),
        (2, 1, (6 - 5) / 2),
        (1, 3, (8 - 2) / 2),
        (2, 0, 6.0),
        (0.01, 0, 8.0),  # one at least
        (0.5, 0.34, (14 / 3 - 3) / 2),  # 3 and round(2.04)
        (6, 6, 8 / 6),
    ],
)
def test_counts_and_shares(k_max: float, k_min: float, expected: float) -> None:
    assert weldon(MAP, k_max, k_min).item() == pytest.approx(expected)


def test_every_map_by_itself() -> None:
    maps = torch.randn(2, 3, 4, 5)
    expected = [[np.sort(m.flatten())[-4:].mean() / 2 + np.sort(m.flatten())[:2].mean() / 2 for m in x] for x in maps]
    torch.testing.assert_close(weldon(maps, 4, 0.1), torch.tensor(np.array(expected)))


@pytest.mark.parametrize("k_min", [0, 0.2, 3])
def test_gradients(k_min: float) -> None:
    maps = torch.randn(2, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m: weldon(m, 0.3, k_min), (maps,))


@pytest.mark.parametrize("wrong", [(0, 1), (7, 1), (1, 7), (1.5, 1), (-0.1, 1), (1, float("nan"))])
def test_impossible_numbers_are_refused(wrong: tuple[float, float]) -> None:
    with pytest.raises(SettingError, match="k"):
        weldon(MAP, *wrong)


def test_the_head_makes_a_map_for_each_label_and_pools_it_last() -> None:
    items = as_items(np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), dtype=np.uint8))
    network = networks.build(items, 2, "weldon", {"k_max": 2, "k_min": 1}, "small-conv", {"widths": (4, 5)}).eval()
    x = items.take(slice(None))
    maps = network.features(x)
    assert maps.shape == (3, 5, 8, 8)
    maps, weight, bias = (t.detach() for t in (maps, network.head.maps.weight[:, :, 0, 0], network.head.maps.bias))
    for item in range(3):
        for label in range(2):
            places = sorted(float(weight[label] @ maps[item, :, i, j] + bias[label]) for i, j in np.ndindex(8, 8))
            expected = ((places[-1] + places[-2]) / 2 + places[0]) / 2
            assert network(x)[item, label].item() == pytest.approx(expected, abs=1e-5)


def test_without_maps_the_head_is_linear() -> None:
    network = networks.build(as_items(torch.randn(6, 7)), 5, "weldon").eval()
    features = network.features(torch.randn(4, 7))
    expected = features @ network.head.maps.weight[:, :, 0, 0].T + network.head.maps.bias
    torch.testing.assert_close(network.head(features), expected)
