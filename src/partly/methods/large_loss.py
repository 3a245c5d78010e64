"""Large loss matters: a growing share of unknown entries with the largest loss is dropped or relabeled.

When to use
    Only positives are known and a network is trained on images: entries that it fits last are likely hidden positives.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  -log(1 - p), except for the share `share` epoch / epochs of a batch with the largest p:
             0 (reject), or -log p (correct, correct-permanently)

Reference
    Y. Kim, J. M. Kim, Z. Akata, J. Lee. Large Loss Matters in Weakly Supervised Multi-Label Classification. CVPR
    2022. "LL-R" (scheme reject), "LL-Ct" (correct), "LL-Cp" (correct-permanently).

Known negatives
    Ordinary negatives; never dropped or relabeled.

Differences from the paper
    The share grows by share / epochs per epoch, so the paper's 0.2 % per epoch over ten epochs is 0.02;
    correct-permanently relabels that many in each epoch. It is a share of the unknown entries, as in the paper; the
    authors' code counts all entries. Exactly that many entries are selected, also among ties. In the authors' code the
    permanent scheme is unreachable (strings compared by `is`).

Defaults
    share = 0.035 was chosen by validation with one positive per item; the paper has 0.02 for VOC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from partly import losses, selection
from partly.clock import Clock
from partly.errors import within
from partly.method import About, EntryState, Method, Task
from partly.pool import Batch, Pool

ABOUT = About(search={"share": (0.005, 0.1), "scheme": ["reject", "correct", "correct-permanently"]})


class LargeLoss(Method):
    entry_state = (EntryState("held", torch.int8),)
    held: Tensor  # observed and permanently relabeled entries; only for that scheme

    def __init__(
        self,
        task: Task,
        *,
        scheme: Literal["reject", "correct", "correct-permanently"] = "reject",
        share: float = 0.035,
    ) -> None:
        super().__init__(task, {"scheme": scheme})
        within(0, 1, share=share)
        self.scheme, self.share = scheme, share
        self.network = task.network()
        self.optimizer = task.make_optimizer(self.network.parameters())

    @classmethod
    def entry_state_for(cls, task: Task, settings: Mapping[str, Any]) -> tuple[EntryState, ...]:
        return cls.entry_state if settings["scheme"] == "correct-permanently" else ()

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        if clock.epoch == 0 and self.scheme == "correct-permanently":
            for index, z in pool.labels_in_order():
                self.held[index] = z

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x, batch.z)
        if self.scheme == "correct-permanently":
            entries = losses.assume_negative(logits, self._flip_largest(logits, batch.index, clock))
        else:
            (share,) = self.plan(clock).values()
            entries = losses.large_loss(logits, batch.z, share=share, correct=self.scheme == "correct")
        loss = entries.mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"unknown entries left out, or turned": self.share * clock.epoch / clock.epochs}

    def may_be_best(self, clock: Clock) -> bool:
        """Return True from the second epoch on; the first is `assume-negative`."""
        return clock.epoch > 0

    def _flip_largest(self, logits: Tensor, index: Tensor, clock: Clock) -> Tensor:
        """Return the labels of these items after relabeling the unknown entries with the largest loss. [B, L]"""
        z = self.held[index]
        if clock.epoch > 0:
            z[selection.large_loss(logits, z == 0, self.share / clock.epochs)] = 1
            self.held[index] = z
        return z

    def beliefs(self, rows: slice = slice(None)) -> Tensor | None:
        """With permanent relabeling, return 1 for positives and relabeled entries, else 0."""
        return (self.held[rows] > 0).half() if self.scheme == "correct-permanently" else None
