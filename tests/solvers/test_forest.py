"""A forest as tensors: what scikit-learn says, wherever a value lies, also after it was saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesRegressor

from partly.solvers import forest as module
from partly.solvers.forest import SMOOTH, Forest, log_odds


def data(labels: int = 3, items: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(items, 5)).astype(np.float32)
    x[:, 1] = np.round(x[:, 1])  # values that many items share
    x[:, 2] = 1e6 + x[:, 2] / 8  # where a float32 has steps of 1/16
    return x, rng.uniform(size=(labels, items)).astype(np.float32) ** 3


@pytest.fixture
def growers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every forest that scikit-learn grows."""
    made: list[Any] = []

    class Remembered(ExtraTreesRegressor):  # type: ignore[misc]
        def fit(self, *given: Any) -> Any:
            made.append(self)
            return super().fit(*given)

    monkeypatch.setattr("sklearn.ensemble.ExtraTreesRegressor", Remembered)
    return made


def said_by_scikit_learn(grower: Any, x: np.ndarray, targets: np.ndarray) -> np.ndarray:
    share = targets.mean(axis=1)
    scale = (share * (1 - share) + 1e-3) ** 0.25  # labels were divided by it
    return grower.predict(x).reshape(len(x), -1) * scale


def probes(grower: Any, x: np.ndarray) -> np.ndarray:
    """Items whose values are the thresholds of nodes, and the float32 above and below."""
    found = [x]
    for tree in (one.tree_ for one in grower.estimators_):
        for feature, threshold in zip(tree.feature, tree.threshold, strict=True):
            if feature < 0:
                continue
            near = np.float32(threshold)
            for value in (near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))):
                one = x[:1].copy()
                one[0, feature] = value
                found.append(one)
    return np.concatenate(found)


@pytest.mark.parametrize("labels", [1, 3])
def test_it_says_what_scikit_learn_says(growers: list[Any], labels: int) -> None:
    x, targets = data(labels)
    forest = Forest(labels)
    forest.grow(x, targets, trees=7, seed=3)
    (grower,) = growers
    everywhere = probes(grower, x)
    assert len(everywhere) > len(x) + 150
    found = forest(torch.from_numpy(everywhere)).numpy()
    assert found.shape == (len(everywhere), labels)
    np.testing.assert_allclose(found, said_by_scikit_learn(grower, everywhere, targets), atol=1e-6)


def test_every_item_falls_into_the_leaf_that_scikit_learn_puts_it_into(growers: list[Any]) -> None:
    x, targets = data()
    forest = Forest(3)
    forest.grow(x, targets, trees=4, seed=0)
    (grower,) = growers
    everywhere = probes(grower, x)
    leaves = grower.apply(everywhere)
    for number, (one, root) in enumerate(zip(grower.estimators_, forest.roots.tolist(), strict=True)):
        node = torch.full((len(everywhere),), root)
        for _ in range(int(forest.depth)):
            value = torch.from_numpy(everywhere)[torch.arange(len(everywhere)), forest.feature[node].long()]
            node = torch.where(value <= forest.threshold[node], forest.left[node], forest.right[node]).long()
        assert (node.numpy() - root == leaves[:, number]).all(), one


def test_thresholds_between_two_float32() -> None:
    """A threshold becomes a float32 that is not above it, or an item would change sides."""
    odd = np.array([0.1, 1 / 3, 16777217.0, -0.1, 2.0, 1e-46, -1e-46, -2.0])
    found = module._round_down(odd)
    assert found.dtype == np.float32
    assert (found.astype(np.float64) <= odd).all()
    assert (np.nextafter(found, np.float32(np.inf)).astype(np.float64) > odd).all()


def test_same_seed_same_forest_and_another_seed_another() -> None:
    x, targets = data()
    one, same, other = (Forest(3) for _ in range(3))
    for forest, seed in ((one, 5), (same, 5), (other, 6)):
        forest.grow(x, targets, trees=3, seed=seed)
    assert all(torch.equal(a, b) for a, b in zip(one.buffers(), same.buffers(), strict=True))
    assert not torch.equal(one(torch.from_numpy(x)), other(torch.from_numpy(x)))


def test_a_state_of_another_size_is_taken() -> None:
    x, targets = data()
    small, large, fresh = (Forest(3) for _ in range(3))
    small.grow(x[:9], targets[:, :9], trees=2, seed=0)
    large.grow(x, targets, trees=6, seed=1)
    expected = large(torch.from_numpy(x))
    for forest in (fresh, small):
        forest.load_state_dict({name: tensor.clone() for name, tensor in large.state_dict().items()})
        assert torch.equal(forest(torch.from_numpy(x)), expected)
    large.load_state_dict(Forest(3).state_dict())  # and back to one that has not grown
    assert not len(large.roots)


def test_a_state_that_lacks_something_is_refused() -> None:
    state = Forest(3).state_dict()
    del state["threshold"]
    with pytest.raises(RuntimeError, match=r"Missing key.*threshold"):
        Forest(3).load_state_dict(state)


def test_few_items_are_enough() -> None:
    for items in (1, 2, 3):
        x, targets = data(items=items)
        forest = Forest(3)
        forest.grow(x, targets, trees=2, seed=0)
        found = forest(torch.from_numpy(x))
        np.testing.assert_allclose(found.mean(dim=0), targets.mean(axis=1), atol=1e-6)  # one leaf, or leaves of one


def test_larger_leaves_where_there_would_be_too_many(growers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x, targets = data()
    Forest(3).grow(x, targets, trees=4, seed=0)
    monkeypatch.setattr(module, "MAX_LEAF_VALUES", 100)  # 80 items x 3 labels x 4 trees / 100: leaves of 10
    few = Forest(3)
    few.grow(x, targets, trees=4, seed=0)
    sizes = [
        min(tree.tree_.n_node_samples[tree.tree_.children_left < 0].min() for tree in g.estimators_) for g in growers
    ]
    assert sizes[0] >= 3
    assert sizes[1] >= 10
    assert few.values.numel() <= 100


def test_what_it_says_is_a_share() -> None:
    x, targets = data()
    forest = Forest(3)
    forest.grow(x, (targets > 0.3).astype(np.float32), trees=5, seed=0)
    found = forest(torch.from_numpy(x))
    assert ((found >= 0) & (found <= 1)).all()


def test_log_odds_by_hand() -> None:
    p = torch.tensor([0.0, 0.25, 0.5, 1.0])
    expected = [np.log((q + SMOOTH) / (1 - q + SMOOTH)) for q in p.tolist()]
    torch.testing.assert_close(log_odds(p), torch.tensor(expected, dtype=torch.float32), rtol=1e-4, atol=1e-5)
