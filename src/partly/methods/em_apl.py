"""`em`, and later the least likely unknown entries of each label become fixed soft negatives.

When to use
    As `em`, where scoring all items once per epoch and two bytes per entry are affordable.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  -alpha H(p), and beta CE(p, b) once there is a belief b
    before each epoch e after the warm-up w: the share (e - w) / (epochs - w) of `share`, lowest p first, gets b = p

Reference
    D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
    Positive Labels. ECCV 2022. Entropy maximization with asymmetric pseudo-labeling, "EM loss+APL".

Known negatives
    Ordinary negatives. After the warm-up, before each epoch, all items are scored. The lowest-scoring unknown entries
    of each label get their probability as a fixed belief. No entry is ever believed to be positive.

Differences from the paper
    The schedule is in shares of the epochs: the warm-up of 5 of 10 epochs is `warmup` = 0.5. By the last epoch,
    `share` = 90 % of the unknown entries of each label have a belief, in equal portions. Items are scored in order
    and without augmentation. There is no early stopping: the authors' ends training at the first epoch without
    improvement, often before there are beliefs. Probabilities come out too high, as in `em`.

Defaults
    alpha = 0.05 was chosen by validation with one positive per item and a linear head (the paper: 0.2 on VOC). beta,
    warmup and share are the paper's for VOC.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from partly.clock import Clock
from partly.errors import within
from partly.labels import Labels
from partly.losses import cross_entropy, entropy_maximization
from partly.method import About, EntryState, Method, Task
from partly.networks import eval_mode
from partly.pool import Batch, Pool
from partly.selection import smallest

ABOUT = About(
    search={"alpha": (0.02, 0.5), "beta": (0.01, 1.0), "warmup": (0.1, 0.8)},
    in_papers=("EM loss+APL",),
    learns_from_unknown=True,
)
NO_BELIEF = -1.0
LABELS_PER_BLOCK = 64  # contiguous columns are far faster


class EMAPL(Method):
    entry_state = (EntryState("believed", torch.float16, NO_BELIEF, belief=torch.float16),)
    working_bytes = 4  # scores, while relabeling

    believed: Tensor

    def __init__(
        self, task: Task, *, alpha: float = 0.05, beta: float = 0.02, warmup: float = 0.5, share: float = 0.9
    ) -> None:
        super().__init__(task)
        within(0, 1, warmup=warmup, share=share)
        self.alpha, self.beta, self.warmup, self.share = alpha, beta, warmup, share
        self.network = task.network()
        self.optimizer = task.make_optimizer(self.network.parameters())

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        if clock.epoch == 0:
            for index, z in pool.labels_in_order():
                self.believed[index] = torch.where(z == 0, NO_BELIEF, (z > 0).half())
        share = self.share_at(clock)
        if share > 0:
            self._relabel(share, self._scores(pool, clock), pool.labels)

    def may_be_best(self, clock: Clock) -> bool:
        """Return True once there are beliefs: before, it is `em`."""
        return clock.epoch >= self._first_epoch(clock)

    def _first_epoch(self, clock: Clock) -> int:
        """Return the first epoch, from 0, with beliefs."""
        earliest = 0 if self.task.has_first_logits else 1  # beliefs need scores
        return max(earliest, min(round(self.warmup * clock.epochs), clock.epochs - 1))

    def share_at(self, clock: Clock) -> float:
        """Return the share of unknown entries that have a belief in this epoch."""
        first = self._first_epoch(clock)
        if clock.epoch < first:
            return 0.0
        return self.share * (clock.epoch - first + 1) / (clock.epochs - first)

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"unknown entries with a belief": self.share_at(clock)}

    @torch.no_grad()
    def _relabel(self, share: float, scores: Tensor, labels: Labels) -> None:
        unknown = len(labels) - torch.from_numpy(sum(labels.counts()))
        wanted = (share * unknown + 1e-6).long()
        for start in range(0, self.task.labels, LABELS_PER_BLOCK):
            block = slice(start, start + LABELS_PER_BLOCK)
            logits, believed = (kept[:, block].T.contiguous() for kept in (scores, self.believed))
            free = believed < 0
            counts = wanted[block].to(free.device) - unknown[block].to(free.device) + free.sum(dim=1)
            chosen = smallest_per_row(logits, free, counts)
            believed[chosen] = torch.sigmoid(logits[chosen]).half()
            self.believed[:, block] = believed.T

    @torch.no_grad()
    def _scores(self, pool: Pool, clock: Clock) -> Tensor:
        """Logits of all training items, without dropout; before the first epoch those of start and teachers."""
        first = self.task.first_logits() if clock.epoch == 0 else None
        if first is not None:
            return first.to(self.believed.device)
        scores = torch.empty(self.believed.shape, device=self.believed.device)
        with eval_mode(self):
            for batch in pool.in_order():
                scores[batch.index] = self(batch.x)
        return scores

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits, believed = self.network(batch.x, batch.z), self.believed[batch.index]
        labeled = (batch.z == 0) & (believed >= 0)
        soft = self.beta * cross_entropy(logits, torch.where(labeled, believed, 0.0))
        loss = torch.where(labeled, soft, entropy_maximization(logits, batch.z, alpha=self.alpha)).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        """Return observed labels, soft negatives, and one half elsewhere."""
        believed = self.believed[rows]
        return torch.where(believed < 0, 0.5, believed)


def smallest_per_row(values: Tensor, among: Tensor, counts: Tensor) -> Tensor:
    """Apply `selection.smallest` to each row [R, N] with its own count: a mask.

    Rows are sorted to find the last selected value; only rows with ties at that value need a further selection.
    """
    candidates = torch.where(among, values, torch.inf)
    # NumPy sorts values only; torch also sorts positions, which is ten times slower.
    ordered = torch.from_numpy(np.sort(candidates.cpu().numpy(), axis=1)).to(values.device)
    last = ordered.gather(1, (counts - 1).clamp(min=0).unsqueeze(1))
    chosen = among & (candidates <= last) & (counts > 0).unsqueeze(1)
    for row in (chosen.sum(dim=1) > counts.clamp(min=0)).nonzero().flatten().tolist():
        chosen[row] = smallest(values[row], among[row], int(counts[row]))
    return chosen
