"""Randomness is a function of (seed, epoch, step, purpose): the same everywhere, other for any other of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import islice

import pytest
import torch

from partly.clock import PREFETCH_STEPS, Clock, seed_for

DRAW = """
from partly.clock import Clock, seed_for
clock = Clock(3, epochs=5, steps=10, epoch=1, step=2)
print(seed_for(3, "order"), clock.rng("a").random(), clock.epoch_rng("a").random())
"""


def test_seed_is_the_start_of_a_sha256() -> None:
    expected = int(hashlib.sha256(b"int:7\x1fstr:order").hexdigest()[:16], 16) // 2
    assert seed_for(7, "order") == expected


def test_seeds_fit_every_generator() -> None:
    assert all(0 <= seed_for(i) < 2**63 for i in range(100))


def test_parts_do_not_run_together() -> None:
    parts = [("a", "bc"), ("ab", "c"), ("abc",), (1, 23), (12, 3), ("1", "23"), (123,), (-123,), ("123",), ()]
    assert len({seed_for(*part) for part in parts}) == len(parts)


def test_the_same_in_every_process() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", DRAW],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1234")
    ]
    assert runs[0] == runs[1]
    clock = Clock(3, epochs=5, steps=10, epoch=1, step=2)
    here = [seed_for(3, "order"), clock.rng("a").random(), clock.epoch_rng("a").random()]
    assert runs[0].split() == [str(value) for value in here]


def test_drawing_is_no_state() -> None:
    clock = Clock(0)
    assert clock.rng("a").random(5).tolist() == clock.rng("a").random(5).tolist()
    assert torch.equal(*(torch.rand(5, generator=clock.generator("a")) for _ in range(2)))


@pytest.mark.parametrize("other", [Clock(1), Clock(0, epoch=1), Clock(0, step=1)])
def test_seed_epoch_and_step_all_matter(other: Clock) -> None:
    clock = Clock(0)
    assert clock.rng("a").random() != other.rng("a").random()
    assert clock.generator("a").initial_seed() != other.generator("a").initial_seed()


def test_purposes_matter() -> None:
    clock = Clock(0)
    assert clock.rng("a").random() != clock.rng("b").random()
    assert clock.epoch_rng("a").random() != clock.epoch_rng("b").random()
    assert clock.epoch_rng("a").random() != clock.rng("a").random()


def test_the_rng_of_an_epoch_is_the_same_at_all_its_steps() -> None:
    first, later, next_epoch = Clock(0, epoch=2), Clock(0, epoch=2, step=7), Clock(0, epoch=3)
    assert first.epoch_rng("a").random() == later.epoch_rng("a").random() != next_epoch.epoch_rng("a").random()


def test_the_length_of_the_schedule_does_not_matter() -> None:
    assert Clock(0, epochs=1, steps=1).rng("a").random() == Clock(0, epochs=9, steps=9).rng("a").random()


def test_time_goes_on() -> None:
    clock = Clock(0, epochs=2, steps=4)
    seen = []
    for _ in range(2):
        for _ in range(4):
            seen.append(clock.progress)
            clock.tick()
        clock.next_epoch()
    assert seen == [0, 1 / 8, 2 / 8, 3 / 8, 4 / 8, 5 / 8, 6 / 8, 7 / 8]
    assert (clock.epoch, clock.step, clock.progress) == (2, 0, 1)
    clock.tick()
    assert clock.progress == 1


def test_seeds_go_on_from_where_the_clock_stands() -> None:
    clock = Clock(3, epoch=2, step=5)
    found = list(islice(clock.seeds("step"), 2 * PREFETCH_STEPS))
    assert found == [seed_for(3, 2, step, "step") for step in range(5, 5 + 2 * PREFETCH_STEPS)]
