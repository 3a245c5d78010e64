"""Unknown entries are taken for no, except for a growing share that fits worst: left out, or taken for yes.

Take it: where only yes is known and a network is trained from pictures: what it fits last is most likely a hidden yes.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  -log(1 - p), but for the share `share` epoch / epochs of a batch with the largest p:
             0 (reject), or -log p (correct, correct-permanently)

Paper: Y. Kim, J. M. Kim, Z. Akata, J. Lee. Large Loss Matters in Weakly Supervised Multi-Label Classification. CVPR
2022. "LL-R" (scheme reject), "LL-Ct" (correct), "LL-Cp" (correct-permanently).

Known no: an ordinary negative, never left out and never turned. Unknown: a no; from the second epoch on, of the
unknown entries of a batch, the share with the largest losses is left out or taken for a yes, in this step or for good.

Differs: the share grows by share / epochs an epoch, so that the paper's 0.2 % an epoch over ten epochs is 0.02; for
good that many are turned anew in each epoch. It is a share of the unknown entries, as the paper says; the authors'
code counts all entries. Exactly so many are chosen, also where losses are equal. In the authors' code the permanent
scheme is never reached (a comparison of texts by `is`).

Defaults: share = 0.035 was chosen by validation on the features of VOC 2012 with one yes per item, with a linear and
with an MLP head; the paper's for VOC is 0.02.
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
    held: Tensor  # observed labels and entries turned for good; there with that scheme alone

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
        self.optimiser = task.optimiser(self.network.parameters())

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
            entries = losses.assume_negative(logits, self._turned(logits, batch.index, clock))
        else:
            (share,) = self.plan(clock).values()
            entries = losses.large_loss(logits, batch.z, share=share, correct=self.scheme == "correct")
        loss = entries.mean()
        self.step(loss, clock, self.optimiser)
        return {"loss": loss.item()}

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"unknown entries left out, or turned": self.share * clock.epoch / clock.epochs}

    def may_be_best(self, clock: Clock) -> bool:
        """From the second epoch on; in the first it is `assume-negative`."""
        return clock.epoch > 0

    def _turned(self, logits: Tensor, index: Tensor, clock: Clock) -> Tensor:
        """The labels of these items, after turning the worst of what is still unknown. [B, L]"""
        z = self.held[index]
        if clock.epoch > 0:
            z[selection.large_loss(logits, z == 0, self.share / clock.epochs)] = 1
            self.held[index] = z
        return z

    def beliefs(self, rows: slice = slice(None)) -> Tensor | None:
        """With entries turned for good: 1 for these, 0 for what is still taken for no."""
        return (self.held[rows] > 0).half() if self.scheme == "correct-permanently" else None
