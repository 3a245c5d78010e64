"""What a pseudo-label would do to the validation loss one step on.

Paper: C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
Pseudo-Label Approach. arXiv 2109.14676, 2021. Equations 6 to 8, with means instead of sums.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, jvp

from partly.losses import bce, cross_entropy
from partly.networks import predicting

Weights = dict[str, Tensor]


def pseudo_label_gradient(
    network: nn.Module, x: Tensor, pseudo: Tensor, x_val: Tensor, z_val: Tensor, lr: float
) -> Tensor:
    """d (loss on the validation items after one step) / d pseudo: [B, L].

    The step is one of plain gradient descent, at rate `lr`, on the mean cross-entropy of the items x [B, ...] against
    pseudo [B, L], values from 0 to 1. The loss is that on the known entries of z_val [V, L]. The network is looked at
    as it predicts (no dropout, batch normalisation at rest) and left as it was; frozen weights stay where they are.
    """
    _load_rules()
    with predicting(network):
        weights = {name: weight.detach() for name, weight in network.named_parameters() if weight.requires_grad}
        downhill = _gradient(network, weights, x, lambda logits: cross_entropy(logits, pseudo))
        ahead = {name: weight - lr * downhill[name] for name, weight in weights.items()}
        slope = _gradient(network, ahead, x_val, lambda logits: bce(logits, z_val))
        # With logit s, cross-entropy is softplus(s) - pseudo * s: what a pseudo-label adds to the step is the gradient
        # of its logit. So the answer is how the logits change along `slope`, all at once in one forward-mode product.
        change: Tensor = jvp(lambda at: functional_call(network, at, (x,)), (weights,), (slope,))[1]
    return change * (lr / pseudo.numel())


def _gradient(network: nn.Module, weights: Weights, x: Tensor, loss: Callable[[Tensor], Tensor]) -> Weights:
    """Of the mean loss, at these weights; 0 for those that it does not depend on."""
    weights = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
    with torch.enable_grad():
        mean = loss(functional_call(network, weights, (x,))).mean()
    slopes = torch.autograd.grad(mean, list(weights.values()), materialize_grads=True)
    return dict(zip(weights, slopes, strict=True))


@cache
def _load_rules() -> None:
    """Torch loads its rules of forward mode at their first use, through scripts that it calls deprecated itself."""
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore", DeprecationWarning)
        forward_ad.make_dual(torch.zeros(1), torch.zeros(1))
