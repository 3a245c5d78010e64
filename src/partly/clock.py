"""The only source of randomness: a pure function of (seed, epoch, step, purpose).

There is no random state to save: a run that resumes at (epoch, step) draws the same numbers as one that never stopped.
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

PREFETCH_STEPS = 16


def seed_for(*parts: int | str) -> int:
    """Hash any parts to a 63-bit seed that is the same on every machine."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True)
class Draw:
    """Random numbers of an item in an epoch, independent of the order and the process."""

    seed: int
    epoch: int

    def rng(self, item: str, purpose: str) -> np.random.Generator:
        return np.random.default_rng(seed_for(self.seed, self.epoch, purpose, item))


@dataclass
class Clock:
    """Position of a run in its schedule. Only the training loop advances it."""

    seed: int
    epochs: int = 1
    steps: int = 1  # of one epoch
    epoch: int = 0
    step: int = 0
    last: float = 1.0  # size of the last batch of an epoch relative to the others
    scores: list[float | None] = field(default_factory=list)  # validation scores by epoch

    def tick(self) -> None:
        self.step += 1

    def next_epoch(self) -> None:
        self.epoch, self.step = self.epoch + 1, 0

    @property
    def progress(self) -> float:
        """Completed share of the schedule."""
        return min(1.0, (self.epoch + self.step / self.steps) / self.epochs)

    # ---------------------------------------------------------------- gradient accumulation

    def group_batches(self, batches: int) -> Clock:
        """Return the clock that counts groups of `batches` batches as steps."""
        if batches == 1:
            return self
        return replace(self, steps=-(-self.steps // batches), step=self.step // batches)

    def ends_group(self, batches: int) -> bool:
        """Return whether the current batch is the last of its group; groups end with the epoch."""
        return (self.step + 1) % batches == 0 or self.step + 1 == self.steps

    def share_in_group(self, batches: int) -> float:
        """Return the share of the items of its group that the current batch holds."""
        first = self.step - self.step % batches
        sizes = [self.last if step == self.steps - 1 else 1.0 for step in range(first, first + batches)]
        return sizes[self.step - first] / sum(sizes[: self.steps - first])

    # ---------------------------------------------------------------- random numbers

    @property
    def draw(self) -> Draw:
        """Random numbers of items in this epoch."""
        return Draw(self.seed, self.epoch)

    def rng(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng(seed_for(self.seed, self.epoch, self.step, purpose))

    def seeds(self, purpose: str) -> Iterator[int]:
        """Yield a seed for each remaining step of the epoch, computed in blocks for speed."""
        for start in count(self.step, PREFETCH_STEPS):
            yield from [seed_for(self.seed, self.epoch, step, purpose) for step in range(start, start + PREFETCH_STEPS)]

    def epoch_rng(self, purpose: str) -> np.random.Generator:
        """Return a generator that is the same for all steps of an epoch, for example for the order of the items."""
        return np.random.default_rng(seed_for(self.seed, self.epoch, purpose))

    def generator(self, purpose: str) -> torch.Generator:
        import torch

        return torch.Generator().manual_seed(seed_for(self.seed, self.epoch, self.step, purpose))
