"""A method that is a loss: one network, trained by it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from partly.clock import Clock
from partly.method.base import Method
from partly.method.task import Task
from partly.pool import Batch


class LossMethod(Method):
    """One network trained with a loss function; what a file in `methods/` with only a `loss` becomes.

    The function takes (logits, z), or (logits, z, clock) where it changes with the epochs, then its settings. `phase`,
    where the file has phases, is its `settled(clock, *, settings...)`.
    """

    def __init__(
        self,
        task: Task,
        loss: Callable[..., Tensor],
        settings: dict[str, Any],
        phase: Callable[..., bool] | None = None,
    ) -> None:
        super().__init__(task)
        self.network = task.network()
        self.optimiser = task.optimiser(self.network.parameters())
        self.loss, self.settings, self.phase = loss, settings, phase
        self.timed = "clock" in inspect.signature(loss).parameters

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        given = (self.network(batch.x, batch.z), batch.z, *((clock,) if self.timed else ()))
        loss = batch.weighed(self.loss(*given, **self.settings)).mean()
        penalty = self.penalty()
        loss = loss if penalty is None else loss + penalty
        self.step(loss, clock, self.optimiser)
        return {"loss": loss.item()}

    def weighs(self) -> str:
        """By what the loss gives of one item, at the beginning and at the end: a value for each entry, or one for the
        item."""
        given = (torch.zeros(1, self.task.labels), torch.ones(1, self.task.labels, dtype=torch.int8))
        clocks = [(Clock(0, epochs=1, epoch=epoch),) if self.timed else () for epoch in (0, 1)]
        fewest = min(self.loss(*given, *clock, **self.settings).ndim for clock in clocks)
        return {2: "entries", 1: "items"}.get(fewest, "")

    def settled(self, clock: Clock) -> bool:
        return self.phase is None or self.phase(clock, **self.settings)

    def penalty(self) -> Tensor | None:
        """What a subclass adds to the loss of every batch."""
        return None
