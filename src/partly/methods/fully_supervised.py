"""Binary cross-entropy on the items of which every label is known; all others are ignored.

Take it: as the lower end: what partly known items are worth beside those that are wholly known.

Formula:

    items that are wholly known:  yes -log p,  no -log(1 - p);   all others  0

Paper: C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
Pseudo-Label Approach. arXiv 2109.14676, 2021. The baseline "Fully-Supervised".

Known no: an ordinary negative, where the item is wholly known. Unknown: no item that has one is learned from.

Differs: where no item is wholly known, all known entries are learned from, as with `bce`. An epoch has as many steps
as with any other method, each with items drawn from the wholly known ones, so that few of them are seen many times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from partly.clock import Clock
from partly.losses import bce
from partly.method import About, Method, Task
from partly.pool import Batch, Pool

ABOUT = About(in_papers=("Fully-Supervised",))


class FullySupervised(Method):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.network = task.network(at_random=False)  # it learns from items of which all is known, and they are few
        self.optimiser = task.optimiser(self.network.parameters())

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        if not len(pool.fully_labelled):
            yield from super().epoch(pool, clock)
        else:
            steps = (replace(clock, step=step) for step in range(clock.step, pool.steps))
            drawn = [one.rng("items").permutation(len(pool.fully_labelled))[: pool.batch_size] for one in steps]
            for batch in pool.augmented_batches([pool.fully_labelled[part] for part in drawn], clock):
                yield self.update(batch, clock)

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = bce(self.network(batch.x, batch.z), batch.z).mean()
        self.step(loss, clock, self.optimiser)
        return {"loss": loss.item()}
