"""Meta-gradient of pseudo-labels: how they change the validation loss after one training step.

With logit s, cross-entropy is softplus(s) - pseudo * s, so a pseudo-label contributes the gradient of its logit to the
step. The answer is the change of the logits along the gradient of the validation loss: one Jacobian-vector product. For
networks that learn only linear layers, the step acts on other items through inner products of inputs alone, and weights
are never formed.

Reference
    C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
    Pseudo-Label Approach. arXiv 2109.14676, 2021. Equations 6 to 8, with means instead of sums.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad, grad
from torch.func import functional_call, jvp

from partly.distributed.share import BatchShard
from partly.losses import bce, cross_entropy
from partly.networks import eval_mode

Weights = dict[str, Tensor]
Loss = Callable[[Tensor], Tensor]
Items = Tensor | BatchShard


def pseudo_label_gradient(
    network: nn.Module, x: Items, pseudo: Tensor, x_val: Items, z_val: Tensor, lr: float
) -> Tensor:
    """Return d (loss on the validation items after one step) / d pseudo: [B, L].

    The step is plain gradient descent on the mean cross-entropy of the items against their pseudo-labels. The loss is
    that of the known validation entries. The network is in evaluation mode and left unchanged; frozen weights stay
    fixed.

    Parameters
    ----------
    network : nn.Module
        Items -> logits.
    x : Tensor, [B, ...]
        Items of the step.
    pseudo : Tensor, [B, L]
        Their pseudo-labels, from 0 to 1.
    x_val : Tensor, [V, ...]
        Validation items.
    z_val : Tensor, [V, L]
        +1 yes, -1 no, 0 unknown.
    lr : float
        Learning rate of the step.

    Returns
    -------
    Tensor, [B, L]
        Negative where a larger pseudo-label would help.

    Examples
    --------
    >>> import torch
    >>> from partly.lookahead import pseudo_label_gradient
    >>> network, x = torch.nn.Linear(1, 1), torch.ones(1, 1)
    >>> yes = torch.ones(1, 1, dtype=torch.int8)
    >>> gradient = pseudo_label_gradient(network, x, torch.full((1, 1), 0.5), x, yes, lr=0.1)
    >>> bool(gradient < 0)  # the item itself is yes: a larger pseudo-label helps
    True
    """

    def train_loss(logits: Tensor) -> Tensor:
        return cross_entropy(logits, pseudo).mean()

    def validation_loss(logits: Tensor) -> Tensor:
        return bce(logits, z_val).mean()

    with eval_mode(network):
        change = None
        if not (isinstance(x, BatchShard) or isinstance(x_val, BatchShard)):
            change = _through_layers(network, x, train_loss, x_val, validation_loss, lr)
        if change is None:
            change = _through_weights(network, x, train_loss, x_val, validation_loss, lr)
    return change * (lr / pseudo.numel())


# ---------------------------------------------------------------- any network


def _through_weights(
    network: nn.Module, x: Items, train_loss: Loss, x_val: Items, validation_loss: Loss, lr: float
) -> Tensor:
    """Return the change of the logits of x along the validation gradient, in forward mode. [B, L]"""
    _load_rules()
    weights = {name: weight.detach() for name, weight in network.named_parameters() if weight.requires_grad}
    downhill = _gradient(network, weights, x, train_loss)
    ahead = {name: weight - lr * downhill[name] for name, weight in weights.items()}
    slope = _gradient(network, ahead, x_val, validation_loss)

    def changes(own: Tensor, _: Tensor | None = None) -> Tensor:
        change: Tensor = jvp(lambda at: functional_call(network, at, (own,)), (weights,), (slope,))[1]
        return change

    change: Tensor = x.spread(changes) if isinstance(x, BatchShard) else changes(x)
    return change


def _gradient(network: nn.Module, weights: Weights, x: Items, loss: Loss) -> Weights:
    """Return the gradient at these weights; 0 for weights that the loss does not depend on."""
    weights = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
    with torch.enable_grad():
        value = loss(functional_call(network, weights, (x,)))
    gradients = grad(value, list(weights.values()), materialize_grads=True)
    if isinstance(x, BatchShard):
        x.group.average(gradients)
    return dict(zip(weights, gradients, strict=True))


@cache
def _load_rules() -> None:
    """Load torch's forward-mode rules, which emit a deprecation warning of their own."""
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore", DeprecationWarning)
        forward_ad.make_dual(torch.zeros(1), torch.zeros(1))


# ---------------------------------------------------------------- linear layers


def _through_layers(
    network: nn.Module, x: Tensor, train_loss: Loss, x_val: Tensor, validation_loss: Loss, lr: float
) -> Tensor | None:
    """Return the same for a network that learns only linear layers, each used once on one row per item; else None.

    On the items x a layer has inputs a and gradients d. Its step adds -lr (u a') d to the output for other inputs u,
    and a gradient g there changes the output for a by (a u') g; both products are one matrix, [V, B].
    """
    layers = [part for part in network.modules() if isinstance(part, nn.Linear) and part.weight.requires_grad]
    # Shared weights, frozen biases and derived weights are not supported.
    used = [id(weight) for layer in layers for weight in (layer.weight, layer.bias) if weight is not None]
    if sorted(used) != sorted(id(weight) for weight in network.parameters() if weight.requires_grad):
        return None
    inputs: dict[nn.Module, Tensor] = {}
    outputs: dict[nn.Module, Tensor] = {}
    products: dict[nn.Module, Tensor] = {}
    simple = True

    def record(layer: nn.Linear, given: Tensor, made: Tensor) -> Tensor:
        nonlocal simple
        simple = simple and layer not in outputs and given.ndim == 2 and len(given) == len(x)
        inputs[layer], outputs[layer] = given.detach(), made
        return made.clone()  # later layers may write in place

    def after_step(layer: nn.Linear, given: Tensor, made: Tensor) -> Tensor:
        product = given @ inputs[layer].T + (layer.bias is not None)  # a bias is the weight of a constant 1
        products[layer] = product.detach()
        outputs[layer] = made - lr * (product @ downhill[layer])
        return outputs[layer].clone()

    with torch.enable_grad():
        with _hook_layers(layers, record):
            logits = network(x)
        if not simple or len(outputs) < len(layers):
            return None
        first = list(outputs.values())
        downhill = dict(
            zip(outputs, grad(train_loss(logits), first, retain_graph=True, materialize_grads=True), strict=True)
        )
        with _hook_layers(layers, after_step):
            value = validation_loss(network(x_val))
        slopes = grad(value, list(outputs.values()), materialize_grads=True)
        moves = [products[layer].T @ slope for layer, slope in zip(outputs, slopes, strict=True)]
        # Forward mode by double backward through the existing graph.
        probe = torch.zeros_like(logits, requires_grad=True)
        pulled = grad(logits, first, probe, create_graph=True, materialize_grads=True)
        return grad(pulled, probe, moves)[0]


@contextmanager
def _hook_layers(layers: Sequence[nn.Linear], see: Callable[[nn.Linear, Tensor, Tensor], Tensor]) -> Iterator[None]:
    """Replace the output of layers by `see(layer, input, output)` within this context."""
    handles = [layer.register_forward_hook(lambda part, given, made: see(part, given[0], made)) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
