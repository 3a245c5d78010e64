"""Uncertainty sampling: the unknown entries whose prediction has the highest entropy.

Paper: D. D. Lewis, W. A. Gale. A Sequential Algorithm for Training Text Classifiers. SIGIR 1994.

Paper: I. Dagan, S. P. Engelson. Committee-Based Sampling for Training Probabilistic Classifiers. ICML 1995.

Differs: the entropy of one network's prediction of one entry, as in the comparison of C.-Y. Hsieh et al. (2021), not
the disagreement of a committee.

Defaults: it has no settings.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import softplus

from partly.clock import Clock
from partly.method import Method
from partly.pool import Batch, Pool
from partly.registry import About

ABOUT = About(in_papers=("Uncertainty sampling",))


def scores(method: Method, pool: Pool, clock: Clock) -> Iterator[dict[str, Tensor]]:
    """Yield the entropy of each prediction, in nats."""
    for batch in pool.in_order():
        logits = predict_logits(method, batch)
        yield {"score": entropy(logits), "probability": logits.sigmoid()}


def predict_logits(method: Method, batch: Batch) -> Tensor:
    """Return logits [B, L] that respect the hierarchy, without a gradient."""
    assert isinstance(batch.x, Tensor)  # selection runs in a single process
    with torch.no_grad():
        return method.logits(batch.x, batch.z)


def entropy(logits: Tensor) -> Tensor:
    """Return -p log p - (1 - p) log(1 - p) for p = sigmoid(logits), computed without log 0 or cancellation."""
    magnitude = logits.abs()
    return softplus(-magnitude) + magnitude * (-magnitude).sigmoid()
