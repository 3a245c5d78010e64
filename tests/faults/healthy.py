"""Two networks that teach each other, with beliefs, two optimizers and randomness: all that a method may be.

Reference
    None, the healthy sibling of the planted faults.

Known negatives
    An ordinary negative. Unknown: drawn towards the beliefs, which start at one half.

Differences from the paper
    None.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from partly.clock import Clock
from partly.method import EntryState, Method, Task
from partly.pool import Batch, Pool

REJECTED_BY = None


class Healthy(Method):
    starts_solved = False  # it is about something else
    entry_state = (EntryState("believed", fill=0.5, belief=torch.float32),)

    def __init__(self, task: Task, *, rate: float = 0.1, noise: float | None = 0.01) -> None:
        super().__init__(task)
        self.one, self.other = task.network("one"), task.network("other")
        self.first = task.make_optimizer(self.one.parameters())
        self.second = task.make_optimizer(self.other.parameters(), factor=0.5)
        self.rate, self.noise = rate, noise
        self.register_buffer("weight", torch.ones(task.labels))

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        yes = torch.zeros_like(self.weight)
        for batch in pool.in_order():
            yes += (batch.z == 1).sum(dim=0)
            self.believed[batch.index] = self._observed(self.believed[batch.index], batch.z)
        self.weight = 1 + yes / len(pool)

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        generator = clock.generator("noise")
        target = self._observed(self.believed[batch.index], batch.z)
        blurred = target + (self.noise or 0.0) * torch.randn(target.shape, generator=generator)
        logits = self.one(batch.x), self.other(batch.x)
        entries = [F.binary_cross_entropy_with_logits(part, blurred.clamp(0, 1), reduction="none") for part in logits]
        loss = (self.weight * sum(entries)).mean()
        self.step(loss, clock, self.first, self.second)
        opinion = torch.lerp(target, torch.sigmoid(sum(logits).detach() / 2), self.rate)
        self.believed[batch.index] = self._observed(opinion, batch.z)
        return {"loss": loss.item(), "first": entries[0].mean().item()}

    def forward(self, x: Tensor) -> Tensor:
        return torch.logit((torch.sigmoid(self.one(x)) + torch.sigmoid(self.other(x))) / 2, eps=1e-7)

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        return self.believed[rows]

    def _observed(self, beliefs: Tensor, z: Tensor) -> Tensor:
        return torch.where(z == 0, beliefs, (z == 1).float())
