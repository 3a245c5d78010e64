"""A recurrent network names the labels of an item one after another, each given those before.

When to use
    As a baseline, or where the order of labels matters. Other methods rank far better.

Formula
    P(next label | item, labels so far) = softmax(E (item + LSTM(labels so far)))
    score of a label: the highest such probability at any step of any beam

Reference
    J. Wang, Y. Yang, J. Mao, Z. Huang, C. Huang, W. Xu. CNN-RNN: A Unified Framework for Multi-label Image
    Classification. CVPR 2016.

Known negatives
    Not among the labels to be named. Unknown entries are treated the same, as in the paper and in its use by Huynh
    and Elhamifar (CVPR 2020).

Differences from the paper
    An end symbol is named last, so an item may have no label. The head of the task embeds the item. Beam search names
    only some labels; the score of every label is its highest probability of being named next, at any step of any
    beam. Such scores rank well but are too low as probabilities, so a threshold of 0.5 misses many positives. No label
    is named twice, and all beams continue to `longest` labels.

Defaults
    size = 128 was not searched. Beams of 1, 3 and 10 performed alike in validation.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from partly.clock import Clock, seed_for
from partly.distributed.share import BatchShard
from partly.errors import within
from partly.method import About, Method, Task
from partly.pool import Batch, Pool

ABOUT = About(search={"size": [64, 128, 256]}, in_papers=("CNN-RNN",))
CERTAIN = -1e-6  # largest log-probability with a finite logit in float32


class CNNRNN(Method):
    """From a solved start, the solved logits are scores of the next label. The recurrent network adds to them, times a
    gate of each label that starts at zero. A label's logit is the solved one plus the change of its highest
    probability."""

    rank: Tensor  # rank of each label by known positives, 0 for the most frequent

    def __init__(self, task: Task, *, size: int = 128, beam: int = 3, longest: int = 10) -> None:
        super().__init__(task)
        within(1, math.inf, size=size, beam=beam, longest=longest)
        self.beam, self.longest = beam, longest
        self.starts = task.start is not None
        embeds = replace(task, labels=size, observed=None)
        self.network = task.network() if self.starts else embeds.network(logits=False)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for(task.config.seed, "weights", "recurrent"))
            self.vectors = nn.Embedding(task.labels + 2, size)  # the labels, the end, the start
            nn.init.normal_(self.vectors.weight, std=size**-0.5)
            self.lstm = nn.LSTM(size, size, batch_first=True)
            self.output = nn.Linear(size, size)
            if task.start is not None:
                self.place = nn.Linear(task.start.weight.shape[1], size)
                self.gate = nn.Parameter(torch.zeros(task.labels + 1))
        self.optimizer = task.make_optimizer(self.parameters())
        self.register_buffer("rank", torch.arange(task.labels))

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        if clock.epoch == 0:
            yes, _ = pool.labels.counts()
            order = torch.from_numpy(yes).argsort(descending=True, stable=True)
            self.rank[order.to(self.rank.device)] = torch.arange(len(order), device=self.rank.device)

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        named = self.sequences(batch.z)
        start = torch.full_like(named[:, :1], self.task.labels + 1)
        heard, _ = self.lstm(self.vectors(torch.cat([start, named[:, :-1]], dim=1)))
        place, solved = self._encode(batch.x)
        scores = self._next(heard, place, solved)
        counts = torch.arange(named.shape[1], device=named.device) <= (batch.z > 0).sum(dim=1, keepdim=True)
        loss = F.cross_entropy(scores[counts], named[counts])
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}

    def sequences(self, z: Tensor) -> Tensor:
        """Return the known positives of each item, the most frequent first, then the end. [B, most + 1]"""
        labels = self.task.labels
        ranks = torch.where(z > 0, self.rank, labels).sort(dim=1).values
        most = int((z > 0).sum(dim=1).max())
        by_rank = F.pad(self.rank.argsort(), (0, 1), value=labels)
        return F.pad(by_rank[ranks[:, :most]], (0, 1), value=labels)

    def _encode(self, x: Tensor | BatchShard) -> tuple[Tensor, Tensor | None]:
        """Return items embedded as labels are [B, 1, size], and the solved scores of labels and end [B, 1, L + 1]."""
        if not self.starts:
            return self.network(x).unsqueeze(1), None
        features, logits = self.network.features_and_logits(x)
        return self.place(features).unsqueeze(1), F.pad(logits, (0, 1)).unsqueeze(1)

    def _next(self, heard: Tensor, place: Tensor, solved: Tensor | None) -> Tensor:
        """Return scores of the next label or the end. heard, place: [..., size]"""
        scores = F.relu(self.output(heard) + place) @ self.vectors.weight[:-1].T
        return scores if solved is None else solved + self.gate * scores

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        place, solved = self._encode(x)
        highest = _log_odds(self._highest(place, solved))
        if solved is None:
            return highest
        logits = solved[:, 0, :-1]
        return logits + (highest - _log_odds(solved[:, 0].log_softmax(dim=1)[:, :-1]))

    def _highest(self, place: Tensor, solved: Tensor | None) -> Tensor:
        """Return the highest log-probability of each label to be named next, at any step of any beam, [B, L]."""
        rows = torch.arange(place.shape[0], device=place.device).unsqueeze(1)
        last = torch.full_like(rows, self.task.labels + 1)  # [B, beams]
        likely = place.new_zeros(last.shape)  # log-probability of the sequence
        fresh = torch.ones(*last.shape, self.task.labels, dtype=torch.bool, device=place.device)  # not named yet
        state, highest = None, place.new_full((place.shape[0], self.task.labels), -torch.inf)
        for named in range(min(self.longest, self.task.labels)):
            heard, state = self.lstm(self.vectors(last).flatten(0, 1).unsqueeze(1), state)
            scores = self._next(heard.view(*last.shape, -1), place, solved).log_softmax(dim=2)[:, :, :-1]
            scores = torch.where(fresh, scores, -torch.inf)
            highest = torch.maximum(highest, scores.amax(dim=1))
            possible = last.shape[1] * (self.task.labels - named)
            paths = (likely.unsqueeze(2) + scores).flatten(1)
            likely, best = paths.topk(min(self.beam, possible), dim=1)
            beam, last = best // self.task.labels, best % self.task.labels
            fresh = fresh[rows, beam].scatter(2, last.unsqueeze(2), False)
            state = tuple(
                part.view(place.shape[0], -1, part.shape[2])[rows, beam].flatten(0, 1)[None] for part in state
            )
        return highest


def _log_odds(log_p: Tensor) -> Tensor:
    """Return the logits of probabilities, from their logarithms."""
    log_p = log_p.clamp(max=CERTAIN)
    return log_p - torch.log(-torch.expm1(log_p))
