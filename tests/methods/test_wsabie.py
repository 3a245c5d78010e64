"""wsabie: the sampled loss against a loop, the two parts of the epochs, and the small space."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from conformance.bench import make_clock, make_pool, make_task, x_of
from methods.ranking import LATE, random_case
from partly import losses
from partly.errors import SettingError
from partly.losses.ranking import positives_and_negatives
from partly.methods.wsabie import Wsabie, warp


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(7)


def slow_warp(logits: Tensor, z: Tensor, margin: float, draws: Tensor) -> list[float]:
    """One yes at a time, one draw at a time; `draws` [yes, trials] are the numbers from which no's are picked."""
    found, number = [], 0
    for s, row in zip(logits.tolist(), z.tolist(), strict=True):
        yes, no = ([j for j, said in enumerate(row) if said == sign] for sign in (1, -1))
        total = 0.0
        for p in yes if no else []:
            for trial, draw in enumerate(draws[number].tolist(), 1):
                n = no[int(draw * len(no))]
                if margin - s[p] + s[n] > 0:
                    total += sum(1 / k for k in range(1, len(no) // trial + 1)) * (margin - s[p] + s[n])
                    break
            number += 1
        found.append(total / max(len(yes), 1))
    return found


@pytest.mark.parametrize(("margin", "trials"), [(1.0, 8), (0.0, 3), (5.0, 1)])
def test_warp_against_a_loop(margin: float, trials: int) -> None:
    logits, z = random_case()
    z[1] = z[1].abs()  # only yes
    z[2] = -z[2].abs()  # only no
    pairs = int(((z == 1) & (z == -1).any(dim=1, keepdim=True)).sum())
    draws = torch.rand(pairs, trials, generator=generator())
    found = warp(logits, z == 1, z == -1, margin, trials, generator())
    assert found[1] == found[2] == 0 < found.sum()
    np.testing.assert_allclose(found, slow_warp(logits, z, margin, draws), rtol=1e-6)


def test_the_harder_a_rival_is_to_find_the_less_it_weighs() -> None:
    """One of 50 no's violates the margin: the mean over many draws is that over the geometric distribution."""
    logits = torch.full((4000, 51), -9.0, dtype=torch.float64)
    logits[:, :2] = torch.tensor([0.0, 0.5])
    yes = torch.arange(51).expand(logits.shape) == 0
    found = warp(logits, yes, ~yes, 1.0, 51, generator()).mean().item()
    chance = [0.02 * 0.98 ** (t - 1) for t in range(1, 52)]
    expected = sum(p * sum(1 / k for k in range(1, 50 // t + 1)) for t, p in enumerate(chance, 1)) * 1.5
    assert found == pytest.approx(expected, rel=0.1)


def test_warp_draws_no_unknown_and_its_gradient_is_that_of_the_value() -> None:
    logits, z = random_case()
    hidden = torch.where(z == 0, 1e4, logits)
    one, other = (warp(s, z == 1, z == -1, 1.0, 8, generator()) for s in (logits, hidden))
    assert torch.equal(one, other)
    assert torch.autograd.gradcheck(
        lambda s: warp(s, z == 1, z == -1, 1.0, 8, generator()), logits.clone().requires_grad_()
    )


def test_label_vectors_stay_within_their_norm() -> None:
    pool = make_pool()
    made = Wsabie(make_task(pool, lr=0.5), max_norm=0.7, warmup=0.0)
    made.update(pool.take(torch.arange(8)), LATE)
    norms = made.network.head.weight.norm(dim=1)
    assert (norms <= 0.7 + 1e-6).all()
    assert (norms > 0.69).any()


def test_logits_are_products_in_a_small_space() -> None:
    pool = make_pool()
    x = x_of(pool.items)
    made = Wsabie(make_task(pool), size=2).eval()
    assert torch.linalg.matrix_rank(made(x)) == 2
    places = made.network.features(x)
    torch.testing.assert_close(made(x), places @ made.network.head.weight.T)
    with pytest.raises(SettingError, match="size = 0"):
        Wsabie(make_task(pool), size=0)


@pytest.mark.parametrize("unknown_as_no", [False, True])
def test_first_logistic_then_ranks(unknown_as_no: bool) -> None:
    pool = make_pool()
    batch = pool.take(torch.arange(8))
    for clock in (make_clock(pool), LATE):
        made = Wsabie(make_task(pool), unknown_as_no=unknown_as_no).eval()
        logits = made(batch.x)
        entries = losses.bce(logits, batch.z)
        if clock is LATE:
            entries = warp(logits, *positives_and_negatives(batch.z, unknown_as_no), 1.0, 100, clock.generator("warp"))
        assert made.update(batch, clock)["loss"] == pytest.approx(entries.mean().item(), rel=1e-6)
