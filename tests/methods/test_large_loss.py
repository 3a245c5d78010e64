"""large-loss: how the share grows, and labels that are turned for good: by item, once, and never a known no."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from conformance.bench import make_clock, make_pool, make_task, observed
from partly import losses, methods
from partly.clock import Clock
from partly.engine import training
from partly.methods.large_loss import LargeLoss
from partly.pool import Pool


def method(pool: Pool, **settings: Any) -> LargeLoss:
    made = LargeLoss(make_task(pool), **settings)
    made.begin_epoch(pool, make_clock(pool))
    return made.eval()


@pytest.mark.parametrize("scheme", ["reject", "correct"])
@pytest.mark.parametrize(("epoch", "share"), [(0, 0.0), (1, 0.05), (9, 0.45)])
def test_the_share_grows_with_the_epochs(scheme: str, epoch: int, share: float) -> None:
    pool = make_pool()
    made = method(pool, scheme=scheme, share=0.5)
    batch = pool.take(torch.arange(2, 10))
    expected = losses.large_loss(made(batch.x), batch.z, share=share, correct=scheme == "correct").mean().item()
    found = made.update(batch, Clock(0, epochs=10, steps=pool.steps, epoch=epoch))
    assert found["loss"] == pytest.approx(expected, rel=1e-6)
    assert made.beliefs() is None
    assert made.entries() == {}


def test_turned_for_good_by_item_and_only_what_is_unknown() -> None:
    pool = make_pool()
    z = torch.from_numpy(observed())
    made = method(pool, scheme="correct-permanently", share=0.5)
    assert torch.equal(made.held, z)
    index = torch.tensor([9, 2, 17, 4])
    clock = Clock(0, epochs=5, steps=pool.steps, epoch=1)
    unknown = z[index] == 0
    count = int(np.ceil(0.1 * int(unknown.sum())))
    logits = made(pool.take(index).x)
    limit = logits[unknown].sort(descending=True).values[count - 1]
    wanted = torch.where(unknown & (logits >= limit), 1, z[index])
    loss = losses.assume_negative(logits, wanted).mean().item()
    assert made.update(pool.take(index), clock)["loss"] == pytest.approx(loss, rel=1e-6)
    assert torch.equal(made.held[index], wanted.to(torch.int8))
    others = torch.ones(len(z), dtype=torch.bool)
    others[index] = False
    assert torch.equal(made.held[others], z[others])


def test_nothing_is_turned_in_the_first_epoch_and_nothing_twice() -> None:
    pool, counts = make_pool(), []
    z = torch.from_numpy(observed())
    made = LargeLoss(make_task(pool), scheme="correct-permanently", share=0.4)

    def watch(clock: Clock, logs: dict[str, float]) -> None:
        turned = made.held != z
        assert (z[turned] == 0).all()
        assert (made.held[turned] == 1).all()
        counts.append(int(turned.sum()))

    training.train(made, pool, make_clock(pool, epochs=4), callback=watch)
    assert counts[: pool.steps] == [0] * pool.steps
    assert all(b > a for a, b in zip(counts[pool.steps - 1 :], counts[pool.steps :], strict=False))
    assert torch.equal(made.beliefs(), (made.held == 1).half())


def test_known_no_stays_no_even_if_everything_unknown_is_turned() -> None:
    pool = make_pool()
    z = torch.from_numpy(observed())
    made = method(pool, scheme="correct-permanently", share=1.0)
    everyone = pool.take(torch.arange(len(pool)))
    for _ in range(2):
        made.update(everyone, Clock(0, epochs=1, steps=1, epoch=1))
    assert torch.equal(made.held, torch.where(z == 0, 1, z).to(torch.int8))


def test_memory_is_that_of_the_scheme() -> None:
    pool = make_pool()
    for scheme in ("reject", "correct", "correct-permanently"):
        settings = methods.find("large-loss").complete({"scheme": scheme})
        kept = sum(part.nbytes for part in method(pool, scheme=scheme).entries().values())
        assert LargeLoss.memory(make_task(pool), settings) == (kept, 0)
        assert bool(kept) is (scheme == "correct-permanently")
