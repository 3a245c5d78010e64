"""Co-label selection (CLS): two networks exclude each other's likely false negatives.

When to use
    Only positives are observed (some of them), and training two networks is affordable. Set tau_h near the expected
    share of positives among unknown entries.

Formula
    For network f on a batch, over unknown entries:
        drop the r * tau_h share with the largest loss under g       (likely positives)
        then drop the r * tau_l share with the smallest loss under f (nothing left to learn)
    Remaining entries: cross-entropy, unknown treated as negative.
    r = min(1, epoch / (ramp * epochs)); g likewise. Prediction: mean of both networks' probabilities.

Reference
    G. Lyu, B. Sun, X. Deng, S. Feng. Addressing Multi-Label Learning with Partial Labels: From Sample Selection to
    Label Selection. AAAI 2025. Equations 1 to 4, "CLS".

Known negatives
    Ordinary negatives; never dropped.

Differences from the paper
    Where the paper leaves details open: the loss of the remaining entries is divided by B x L. Both shares rise from 0
    in the first epoch over the share `ramp` of the epochs (the paper: ten of a hundred epochs). Counts are rounded up.
    The networks start from different weights, and the mean of their probabilities predicts.

Defaults
    The preset "features" (tau_h = 0.03, tau_l = 0.1) was chosen by validation on features. The other presets are the
    paper's values per data set and share of known positives; explicit tau_h and tau_l take precedence. ramp = 0.1 is
    the paper's. Ablations of the paper: tau_h = 0 ("CLS-H"), tau_l = 0 ("CLS-L"), and correct = true (co-label
    correction), which takes likely positives as positives.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from partly import losses, selection
from partly.clock import Clock
from partly.co_training import Predict, TwoNetworks, ramp_up
from partly.errors import within
from partly.method import About, Task

ABOUT = About(search={"tau_h": (0.0, 0.1), "tau_l": (0.0, 0.5), "ramp": (0.0, 1.0)}, in_papers=("CLS",))
LEFT_OUT = "largest losses left out"  # likely positives; in `plan`
PRESETS = {  # tau_h, tau_l
    "features": (0.03, 0.1),
    "voc-75": (0.002, 0.02),
    "voc-50": (0.003, 0.02),
    "voc-25": (0.005, 0.02),
    "voc-single": (0.005, 0.02),
    "coco-75": (0.005, 0.06),
    "coco-50": (0.010, 0.06),
    "coco-25": (0.012, 0.06),
    "coco-single": (0.012, 0.06),
    "nus-wide-75": (0.006, 0.06),
    "nus-wide-50": (0.012, 0.06),
    "nus-wide-25": (0.020, 0.06),
    "nus-wide-single": (0.020, 0.06),
}
Preset = Literal[
    "features",
    "voc-75",
    "voc-50",
    "voc-25",
    "voc-single",
    "coco-75",
    "coco-50",
    "coco-25",
    "coco-single",
    "nus-wide-75",
    "nus-wide-50",
    "nus-wide-25",
    "nus-wide-single",
]


class Cls(TwoNetworks):
    def __init__(
        self,
        task: Task,
        *,
        tau_h: float | None = None,
        tau_l: float | None = None,
        ramp: float = 0.1,
        preset: Preset = "features",
        correct: bool = False,
        predict: Predict = "mean",
    ) -> None:
        super().__init__(task, predict)
        high, low = PRESETS[preset]
        self.tau_h = high if tau_h is None else tau_h
        self.tau_l = low if tau_l is None else tau_l
        within(0, 1, tau_h=self.tau_h, tau_l=self.tau_l, ramp=ramp)
        self.ramp, self.correct = ramp, correct

    def may_be_best(self, clock: Clock) -> bool:
        """Return True once entries are dropped; before, it is `assume-negative`."""
        return ramp_up(clock, self.ramp) > 0

    def plan(self, clock: Clock) -> dict[str, float]:
        reached = ramp_up(clock, self.ramp)
        return {LEFT_OUT: reached * self.tau_h, "smallest losses left out": reached * self.tau_l}

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor:
        high, low = self.plan(clock).values()
        return self._side(f, g, z, high, low) + self._side(g, f, z, high, low)

    def _side(self, own: Tensor, peer: Tensor, z: Tensor, high: float, low: float) -> Tensor:
        """Return the loss of one network, with the shares `high` and `low` of unknown entries dropped."""
        yes = z > 0
        counted = (z != 0) | selection.co_label_selection(own, peer, z, 1 - high, 1 - low)
        if self.correct:
            likely = selection.large_loss(peer, z == 0, high)
            yes, counted = yes | likely, counted | likely
        entries = losses.cross_entropy(torch.where(counted, own, 0.0), yes)
        return torch.where(counted, entries, 0.0).mean()
