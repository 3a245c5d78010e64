"""Unknown entries learn from the probabilities of a teacher, such as label names or a vision-language model.

When to use
    A teacher is at hand (`teacher="names"`, a score file, a run) and the network itself should learn what the teacher
    knows, for example because it is used without the teacher later. For the best scores take `auto` with a teacher.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  beta CE(p, q)                                                    (pseudo = "soft")
    unknown  beta CE(p, 1 - smoothing) where q > threshold, else -alpha H(p)  (pseudo = "positive")
    q: the probability by the teacher, calibrated on the known entries of other items;   H(p): the entropy of p

Reference
    X. Xing, Z. Xiong, A. Stylianou, S. Sastry, L. Gong, N. Jacobs. Vision-Language Pseudo-Labels for Single-Positive
    Multi-Label Learning. CVPR Workshops 2024, arXiv 2310.15985. "VLPL" is pseudo = "positive".

Known negatives
    Ordinary negatives, never relabeled. The paper has none.

Differences from the paper
    The paper takes softmax similarities of CLIP above 0.3 as pseudo-labels; here q is a calibrated probability of any
    teacher, combined with the out-of-fold scores of the solved start where there is one. By default all unknown
    entries have soft targets: a calibrated q says more than a threshold on it. Without a teacher q is that of the
    start, and without both unknown entries have the entropy term alone, as in `em`.

Defaults
    alpha is that of `em`. beta, threshold and smoothing are the paper's; beta holds for soft targets too.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from partly.clock import Clock
from partly.errors import within
from partly.losses import cross_entropy, entropy_maximization
from partly.method import About, EntryState, Method, Task
from partly.pool import Batch, Pool

ABOUT = About(
    search={"beta": (0.1, 1.0), "alpha": (0.02, 0.5)},
    learns_from_unknown=True,
)
NO_PROBABILITY = -1.0


class VLPL(Method):
    entry_state = (EntryState("taught", torch.float16, NO_PROBABILITY, belief=torch.float16),)
    working_bytes = 4  # logits of start and teachers

    taught: Tensor

    def __init__(
        self,
        task: Task,
        *,
        pseudo: Literal["soft", "positive"] = "soft",
        alpha: float = 0.05,
        beta: float = 0.7,
        threshold: float = 0.3,
        smoothing: float = 0.1,
    ) -> None:
        super().__init__(task)
        within(0, 1, threshold=threshold, smoothing=smoothing)
        self.pseudo, self.alpha, self.beta = pseudo, alpha, beta
        self.threshold, self.smoothing = threshold, smoothing
        self.network = task.network()
        self.optimizer = task.make_optimizer(self.network.parameters())

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        first = self.task.first_logits() if clock.epoch == 0 else None
        if first is not None:
            self.taught.copy_(torch.sigmoid(first))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits, taught = self.network(batch.x, batch.z), self.taught[batch.index].float()
        if self.pseudo == "soft":
            labeled, target = taught >= 0, taught
        else:
            labeled, target = taught > self.threshold, torch.full_like(taught, 1 - self.smoothing)
        labeled = labeled & (batch.z == 0)
        pseudo = self.beta * cross_entropy(logits, torch.where(labeled, target, 0.0))
        loss = torch.where(labeled, pseudo, entropy_maximization(logits, batch.z, alpha=self.alpha)).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        """Return observed labels, and the probabilities that unknown entries learn from; one half without any."""
        z, taught = self.observed(rows), self.taught[rows]
        return torch.where(z == 0, torch.where(taught < 0, 0.5, taught), (z > 0).half())
