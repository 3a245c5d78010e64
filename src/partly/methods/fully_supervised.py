"""Binary cross-entropy on the fully labeled items; all other items are ignored.

When to use
    As a reference baseline: it shows how much the partly labeled items add.

Formula
    fully labeled items:  yes -log p,  no -log(1 - p);   all others  0

Reference
    C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
    Pseudo-Label Approach. arXiv 2109.14676, 2021. The baseline "Fully-Supervised".

Known negatives
    Ordinary negatives, on fully labeled items. Items with unknown entries are not used.

Differences from the paper
    Without any fully labeled item, all known entries are used, as in `bce`. An epoch has as many steps as with other
    methods, each with a random batch of fully labeled items.

Defaults
    No settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from partly.clock import Clock
from partly.losses import bce
from partly.method import About, Method, Task
from partly.pool import Batch, Pool

ABOUT = About(learns_from="items", in_papers=("Fully-Supervised",))


class FullySupervised(Method):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.network = task.network(at_random=False)  # fully labeled items are no random sample
        self.optimizer = task.make_optimizer(self.network.parameters())

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
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
