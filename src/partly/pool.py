"""Pool: training items with their observed labels, in batches. It holds no truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from partly.clock import Clock, Draw
from partly.distributed.group import SINGLE_PROCESS, Group
from partly.distributed.share import BatchShard
from partly.items import Items, stream_batches
from partly.labels import Labels
from partly.labels.weights import Weights
from partly.moved import RenamedAttribute

MAX_PICKED_ENTRIES = 1 << 18  # entries whose labels are picked at a time


@dataclass(frozen=True)
class Batch:
    """Items x [B, ...], labels z [B, L] (+1 yes, -1 no, 0 unknown), positions in the pool index [B], and optional
    weights [B, L] or [B, 1].

    With several processes, x is the shard of this process, which only networks can use.
    """

    x: Tensor | BatchShard
    z: Tensor
    index: Tensor
    weights: Tensor | None = None
    weighed = RenamedAttribute("apply_weights")

    def apply_weights(self, losses: Tensor) -> Tensor:
        """Multiply losses (or their weights) of entries [B, L] or items [B] by the sample weights, if there are any."""
        if self.weights is None:
            return losses
        return losses * (self.weights if losses.ndim == 2 else self.weights[:, 0])


@dataclass(frozen=True)
class Pool:
    """Items and their observed labels, both immutable."""

    items: Items
    labels: Labels
    batch_size: int = 128
    device: str = "cpu"
    group: Group = SINGLE_PROCESS  # the processes that the items of each batch are spread over
    weights: Weights | None = None  # of items [N, 1] or of entries [N, L], where they count differently
    learned = RenamedAttribute("augmented_batches")
    whole = RenamedAttribute("fully_labelled")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def steps(self) -> int:
        """Number of batches in an epoch; the last may be smaller, and none is dropped."""
        return -(-len(self) // self.batch_size)

    @property
    def last(self) -> float:
        """Size of the last batch of an epoch as a share of the others."""
        return (len(self) - (self.steps - 1) * self.batch_size) / self.batch_size

    @cached_property
    def fully_labelled(self) -> Tensor:
        """Positions of the items with all labels known, [W]."""
        return torch.from_numpy(np.flatnonzero(self.labels.known_per_item() == self.labels.shape[1]))

    def take(self, index: Tensor) -> Batch:
        """Return the items at these positions as a batch; sparse items and labels become dense."""
        return self._batch(self.items.take(self._own(index)), next(self._labels([index])), index)

    def _own(self, index: Tensor) -> Tensor:
        """Return the positions that this process reads: its share, or one as a stand-in, since some networks need a
        row."""
        if self.group.count == 1:
            return index
        own_rows = index[self.group.rows(len(index))]
        return own_rows if len(own_rows) else index[:1]

    def _batch(self, x: Tensor, z: Tensor, index: Tensor) -> Batch:
        own, alone = x.to(self.device), self.group.count == 1
        shard = own if alone else BatchShard(own, self.group.rows(len(index)), len(index), self.group)
        weights = None if self.weights is None else torch.from_numpy(self.weights[index.numpy()]).to(self.device)
        return Batch(shard, z, index.to(self.device), weights)

    def _labels(self, parts: Sequence[Tensor]) -> Iterator[Tensor]:
        """Yield z [B, L] of each part. Rows of many small parts are read together, which is much faster for sparse
        labels."""
        many = max(1, MAX_PICKED_ENTRIES // max(1, self.batch_size * self.labels.shape[1]))
        for start in range(0, len(parts), many):
            positions = parts[start : start + many]
            z = torch.from_numpy(self.labels.rows(torch.cat(list(positions)).numpy())).to(self.device)
            yield from z.split([len(part) for part in positions])

    def _batches(self, parts: Sequence[Tensor], draw: Draw | None = None) -> Iterator[Batch]:
        x = stream_batches(self.items, list(map(self._own, parts)), draw)
        yield from map(self._batch, x, self._labels(parts), parts)

    def augmented_batches(self, parts: Sequence[Tensor], clock: Clock) -> Iterator[Batch]:
        """Yield batches of the items at these positions for training: images are augmented as the clock draws, and
        decoded in advance."""
        yield from self._batches(parts, clock.draw)

    def batches(self, clock: Clock) -> Iterator[Batch]:
        """Yield one epoch in random order, from the current step of the clock on."""
        order = torch.from_numpy(clock.epoch_rng("order").permutation(len(self)))
        yield from self.augmented_batches(order.split(self.batch_size)[clock.step : self.steps], clock)

    def labels_in_order(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield index [B] and z [B, L] of every item once, without reading items."""
        batches = torch.arange(len(self)).split(self.batch_size)[: self.steps]
        yield from ((index.to(self.device), z) for index, z in zip(batches, self._labels(batches), strict=True))

    def items_in_order(self) -> Iterator[Tensor]:
        """Yield x [B, ...] of every item once, without labels."""
        return stream_batches(self.items, list(torch.arange(len(self)).split(self.batch_size)))

    def in_order(self) -> Iterator[Batch]:
        """Yield every item once, in order: to relabel and to score."""
        batches = torch.arange(len(self)).split(self.batch_size)[: self.steps]
        yield from self._batches(batches)
