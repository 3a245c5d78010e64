"""Partial asymmetric loss (P-ASL): unknown entries of frequent labels and likely positives are ignored.

When to use
    Some negatives are known for each label, as in Open Images, and frequent labels are often left unmentioned.

Formula
    yes      -(1 - p)^gamma_yes log p
    no       -q^gamma_no log(1 - q),   q = max(p - clip, 0)
    unknown  -weight_unknown q^gamma_unknown log(1 - q),
             or 0 for frequent labels, and for the `likely` B entries of a batch with the largest p

Reference
    E. Ben-Baruch, T. Ridnik, I. Friedman, A. Ben-Cohen, N. Zamir, A. Noy, L. Zelnik-Manor. Multi-label Classification
    with Partial Annotations using Class-aware Selective Loss. CVPR 2022. Modes selective, negative and ignore.

Known negatives
    Focal, with gamma_no. Unknown entries are focal with gamma_unknown and weight_unknown, or ignored: never in mode
    negative, always in mode ignore. Mode selective ignores labels whose share of positives exceeds `prior_threshold`,
    and the `likely` x B entries of a batch with the highest predictions.

Differences from the paper
    The authors take the shares of positives from a model trained in mode ignore; here they are the shares among known
    entries. A label without known negatives is never frequent. The mean over entries, not the sum; the focusing weight
    is differentiated, as the formula says.

Defaults
    likely = 0.5 was chosen by validation with one positive per item and an MLP head; the authors ignore 5 per item, of
    many more labels.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.errors import within
from partly.method import About, Method, Task
from partly.pool import Batch, Pool
from partly.selection import largest, share_of

ABOUT = About(
    search={
        "mode": ["selective", "negative"],
        "gamma_no": (0.5, 4.0),
        "gamma_unknown": (1.0, 6.0),
        "likely": (0.1, 5.0),
        "prior_threshold": (0.02, 0.5),
    }
)


class PASL(Method):
    prior: Tensor  # share of positives per label

    def __init__(
        self,
        task: Task,
        *,
        mode: Literal["selective", "negative", "ignore"] = "selective",
        gamma_yes: float = 0.0,
        gamma_no: float = 1.0,
        gamma_unknown: float = 2.0,
        clip: float = 0.0,
        weight_unknown: float = 1.0,
        likely: float = 0.5,
        prior_threshold: float = 0.05,
    ) -> None:
        super().__init__(task)
        within(0, math.inf, likely=likely)
        self.mode, self.likely, self.prior_threshold = mode, likely, prior_threshold
        self.settings = {"gamma_yes": gamma_yes, "gamma_no": gamma_no, "gamma_unknown": gamma_unknown}
        self.settings |= {"clip": clip, "weight_unknown": weight_unknown}
        self.network = task.network()
        self.optimizer = task.make_optimizer(self.network.parameters())
        self.register_buffer("prior", torch.zeros(task.labels))

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        if clock.epoch == 0:
            yes, no = (torch.from_numpy(count).to(self.prior) for count in pool.labels.counts())
            self.prior = torch.where(no > 0, yes / (yes + no), 0.0)

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x, batch.z)
        ignored = self._ignore_mask(logits, batch.z)
        loss = losses.partial_asymmetric(logits, batch.z, ignored=ignored, **self.settings).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}

    def _ignore_mask(self, logits: Tensor, z: Tensor) -> Tensor | None:
        """Return the mask of unknown entries that are ignored, [B, L]."""
        if self.mode == "negative":
            return None
        unknown = z == 0
        if self.mode == "ignore":
            return unknown
        frequent = unknown & (self.prior > self.prior_threshold)
        return frequent | largest(logits, unknown, share_of(self.likely, len(z)))
