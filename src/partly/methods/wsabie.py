"""WSABIE: items and labels share an embedding space, trained by the WARP ranking loss.

When to use
    Very many labels, and only the top few of each item matter.

Formula
    x = v(item) . e(label);   for each positive i, draw negatives until  x_j > x_i - margin  (after n draws):
    (1 + 1/2 + ... + 1/rank) max(0, margin + x_j - x_i),   rank = floor(number of negatives / n)

Reference
    J. Weston, S. Bengio, N. Usunier. Wsabie: Scaling Up to Large Vocabulary Image Annotation. IJCAI 2011.

Known negatives
    The ones that are drawn. Unknown entries are never drawn, unless `unknown_as_no` treats them as negatives, which is
    needed where only positives are known.

Differences from the paper
    A whole batch at a time, all positives of an item weighted equally, with at most `trials` draws each; a positive
    without a violating negative has no loss. Label vectors are limited to the norm `max_norm`, as in the paper; the
    embedding of items has the optimizer's weight decay instead. The head of the task embeds items. Training starts
    with `bce` for the share `warmup` of the epochs: Huynh and Elhamifar (CVPR 2020) start all their baselines from a
    logistic model.

Defaults
    size = 100, margin = 1 and max_norm = 1 are the paper's. warmup = 0.5 was chosen by validation, of 0 and 0.5.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from partly.clock import Clock, seed_for
from partly.errors import within
from partly.losses import bce
from partly.losses.ranking import positives_and_negatives
from partly.method import About, Method, Task
from partly.networks.layers import low_rank_network
from partly.pool import Batch

ABOUT = About(learns_from="no", search={"size": [30, 100, 300], "warmup": (0.0, 0.9)}, in_papers=("Wsabie",))


class Wsabie(Method):
    def __init__(
        self,
        task: Task,
        *,
        size: int = 100,
        margin: float = 1.0,
        trials: int = 100,
        max_norm: float = 1.0,
        warmup: float = 0.5,
        unknown_as_no: bool = False,
    ) -> None:
        super().__init__(task)
        within(1, math.inf, size=size, trials=trials)
        within(0, math.inf, margin=margin, max_norm=max_norm)
        within(0, 1, warmup=warmup)
        self.margin, self.trials, self.max_norm = margin, trials, max_norm
        self.warmup, self.unknown_as_no = warmup, unknown_as_no
        if task.start is None:
            places = replace(task, labels=size, observed=None).network(logits=False)
            self.network = low_rank_network(places, size, task.labels, seed_for(task.config.seed, "label vectors"))
        else:
            self.network = task.start.low_rank(size, max_norm=max_norm)
        self._limit_norms()
        self.optimizer = task.make_optimizer(self.network.parameters())

    def _is_ranking(self, clock: Clock) -> bool:
        """Tell whether the warm-up is over and labels are ranked."""
        return clock.progress >= self.warmup

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"the order of labels is learned": self._is_ranking(clock)}

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x)
        if not self._is_ranking(clock):
            loss = bce(logits, batch.z).mean()
        else:
            yes, no = positives_and_negatives(batch.z, self.unknown_as_no)
            loss = warp(logits, yes, no, self.margin, self.trials, clock.generator("warp")).mean()
        self.step(loss, clock, self.optimizer)
        self._limit_norms()
        return {"loss": loss.item()}

    @torch.no_grad()
    def _limit_norms(self) -> None:
        """Limit label vectors to the norm `max_norm`."""
        self.network.head.get_parameter("weight").renorm_(2, 0, self.max_norm)


def warp(logits: Tensor, yes: Tensor, no: Tensor, margin: float, trials: int, generator: torch.Generator) -> Tensor:
    """Return the mean over the positives p of an item of H(|no| // draws) (margin - s_p + s_n), H(k) = 1 + 1/2 + ... +
    1/k. [B]

    n is the first negative drawn with s_n > s_p - margin, `draws` the number of draws. yes, no: masks, [B, L].
    """
    count = no.sum(dim=1)
    item, label = (yes & (count > 0).unsqueeze(1)).nonzero(as_tuple=True)
    # Negatives first, so that a random position below their count is a random negative.
    places = no.byte().argsort(dim=1, descending=True, stable=True)
    random = torch.rand(len(item), min(trials, no.shape[1]), generator=generator).to(logits.device)
    drawn = places[item.unsqueeze(1), (random * count[item].unsqueeze(1)).long()]
    with torch.no_grad():
        violates = logits[item.unsqueeze(1), drawn] - logits[item, label].unsqueeze(1) + margin > 0
        first = violates.byte().argmax(dim=1)
        weight = _harmonic(no.shape[1], logits)[count[item] // (first + 1)]
    rival = drawn.gather(1, first.unsqueeze(1)).squeeze(1)
    hinge = F.relu(margin - logits[item, label] + logits[item, rival])  # 0 where none violates
    return logits.new_zeros(len(yes)).index_add(0, item, weight * hinge / yes.sum(dim=1)[item])


def _harmonic(most: int, like: Tensor) -> Tensor:
    """Return H(0), ..., H(most)."""
    return F.pad(1 / torch.arange(1, most + 1, dtype=like.dtype, device=like.device), (1, 0)).cumsum(0)
