"""Maps become vectors, against loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from partly.networks.pooling import pool, pooled_width

MAPS = torch.randn(2, 3, 4, 5)


@pytest.mark.parametrize("how", ["gap", "gmp", "weldon", "gap+gmp"])
def test_by_loops(how: Any) -> None:
    expected = []
    for item in MAPS.tolist():
        flat = [sorted(value for row in channel for value in row) for channel in item]
        mean, most = [sum(values) / 20 for values in flat], [values[-1] for values in flat]
        both = [sum(values[-3:]) / 6 + sum(values[:2]) / 4 for values in flat]
        expected.append({"gap": mean, "gmp": most, "weldon": both, "gap+gmp": mean + most}[how])
    found = pool(MAPS, how, k_max=3, k_min=2)
    torch.testing.assert_close(found, torch.tensor(expected))
    assert found.shape[1] == pooled_width(3, how)


def test_a_tenth_of_the_places_unless_said_otherwise() -> None:
    torch.testing.assert_close(pool(MAPS, "weldon"), pool(MAPS, "weldon", 2, 2))
