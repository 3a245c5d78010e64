"""Two networks; unknown entries are taken for no, but for those that the other network takes for likely yes.

Take it: where some of the yes are known and no no, and two networks can be afforded; tau_h near the share of unknown
entries that are yes.

Formula:

    network f, of a batch:  left out  the share r tau_h of unknown entries with the largest loss of g,
                                      then the share r tau_l of the rest with the smallest loss of f
                            the rest  -log p where yes, -log(1 - p) where no or unknown
    r = min(1, epoch / (ramp epochs));   g likewise;   prediction (p_f + p_g) / 2

Paper: G. Lyu, B. Sun, X. Deng, S. Feng. Addressing Multi-Label Learning with Partial Labels: From Sample Selection to
Label Selection. AAAI 2025. "CLS", co-label selection.

Known no: an ordinary negative, never left out. Unknown: a no. Of all unknown entries of a batch, the share tau_h with
the largest losses of the other network is left out (equations 1 and 2), then the share tau_l of the rest with the
smallest losses of the network itself, which has nothing to learn from them (3 and 4).

Differs: where the paper is silent. What is kept is summed and divided by B x L, so that nothing else changes with the
shares. Both are 0 in the first epoch and rise to their full size over the share `ramp` of the epochs: the paper's ten
of a hundred. How many are left out is rounded up. The networks start from different weights, and the mean of their
probabilities predicts.

Defaults: the preset "features", tau_h = 0.03 and tau_l = 0.1, was chosen by validation on the features of VOC 2012 with
an MLP head, with one yes per item and with a quarter of the yes known. tau_h is best near the share of the unknown
entries that are yes; tau_l makes almost no difference. ramp = 0.1 is the paper's.

The ablations of the paper: tau_h = 0 ("CLS-H"), tau_l = 0 ("CLS-L"), and correct = true (co-label correction), with
which the likely yes are taken for yes. `preset` takes from the paper what it prints for a data set and the share of the
yes that is known; tau_h and tau_l, where given, come before it.
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
LEFT_OUT = "largest losses left out"  # as likely yes; in `plan`
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
        """Once entries are left out: before, all that is unknown is taken for no."""
        return ramp_up(clock, self.ramp) > 0

    def plan(self, clock: Clock) -> dict[str, float]:
        reached = ramp_up(clock, self.ramp)
        return {LEFT_OUT: reached * self.tau_h, "smallest losses left out": reached * self.tau_l}

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor:
        high, low = self.plan(clock).values()
        return self._side(f, g, z, high, low) + self._side(g, f, z, high, low)

    def _side(self, own: Tensor, peer: Tensor, z: Tensor, high: float, low: float) -> Tensor:
        """The loss of one network, the shares `high` and `low` of the unknown entries being left out."""
        yes = z > 0
        counted = (z != 0) | selection.co_label_selection(own, peer, z, 1 - high, 1 - low)
        if self.correct:
            likely = selection.large_loss(peer, z == 0, high)
            yes, counted = yes | likely, counted | likely
        entries = losses.cross_entropy(torch.where(counted, own, 0.0), yes)
        return torch.where(counted, entries, 0.0).mean()
