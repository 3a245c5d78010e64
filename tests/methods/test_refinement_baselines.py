"""fully-supervised learns from wholly known items alone; one-class takes what is unknown for yes, at a weight."""

from __future__ import annotations

import math

import numpy as np
import torch

from conformance.bench import differing, features, make_pool, observed, trained, truth
from partly import catalogue
from partly.methods import one_class

FULL = catalogue.find("fully-supervised")


def test_partly_known_items_change_nothing() -> None:
    z = observed()
    partly_known = (z == 0).any(axis=1, keepdims=True)
    other = np.where(partly_known, -z, z)
    assert (other != z).any()
    one, two = (trained(FULL, make_pool(labels)).weights() for labels in (z, other))
    assert differing(one, two) == []


def test_every_wholly_known_item_counts() -> None:
    z = observed()
    whole = np.flatnonzero((z != 0).all(axis=1))
    assert len(whole) >= 2
    as_is = trained(FULL, make_pool(z)).weights()
    for item in whole:
        turned = z.copy()
        turned[item] *= -1
        assert differing(as_is, trained(FULL, make_pool(turned)).weights())


def test_where_none_is_wholly_known_it_is_bce() -> None:
    z = observed()
    z[:, 0] = 0
    own, plain = (trained(catalogue.find(name), make_pool(z)) for name in ("fully-supervised", "bce"))
    assert differing(own.weights(), plain.weights()) == []


def test_steps_differ_in_their_items() -> None:
    """With more wholly known items than fit into a batch, each step has some of them."""
    pool = make_pool(truth(), features(), batch_size=4)
    losses: list[float] = []
    trained(FULL, pool, epochs=1, lr=0.0, head="linear", watch=lambda clock, logs: losses.append(logs["loss"]))
    assert len(set(losses)) == len(losses) == pool.steps


def test_one_class() -> None:
    logits = torch.tensor([[2.0, -1.0, 0.5], [-0.2, 1.5, -2.5]], dtype=torch.float64)
    z = torch.tensor([[1, 0, -1], [0, -1, 0]], dtype=torch.int8)
    found = one_class.loss(logits, z, weight=0.3)
    for i in range(2):
        for j in range(3):
            yes = math.log1p(math.exp(-logits[i, j].item()))
            no = math.log1p(math.exp(logits[i, j].item()))
            wanted = {1: yes, -1: no, 0: 0.3 * yes}[int(z[i, j])]
            assert math.isclose(found[i, j].item(), wanted, rel_tol=1e-12)
