"""fully-supervised learns from wholly known items alone, and from all of them."""

from __future__ import annotations

import numpy as np

from conformance.bench import differing, features, make_pool, observed, picture_files, trained, truth
from partly import methods
from partly.items import as_items

FULL = methods.find("fully-supervised")


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
    steps = {"head": "mlp", "head_settings": {"hidden": 16, "solve": False}}  # else bce has a solved path beside it
    own, plain = (trained(methods.find(name), make_pool(z), **steps) for name in ("fully-supervised", "bce"))
    assert differing(own.weights(), plain.weights()) == []


def test_steps_differ_in_their_items() -> None:
    """With more wholly known items than fit into a batch, each step has some of them."""
    pool = make_pool(truth(), as_items(features()), batch_size=4)
    losses: list[float] = []
    still = {"lr": 0.0, "head": "mlp", "head_settings": {"hidden": 8, "dropout": 0.0}}
    trained(FULL, pool, epochs=1, callback=lambda clock, logs: losses.append(logs["loss"]), **still)
    assert len(set(losses)) == len(losses) == pool.steps


def test_pictures_are_augmented() -> None:
    """As with other methods: what it learns from changes from epoch to epoch."""
    items = picture_files()
    as_they_are, changed = (trained(FULL, make_pool(items=one)) for one in (items.augment(None), items))
    assert differing(as_they_are.weights(), changed.weights())
