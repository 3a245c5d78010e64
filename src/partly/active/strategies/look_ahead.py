"""Look-ahead: cross-entropy between the prediction now and after one gradient step towards pseudo-labels.

Paper: C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
Pseudo-Label Approach. arXiv 2109.14676, 2021.

Equations 9 to 11, algorithm 2: predict; give every unknown entry the pseudo-label of equation 8; make one
gradient step towards these; the score of an entry is the cross-entropy between its prediction before and after. Its two
parts are reported: the entropy of the prediction before, and its KL divergence from the prediction after. For a tiny
step the divergence vanishes, and the strategy is `uncertainty`.

Differs: means instead of sums, as everywhere. Pseudo-labels are computed in blocks of items, each with its own step
(equation 6 is for all items at once); the look-ahead step is one, for all items. Up to `fine_items` fully known items,
drawn again in each round, judge the pseudo-labels. If no item is fully known, partly known items are used.

Defaults: `rate` is the learning rate of the step on the mean over all entries; the paper names none. It was chosen on
validation parts of seven settings. Large steps overshoot, and tiny ones give the questions of `uncertainty`. 0.03 is
the largest rate that costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from partly.active.strategies.uncertainty import entropy, predict_logits
from partly.clock import Clock
from partly.errors import SettingError, within
from partly.lookahead import pseudo_label_gradient
from partly.losses import cross_entropy
from partly.method import Method
from partly.pool import Batch, Pool
from partly.registry import About

ABOUT = About(in_papers=("Ours (look-ahead)",))


def scores(
    method: Method, pool: Pool, clock: Clock, *, rate: float = 0.03, fine_items: int = 256
) -> Iterator[dict[str, Tensor]]:
    """Yield the cross-entropy between the prediction before and after a step, and its two parts."""
    within(0, float("inf"), rate=rate)
    within(1, float("inf"), fine_items=fine_items)
    ahead = _parameters_after_step(method, pool, _reference_items(pool, clock, fine_items), rate)
    for batch in pool.in_order():
        before = predict_logits(method, batch)
        with torch.no_grad():
            after = method.enforce_hierarchy(functional_call(method, ahead, (batch.x, batch.z)))
        cross, uncertainty = cross_entropy(after, before.sigmoid()), entropy(before)
        scores = {"score": cross, "entropy": uncertainty, "divergence": cross - uncertainty}
        yield scores | {"probability": before.sigmoid()}


def check(method: Method) -> dict[str, Tensor]:
    """Return the parameters that a step would change; refuse a method without any."""
    weights: dict[str, Tensor] = {name: weight for name, weight in method.named_parameters() if weight.requires_grad}
    if not weights:
        raise SettingError(
            "The query look-ahead needs a method that is trained by gradients, and this one is not. "
            "Use another query (uncertainty, random), or another method."
        )
    return weights


def _parameters_after_step(method: Method, pool: Pool, reference: Batch, rate: float) -> dict[str, Tensor]:
    """Return the parameters after one gradient step towards the pseudo-labels of all items."""
    weights = check(method)
    gradients = [torch.zeros_like(weight) for weight in weights.values()]
    for batch in pool.in_order():
        targets = torch.where(batch.z == 0, 0.5, (batch.z > 0).float())
        slope = pseudo_label_gradient(method, batch.x, targets, reference.x, reference.z, rate)
        pseudo = torch.where(batch.z == 0, (slope <= 0).float(), targets)
        loss = cross_entropy(method(batch.x, batch.z), pseudo).sum() / (len(pool) * pseudo.shape[1])
        batch_gradients = torch.autograd.grad(loss, list(weights.values()), materialize_grads=True)
        gradients = [total + part for total, part in zip(gradients, batch_gradients, strict=True)]
    pairs = zip(weights.items(), gradients, strict=True)
    return {name: weight.detach() - rate * gradient for (name, weight), gradient in pairs}


def _reference_items(pool: Pool, clock: Clock, count: int) -> Batch:
    """Return up to `count` fully known items, or partly known ones if there are none."""
    rows = pool.fully_labelled.numpy() if len(pool.fully_labelled) else np.flatnonzero(pool.labels.known_per_item())
    if not len(rows):
        raise SettingError(
            "The query look-ahead needs known labels, and these items have none. "
            "Use the query uncertainty, or add items with known labels."
        )
    sample = np.sort(clock.epoch_rng("judges").permutation(rows)[:count])
    return pool.take(torch.from_numpy(sample))
