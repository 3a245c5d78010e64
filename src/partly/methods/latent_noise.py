"""What is in an item and what gets said of it are told apart: a visual and a relevance classifier.

Take it: where what gets mentioned depends on the item: tags, captions, reports.

Formula:

    P(said) = P(said | there) p + P(said | not there) (1 - p)
    yes      -log P(said)
    no       -log(1 - P(said))
    unknown  0 (as no with `unknown_as_no`)

Paper: I. Misra, C. L. Zitnick, M. Mitchell, R. Girshick. Seeing through the Human Reporting Bias: Visual Classifiers
from Noisy Human-Centric Labels. CVPR 2016. The visual classifier says whether a label is there, the relevance
classifier whether it is said: P(said) = P(said | there) P(there) + P(said | not there) P(not there), both conditionals
learned for each item and label from the item's features. Only P(said) is trained.

Known no: not said. Unknown: does not count, as in the use by Huynh and Elhamifar (CVPR 2020), who train on known labels
alone; with `unknown_as_no` the same as a known no, as in the paper, where what nobody mentions is all there is.

Differs: two logits for the conditionals where the paper has four of a joint distribution that it normalises: the same
functions. They start at the paper's odds, 27 to 1 for saying what is there and against saying what is not, alike for
all items. The paper starts from a trained classifier: here the visual one is first trained by itself, for a share of
the epochs. Which of the two predicts is a setting; the paper reports both.

Defaults: warmup = 0.5 by validation with a linear head on the features of VOC 2012 with 10 % known: without it the
visual classifier learns little, because the conditionals explain the labels by themselves.
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

ABOUT = About(search={"predicts": ["visual", "relevance"], "warmup": (0.0, 0.9)}, in_papers=("Latent Noise (visual)",))
ODDS = 3.29  # log 27, the logit at which what is there is said


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
            self.noise.bias.copy_(torch.tensor([ODDS, -ODDS]).repeat_interleave(task.labels))
        self.optimiser = task.optimiser(self.parameters())

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        visual, relevance = self._both(batch.x, batch.z)
        # Both at all times, so that the optimiser always has a gradient for all of its parameters.
        share = float(self._said(clock))
        loss = ((1 - share) * self.loss(visual, batch.z) + share * self.loss(relevance, batch.z)).mean()
        self.step(loss, clock, self.optimiser)
        return {"loss": loss.item()}

    def _said(self, clock: Clock) -> bool:
        """Whether what is said is trained by now, and no longer what is there by itself."""
        return clock.progress >= self.warmup

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"what is said is learned": self._said(clock)}

    def may_be_best(self, clock: Clock) -> bool:
        """Once a step of the second phase was made; its last step decides."""
        return self._said(replace(clock, step=clock.steps - 1))

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        visual, relevance = self._both(x, z)
        return visual if self.predicts == "visual" else relevance

    def _both(self, x: Tensor | BatchShard, z: Tensor | None) -> tuple[Tensor, Tensor]:
        """The logits of both classifiers. [B, L]"""
        features, visual = self.network.features_and_logits(x, z)
        return visual, mixture(visual, *self.noise(features).chunk(2, dim=1))


def mixture(there: Tensor, said_if_there: Tensor, said_if_not: Tensor) -> Tensor:
    """The logit of P(said | there) P(there) + P(said | not there) P(not there), from three logits. [B, L]"""
    yes, no = F.logsigmoid(there), F.logsigmoid(-there)
    said = torch.logaddexp(F.logsigmoid(said_if_there) + yes, F.logsigmoid(said_if_not) + no)
    unsaid = torch.logaddexp(F.logsigmoid(-said_if_there) + yes, F.logsigmoid(-said_if_not) + no)
    return said - unsaid
