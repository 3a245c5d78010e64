"""Methods that train one network with a loss function."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from partly.clock import Clock
from partly.errors import Diverged
from partly.method.base import Method
from partly.method.task import Task
from partly.pool import Batch


class LossMethod(Method):
    """One network trained with a loss function: the method of a file that defines only `loss`.

    Parameters
    ----------
    task : Task
        Sizes, networks and optimizers.
    loss : callable
        `loss(logits, z, *, settings...)`, or with `clock` as third argument if it follows a schedule.
    settings : dict
        Settings of the loss.
    phase : callable, optional
        `About.may_be_best` of a loss with phases.
    """

    def __init__(
        self,
        task: Task,
        loss: Callable[..., Tensor],
        settings: dict[str, Any],
        phase: Callable[..., bool] | None = None,
    ) -> None:
        super().__init__(task, settings)
        self.network = task.network()
        self.optimizer = task.make_optimizer(self.network.parameters())
        self.loss, self.settings, self.phase = loss, settings, phase
        self.timed = "clock" in inspect.signature(loss).parameters

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x, batch.z)
        logits.retain_grad()
        loss = batch.apply_weights(
            self.loss(logits, batch.z, *((clock,) if self.timed else ()), **self.settings)
        ).mean()
        penalty = self.penalty()
        loss = loss if penalty is None else loss + penalty
        self.step(loss, clock, self.optimizer)
        value = loss.item()
        if not math.isfinite(value) or (logits.grad is not None and not logits.grad.isfinite().all()):
            self._refuse_formula(value, logits.detach(), clock)
        return {"loss": value}

    def _refuse_formula(self, value: float, logits: Tensor, clock: Clock) -> None:
        """Raise for a loss that is not finite at finite logits. The loop reports other divergence."""
        if not logits.isfinite().all():
            return
        code = getattr(inspect.unwrap(self.loss), "__code__", None)
        place = "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
        name = self.loss.__module__.rpartition(".")[2].replace("_", "-")
        problem = f"The loss of {name}{place} is {value}" if not math.isfinite(value) else ""
        problem = problem or f"The gradient of the loss of {name}{place} is not finite"
        raise Diverged(
            f"{problem} in epoch {clock.epoch + 1}, step {clock.step + 1}, though the logits are finite, from "
            f"{logits.min():.3g} to {logits.max():.3g}. Look at its formula for a logarithm or a division of 0; "
            "torch.where does not keep NaN out of gradients. If the logits are far from 0, lower lr."
        )

    def sample_weight_support(self) -> str:
        """Derive it from the shape of the loss for one item, at the start and at the end."""
        example = (torch.zeros(1, self.task.labels), torch.ones(1, self.task.labels, dtype=torch.int8))
        clocks = [(Clock(0, epochs=1, epoch=epoch),) if self.timed else () for epoch in (0, 1)]
        fewest = min(self.loss(*example, *clock, **self.settings).ndim for clock in clocks)
        return {2: "entries", 1: "items"}.get(fewest, "")

    def may_be_best(self, clock: Clock) -> bool:
        return self.phase is None or self.phase(clock, **self.settings)

    def penalty(self) -> Tensor | None:
        """Return a term that is added to the loss of every batch, or None."""
        return None
