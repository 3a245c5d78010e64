"""A visual classifier of what is present, and a relevance classifier of what gets mentioned.

When to use
    Whether a label is mentioned depends on the item: tags, captions, reports.

Formula
    P(mentioned) = P(mentioned | present) p + P(mentioned | absent) (1 - p)
    yes      -log P(mentioned)
    no       -log(1 - P(mentioned))
    unknown  0 (as no with `unknown_as_no`)

Reference
    I. Misra, C. L. Zitnick, M. Mitchell, R. Girshick. Seeing through the Human Reporting Bias: Visual Classifiers
    from Noisy Human-Centric Labels. CVPR 2016.

Known negatives
    Labels that were not mentioned. Unknown entries do not count, as in the use by Huynh and Elhamifar (CVPR 2020).
    With `unknown_as_no` they are negatives, as in the paper.

Differences from the paper
    Two logits for the conditionals replace the paper's four of a normalized joint distribution: the same functions.
    They start at the paper's odds of 27 to 1, equal for all items. The paper starts from a trained classifier; here
    the visual classifier is trained alone for the share `warmup` of the epochs. `predicts` selects the classifier that
    predicts; the paper reports both.

Defaults
    warmup = 0.5 was chosen by validation: without it, the conditionals explain the labels and the visual classifier
    learns little.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import skip_init

from partly.clock import Clock
from partly.distributed.share import BatchShard
from partly.errors import within
from partly.losses import assume_negative, bce
from partly.method import About, Method, Task
from partly.pool import Batch

ABOUT = About(
    learns_from="no",
    search={"predicts": ["visual", "relevance"], "warmup": (0.0, 0.9)},
    in_papers=("Latent Noise (visual)",),
)
INITIAL_LOG_ODDS = 3.29  # log 27, as in the paper


class LatentNoise(Method):
    def __init__(
        self,
        task: Task,
        *,
        predicts: Literal["visual", "relevance"] = "visual",
        warmup: float = 0.5,
        unknown_as_no: bool = False,
    ) -> None:
        super().__init__(task)
        within(0, 1, warmup=warmup)
        self.predicts, self.warmup = predicts, warmup
        self.loss = assume_negative if unknown_as_no else bce
        self.network = task.network()
        self.noise = skip_init(nn.Linear, self.network.width(task.items.shape), 2 * task.labels)
        nn.init.zeros_(self.noise.weight)
        with torch.no_grad():
            self.noise.bias.copy_(torch.tensor([INITIAL_LOG_ODDS, -INITIAL_LOG_ODDS]).repeat_interleave(task.labels))
        self.optimizer = task.make_optimizer(self.parameters())

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        visual, relevance = self._both_logits(batch.x, batch.z)
        # Both losses always enter, so that every parameter has a gradient.
        share = float(self._trains_relevance(clock))
        loss = ((1 - share) * self.loss(visual, batch.z) + share * self.loss(relevance, batch.z)).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}

    def _trains_relevance(self, clock: Clock) -> bool:
        """Tell whether the warm-up of the visual classifier is over."""
        return clock.progress >= self.warmup

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"what is said is learned": self._trains_relevance(clock)}

    def may_be_best(self, clock: Clock) -> bool:
        """Return True once a step of the second phase was made; the last step of an epoch decides."""
        return self._trains_relevance(replace(clock, step=clock.steps - 1))

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        visual, relevance = self._both_logits(x, z)
        return visual if self.predicts == "visual" else relevance

    def _both_logits(self, x: Tensor | BatchShard, z: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the logits of both classifiers. [B, L]"""
        features, visual = self.network.features_and_logits(x, z)
        return visual, mixture(visual, *self.noise(features).chunk(2, dim=1))


def mixture(there: Tensor, said_if_there: Tensor, said_if_not: Tensor) -> Tensor:
    """Return the logit of P(said | there) P(there) + P(said | not there) P(not there), from three logits. [B, L]"""
    yes, no = F.logsigmoid(there), F.logsigmoid(-there)
    mentioned = torch.logaddexp(F.logsigmoid(said_if_there) + yes, F.logsigmoid(said_if_not) + no)
    unsaid = torch.logaddexp(F.logsigmoid(-said_if_there) + yes, F.logsigmoid(-said_if_not) + no)
    return mentioned - unsaid
