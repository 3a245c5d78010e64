"""A linear head whose training by steps begins at the solved logistic regressions of the known entries.

For methods that go on from a trained model, as IMCL and all that its paper compares with do: what they add is then
seen, and not how far steps from 0 get. Where no no is known there is nothing to solve, and it starts as `linear` does.
A loss that is itself solved (`bce`, ...) is solved here too.

Behind a backbone the regressions are solved on its features as it comes, and then both are trained: a head that begins
at random would first spoil what a pretrained backbone knows (A. Kumar and others. Fine-Tuning can Distort Pretrained
Features and Underperform Out-of-Distribution. ICLR 2022, "LP-FT").

On a validation part of VOC 2012, 10 % known, one seed, mAP was 0.800 for `bce`, and from there `imcl` (warmup = 0) had
0.800, without both of its losses 0.801, `lsep` (warmup = 0) 0.800, `latent-noise` 0.801 and `curriculum` by thresholds
0.805; `lsep` with `linear` had 0.770.
"""

from __future__ import annotations

from torch import nn

from partly.networks import linear

LINEAR = ("linear", "warm-linear")  # heads that are one matrix


def head(inputs: int, labels: int) -> tuple[nn.Module, nn.Module]:
    return linear.head(inputs, labels)
