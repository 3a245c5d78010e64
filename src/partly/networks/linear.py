"""A linear head: logits straight from the features.

Under a loss that is a weighted cross-entropy of each entry (`bce`, `assume-negative`, ...), `linear` is solved, with a
regularization strength chosen by cross-validation over the training items. `solve` = false trains it step by step.
Weights then start at 0, and biases at the log-odds of the known entries if negatives are known (`Task.network`).
"""

from __future__ import annotations

from torch import nn

from partly.networks.layers import FeatureUnion

WARM_LINEAR = "warm-linear"
LINEAR_HEADS = ("linear", WARM_LINEAR)  # heads that are one matrix


def linear(inputs: int, labels: int, *, solve: bool = True) -> tuple[nn.Module, nn.Module]:
    """Logits straight from the features: solved where the loss allows it, else trained from zero."""
    return FeatureUnion({"linear": nn.Identity()}, {"linear": inputs}), nn.Linear(inputs, labels)


def warm_linear(inputs: int, labels: int) -> tuple[nn.Module, nn.Module]:
    """A linear head whose training starts at the solved logistic regressions of the known entries.

    Without known negatives it starts as `linear` does. Behind a backbone the regressions are solved on its initial
    features: training a random head first would distort pretrained features.

    Reference
        A. Kumar, A. Raghunathan, R. Jones, T. Ma, P. Liang. Fine-Tuning can Distort Pretrained Features and
        Underperform Out-of-Distribution. ICLR 2022.
    """
    return linear(inputs, labels)


PROVIDES = {"linear": linear, WARM_LINEAR: warm_linear}
