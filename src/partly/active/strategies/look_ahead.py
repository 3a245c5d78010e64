"""The unknown entries whose prediction is least sure of what it would become one step on, by pseudo-labels.

Paper: C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
Pseudo-Label Approach. arXiv 2109.14676, 2021.

Equations 9 to 11, algorithm 2: predict; give every unknown entry the pseudo-label of equation 8; make one step of
gradient descent towards these; the score of an entry is the cross-entropy between its prediction before and after. It
is reported in two parts, the entropy of the prediction before and its divergence (KL) from the one after: where the
step is tiny the second vanishes, and this is `uncertainty`.

Differs: means instead of sums, as everywhere. Pseudo-labels are found a block of items at a time, each block with a
step of its own (equation 6 is for all items at once); the step that is looked along is one, for all items. At most
`fine_items` wholly known items, drawn anew in each round, judge the pseudo-labels. Where no item is wholly known, items
of which something is known take their place.

Defaults: `rate` is that of the step, on the mean over all entries; the paper names none. It was chosen on validation
parts, six rounds, one seed: `bce` with an MLP head on scene (20 % known), VOC 2012, yeast and COCO (10 %), with a
linear head on VOC 2012, and `refine` with coarse labels on VOC 2012 and COCO; 60 to 500 questions a round. Means over
the seven, with rates 0.01, 0.03, 0.1, 0.3 and 1: area under mAP 0.551, 0.550, 0.549, 0.540, 0.538 (`uncertainty` 0.551,
`random` 0.526), under P@1 0.750, 0.749, 0.747, 0.740, 0.733 (0.750, 0.711); of the first questions `uncertainty` asks
96, 86, 66, 45 and 20 % too. Large steps overshoot, tiny ones are `uncertainty`, and nothing between is better than
that: 0.03 is the largest that costs next to nothing.
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
    ahead = _ahead(method, pool, _judges(pool, clock, fine_items), rate)
    for batch in pool.in_order():
        before = predict_logits(method, batch)
        with torch.no_grad():
            after = method.enforce_hierarchy(functional_call(method, ahead, (batch.x, batch.z)))
        cross, unsure = cross_entropy(after, before.sigmoid()), entropy(before)
        scores = {"score": cross, "entropy": unsure, "divergence": cross - unsure}
        yield scores | {"probability": before.sigmoid()}


def check(method: Method) -> dict[str, Tensor]:
    """The parameters that a step would change; refuses a method without any."""
    weights: dict[str, Tensor] = {name: weight for name, weight in method.named_parameters() if weight.requires_grad}
    if not weights:
        raise SettingError(
            "The query look-ahead needs a method that learns by gradients; this one has none to follow. "
            "Ask by another query (uncertainty, random), or take another method."
        )
    return weights


def _ahead(method: Method, pool: Pool, judges: Batch, rate: float) -> dict[str, Tensor]:
    """The parameters after one step towards the pseudo-labels of all items."""
    weights = check(method)
    slopes = [torch.zeros_like(weight) for weight in weights.values()]
    for batch in pool.in_order():
        given = torch.where(batch.z == 0, 0.5, (batch.z > 0).float())
        slope = pseudo_label_gradient(method, batch.x, given, judges.x, judges.z, rate)
        pseudo = torch.where(batch.z == 0, (slope <= 0).float(), given)
        loss = cross_entropy(method(batch.x, batch.z), pseudo).sum() / (len(pool) * pseudo.shape[1])
        parts = torch.autograd.grad(loss, list(weights.values()), materialize_grads=True)
        slopes = [total + part for total, part in zip(slopes, parts, strict=True)]
    return {name: weight.detach() - rate * slope for (name, weight), slope in zip(weights.items(), slopes, strict=True)}


def _judges(pool: Pool, clock: Clock, most: int) -> Batch:
    """Wholly known items, or else items of which something is known; `most` of them at most."""
    able = pool.fully_labelled.numpy() if len(pool.fully_labelled) else np.flatnonzero(pool.labels.known_per_item())
    if not len(able):
        raise SettingError(
            "The query look-ahead judges by known labels, and of these items none is known. "
            "Ask by the query uncertainty, or add items of which something is known."
        )
    drawn = np.sort(clock.epoch_rng("judges").permutation(able)[:most])
    return pool.take(torch.from_numpy(drawn))
