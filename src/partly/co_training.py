"""Base of methods with a pair of networks that teach each other."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from partly import losses, selection
from partly.clock import Clock
from partly.method import Method, Task
from partly.pool import Batch

Predict = Literal["mean", "f", "g"]


class TwoNetworks(Method):
    """Networks f and g start from different weights and see the same batches; `predict` selects the one that predicts.

    A subclass defines `loss`.
    """

    def __init__(self, task: Task, predict: Predict) -> None:
        super().__init__(task)
        self.predict = predict
        self.f, self.g = task.network("f", sample=1), task.network("g", sample=-1)
        # Optimizers are elementwise, so one for both networks equals two.
        self.optimizer = task.make_optimizer([*self.f.parameters(), *self.g.parameters()])

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor | None:
        """Return the sum of both networks' losses from their logits; None if no item is selected."""
        raise NotImplementedError(f"{type(self).__name__} does not define loss.")

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = self.loss(self.f(batch.x, batch.z), self.g(batch.x, batch.z), batch.z, clock)
        if loss is None:
            return {"loss": 0.0}
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item() / 2}  # per network, comparable with other methods

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        """Return logits [B, L] of f, of g, or of the mean of their probabilities."""
        if self.predict == "mean":
            return mean_probability(self.f(x, z), self.g(x, z))
        logits: Tensor = (self.f if self.predict == "f" else self.g)(x, z)
        return logits


def mean_probability(one: Tensor, other: Tensor) -> Tensor:
    """Return the logit of the mean of two probabilities, from their logits: log p - log(1 - p) in log space."""
    yes = torch.logaddexp(F.logsigmoid(one), F.logsigmoid(other))
    no = torch.logaddexp(F.logsigmoid(-one), F.logsigmoid(-other))
    return yes - no


def mean_over_items(entries: Tensor, items: Tensor) -> Tensor | None:
    """Return the mean of entries [B, L] over the items of a mask [B]; None if it is empty."""
    return entries[items].mean() if items.any() else None


def co_teaching_loss(f: Tensor, g: Tensor, z: Tensor, keep: float, among: Tensor | None = None) -> Tensor | None:
    """Return the loss of co-teaching: each network learns from the share `keep` of items [B] that fits the other one
    best.

    Unknown entries count as negatives; the loss of an item is the mean over its labels. None if no item is left.
    """
    f_losses, g_losses = (losses.assume_negative(logits, z).mean(dim=1) for logits in (f, g))
    among = torch.ones_like(f_losses, dtype=torch.bool) if among is None else among
    for_f, for_g = (selection.small_loss(peer, among, keep) for peer in (g_losses, f_losses))
    return f_losses[for_f].mean() + g_losses[for_g].mean() if for_f.any() else None


def disagree(f: Tensor, g: Tensor) -> Tensor:
    """Return the mask of items for which the networks differ in at least one label at probability one half. [B]"""
    return ((f > 0) != (g > 0)).any(dim=1)


def share_to_keep(clock: Clock, forget: float, ramp: float) -> float:
    """Return the share of items to learn from, if the share `forget` is dropped in the end."""
    return 1 - forget * ramp_up(clock, ramp)


def ramp_up(clock: Clock, ramp: float) -> float:
    """Return 0 in the first epoch, rising linearly to 1 after the share `ramp` of all epochs."""
    end = ramp * clock.epochs
    return 1.0 if clock.epoch >= end else clock.epoch / end
