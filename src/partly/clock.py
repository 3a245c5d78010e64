"""The only source of randomness: a pure function of (seed, epoch, step, purpose).

Nothing here is a state that has to be saved: a run that starts again at (epoch, step) draws the
same numbers as one that never stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

AHEAD = 16  # steps


def seed_for(*parts: int | str) -> int:
    """A 63-bit seed from any parts; the same in every process and on every machine."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True)
class Draw:
    """Random numbers of an epoch that belong to an item: whoever asks, in whatever order and process, gets the same."""

    seed: int
    epoch: int

    def rng(self, item: str, purpose: str) -> np.random.Generator:
        return np.random.default_rng(seed_for(self.seed, self.epoch, purpose, item))


@dataclass
class Clock:
    """Where a run is. The loop ticks it; everybody else only reads."""

    seed: int
    epochs: int = 1
    steps: int = 1  # of one epoch
    epoch: int = 0
    step: int = 0
    last: float = 1.0  # how large the last batch of an epoch is, as a share of the others
    scores: list[float | None] = field(default_factory=list)  # of the validation part, after each epoch that has one

    def tick(self) -> None:
        self.step += 1

    def next_epoch(self) -> None:
        self.epoch, self.step = self.epoch + 1, 0

    @property
    def progress(self) -> float:
        """Share of the whole schedule that lies behind."""
        return min(1.0, (self.epoch + self.step / self.steps) / self.epochs)

    # ---------------------------------------------------------------- where several batches make one step of optimisers

    def grouped(self, batches: int) -> Clock:
        """The same time, counted in groups of so many batches."""
        if batches == 1:
            return self
        return replace(self, steps=-(-self.steps // batches), step=self.step // batches)

    def ends_group(self, batches: int) -> bool:
        """Whether the batch under way is the last of its group; no group goes on in another epoch."""
        return (self.step + 1) % batches == 0 or self.step + 1 == self.steps

    def share_in_group(self, batches: int) -> float:
        """Of all items of its group, how many are in the batch under way."""
        first = self.step - self.step % batches
        sizes = [self.last if step == self.steps - 1 else 1.0 for step in range(first, first + batches)]
        return sizes[self.step - first] / sum(sizes[: self.steps - first])

    # ---------------------------------------------------------------- random numbers

    @property
    def draw(self) -> Draw:
        """What is drawn for each item in this epoch."""
        return Draw(self.seed, self.epoch)

    def rng(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng(seed_for(self.seed, self.epoch, self.step, purpose))

    def seeds(self, purpose: str) -> Iterator[int]:
        """One for each step of the epoch from here on; some are worked out at once, since between steps, when nothing
        of this is in the cache, each would take five times as long."""
        for start in count(self.step, AHEAD):
            yield from [seed_for(self.seed, self.epoch, step, purpose) for step in range(start, start + AHEAD)]

    def epoch_rng(self, purpose: str) -> np.random.Generator:
        """The same for all steps of an epoch: the order of the items, for one."""
        return np.random.default_rng(seed_for(self.seed, self.epoch, purpose))

    def generator(self, purpose: str) -> torch.Generator:
        import torch

        return torch.Generator().manual_seed(seed_for(self.seed, self.epoch, self.step, purpose))
