"""An MLP next to a solved linear path, mixed by their held-out loss.

The path is solved in the first step. The network is not trained on one fold, on which each epoch chooses the mixing
share with the smallest calibrated loss. If the network overfits few known entries, the path gets all weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from partly.clock import Clock, seed_for
from partly.method import EntryState, Method, Task
from partly.networks import eval_mode
from partly.pool import Batch, Pool
from partly.solvers import folds
from partly.solvers.calibration import calibrate
from partly.solvers.solved_readout import Terms, weights_and_targets

BLEND_SHARES = tuple(part / 8 for part in range(9))
HELD_OUT_FOLD = 0  # the fold that the network is not trained on


class MlpWithLinearPath(Method):
    """A network and a linear path. The first step also solves the path."""

    entry_state = (EntryState("held_out"), EntryState("apart", torch.bool, per_label=False))
    weight: Tensor  # [L, D], of the path
    bias: Tensor  # [L]
    share: Tensor  # of the network
    strength: Tensor
    loss: Tensor  # held-out loss of the path
    apart: Tensor  # [N], whether the network does not see an item
    held_out: Tensor  # [N, L], out-of-fold logits of the path

    def __init__(self, task: Task, terms: Terms, settings: dict[str, Any]) -> None:
        super().__init__(task, settings)
        self.terms, self.settings = terms, settings
        self.network = task.network()
        self.register_buffer("weight", torch.zeros(task.labels, task.items.shape[0]))
        self.register_buffer("bias", torch.zeros(task.labels))
        self.optimizer = task.make_optimizer(self.network.parameters())
        for name in ("share", "strength", "loss"):
            self.register_buffer(name, torch.zeros(()))

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        path = F.linear(self.network.get_submodule("features.0")(x), self.weight, self.bias)
        return torch.lerp(path, self.network(x), self.share)

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        if clock.epoch == clock.step == 0 and self.task.config.lr:
            self._solve(pool)
        for batch in pool.batches(clock):
            loss = self.update(batch, clock)["loss"]
            if clock.step == pool.steps - 1:
                self._choose_share(pool)
            yield {"loss": loss, "path": self.loss.item(), "strength": self.strength.item(), "share": self.share.item()}

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        weights, targets = self._terms(batch)
        weights = torch.where(self.apart[batch.index][:, None], 0.0, weights)
        losses = F.binary_cross_entropy_with_logits(self.network(batch.x), targets, weights, reduction="sum")
        loss = losses / weights.sum().clamp(min=1.0)
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}

    def sample_weight_support(self) -> str:
        return "entries"

    def _terms(self, batch: Batch) -> tuple[Tensor, Tensor]:
        weights, targets = self.terms(batch.z, **self.settings)
        return batch.apply_weights(weights), targets

    @torch.no_grad()
    def _solve(self, pool: Pool) -> None:
        x = self.standardized_features(pool.items, pool.batch_size)
        weights, targets = weights_and_targets(pool, self.terms, self.settings)
        fold = folds.assign_folds(len(pool), seed_for(self.task.config.seed, "folds"))
        fit = folds.solve(x, weights, targets, fold)
        line = calibrate(fit.held_out, weights, targets)
        self.weight.copy_(torch.from_numpy(line.slope[:, None] * fit.w))
        self.bias.copy_(torch.from_numpy(line.bias))
        self.held_out.copy_(torch.from_numpy(line(fit.held_out).T))
        self.apart.copy_(torch.from_numpy(fold == HELD_OUT_FOLD))
        self.loss.fill_(fit.loss)
        self.strength.fill_(fit.c)

    @torch.no_grad()
    def _choose_share(self, pool: Pool) -> None:
        """Choose the share of the network on the held-out items."""
        rows = torch.from_numpy(np.flatnonzero(self.apart.cpu().numpy()))
        batches = [pool.take(part) for part in rows.split(pool.batch_size)]
        if not batches:
            return
        with eval_mode(self):
            network = torch.cat([self.network(part.x) for part in batches]).cpu().numpy().T
        terms = [self._terms(part) for part in batches]
        weights, targets = (torch.cat(some).cpu().numpy().T for some in zip(*terms, strict=True))
        path = self.held_out[rows.to(self.device)].cpu().numpy().T
        parts_of_both = ((1 - share) * path + share * network for share in np.array(BLEND_SHARES, np.float32))
        losses = [calibrate(logits, weights, targets).loss for logits in parts_of_both]
        self.share.fill_(BLEND_SHARES[int(np.argmin(losses))])
