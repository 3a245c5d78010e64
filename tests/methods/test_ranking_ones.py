"""wsabie, fast0tag and lsep: the sampled loss against a loop, the two parts of the epochs, and the small space."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from conformance.bench import make_clock, make_pool, make_task
from partly import losses, training
from partly.clock import Clock
from partly.errors import DataError, SettingError
from partly.methods import lsep
from partly.methods.fast0tag import Fast0Tag
from partly.methods.wsabie import Wsabie, warp

LATE = Clock(0, epochs=4, steps=3, epoch=3)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(7)


def random_case(items: int = 6, labels: int = 8) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(4)
    logits = torch.from_numpy(rng.normal(scale=2, size=(items, labels)))
    return logits, torch.from_numpy(rng.choice([-1, 0, 1], size=(items, labels)).astype(np.int8))


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


@pytest.mark.parametrize("kind", [Wsabie, Fast0Tag])
def test_logits_are_products_in_a_small_space(kind: type[Wsabie] | type[Fast0Tag]) -> None:
    pool = make_pool()
    made = kind(make_task(pool), size=2).eval()
    assert torch.linalg.matrix_rank(made(pool.x)) == 2
    places = made.network.features(pool.x)
    torch.testing.assert_close(made(pool.x), places @ made.network.head.weight.T)
    with pytest.raises(SettingError, match="size = 0"):
        kind(make_task(pool), size=0)


def test_label_vectors_of_a_file_stay_as_they_are(tmp_path: Path) -> None:
    pool, path = make_pool(), tmp_path / "vectors.csv"
    given = {name: [float(i), -float(i)] for i, name in enumerate(["more", *reversed(pool.labels.names)])}
    path.write_text("item,a,b\n" + "".join(f"{n},{a},{b}\n" for n, (a, b) in given.items()), encoding="utf-8")
    task = make_task(pool, observed=pool.labels)
    made = Fast0Tag(task, size=2, vectors=str(path))
    before = made.network.features(pool.x)
    training.train(made, pool, make_clock(pool))
    assert made.network.head.weight.tolist() == [given[name] for name in pool.labels.names]
    assert not torch.equal(made.network.features(pool.x), before)
    loaded = Fast0Tag(make_task(pool), size=2, vectors="not there any more.csv")
    loaded.load_state(made.state())
    assert torch.equal(loaded.eval()(pool.x), made.eval()(pool.x))
    with pytest.raises(SettingError, match="vectors of 2 numbers for size = 300"):
        Fast0Tag(task, vectors=str(path))
    path.write_text("item,a,b\n0,1,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="4 of the 5 labels are not in it"):
        Fast0Tag(task, size=2, vectors=str(path))


@pytest.mark.parametrize("unknown_as_no", [False, True])
def test_first_logistic_then_ranks(unknown_as_no: bool) -> None:
    pool = make_pool()
    batch = pool.take(torch.arange(8))
    for clock, expected in ((make_clock(pool), losses.bce), (LATE, losses.rank_net)):
        made = Fast0Tag(make_task(pool), unknown_as_no=unknown_as_no).eval()
        given = {"unknown_as_no": unknown_as_no} if clock is LATE else {}
        value = expected(made(batch.x), batch.z, **given).mean().item()
        assert made.update(batch, clock)["loss"] == pytest.approx(value, rel=1e-6)
    logits, z = random_case()
    assert torch.equal(lsep.loss(logits, z, make_clock(pool)), losses.bce(logits, z))
    late = lsep.loss(logits, z, LATE, unknown_as_no=unknown_as_no)
    assert torch.equal(late, losses.lsep(logits, z, unknown_as_no=unknown_as_no))
