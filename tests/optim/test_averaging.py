"""The average of weights against a slow loop."""

from __future__ import annotations

from contextlib import suppress

import torch
from torch import nn

from partly.optim.averaging import Average


def test_the_average_is_a_weighted_mean_of_all_steps() -> None:
    weight = nn.Parameter(torch.zeros(3))
    average, seen = Average({"weight": weight}, 0.8), []
    for _ in range(7):
        weight.data.add_(torch.randn(3, generator=torch.Generator().manual_seed(len(seen))))
        seen.append(weight.detach().clone().double())
        average.update()
        counts = [0.8 ** (len(seen) - 1 - step) for step in range(len(seen))]
        slow = sum(count * value for count, value in zip(counts, seen, strict=True)) / sum(counts)
        torch.testing.assert_close(average.values["weight"].double(), slow, rtol=1e-5, atol=1e-6)


def test_the_average_takes_the_place_of_the_weights_and_gives_it_back() -> None:
    weight = nn.Parameter(torch.ones(2))
    average = Average({"weight": weight}, 0.5)
    average.update()
    weight.data.fill_(4.0)
    average.update()  # (0.5 * 1 + 1 * 4) / 1.5 = 3
    with suppress(KeyError), average.swap():
        seen = weight.tolist()
        raise KeyError
    assert seen == [3.0, 3.0]
    assert weight.tolist() == [4.0, 4.0]
    average.apply()
    assert weight.tolist() == [3.0, 3.0]


def test_state_goes_in_and_out() -> None:
    weight = nn.Parameter(torch.ones(2, 3, 4, 4).contiguous(memory_format=torch.channels_last))
    average, again = (Average({"weight": weight}, 0.9) for _ in range(2))
    for value in (2.0, 5.0):
        weight.data.fill_(value)
        average.update()
    again.load({f"mine.{key}": value.clone() for key, value in average.state().items()}, "mine.")
    weight.data.fill_(7.0)
    average.update()
    again.update()
    assert torch.equal(again.values["weight"], average.values["weight"])
    assert again.values["weight"].stride() == weight.stride()
