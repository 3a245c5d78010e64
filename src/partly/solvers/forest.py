"""Extremely randomized trees (Geurts et al. 2006) for all labels at once.

scikit-learn grows the forest. It is stored as tensors, so it is saved without pickle and predicts without scikit-learn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from partly.distributed import threads
from partly.solvers.logistic import Floats

MIN_LEAF_ITEMS = 3
MAX_LEAF_VALUES = 1 << 25  # in all leaves together; above it, leaves get larger
SMOOTH = 1e-3  # keeps log-odds of leaves finite


class Forest(nn.Module):
    """Trees as tensors. A node sends an item to its left child if the feature is at most the threshold; a leaf is its
    own child. `grow`, or loading a saved model, sets the sizes of the tensors."""

    feature: Tensor  # of each node
    threshold: Tensor
    left: Tensor
    right: Tensor
    leaf: Tensor  # index of a leaf
    roots: Tensor  # of each tree
    values: Tensor  # [leaves, L]
    depth: Tensor

    def __init__(self, labels: int) -> None:
        super().__init__()
        for name in ("feature", "left", "right", "leaf", "roots"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int32))
        self.register_buffer("threshold", torch.zeros(0))
        self.register_buffer("values", torch.zeros(0, labels))
        self.register_buffer("depth", torch.zeros((), dtype=torch.int32))

    def grow(self, x: Floats, targets: Floats, trees: int, seed: int) -> None:
        """Grow the forest from features [N, D] and targets between 0 and 1, [L, N].

        Targets are scaled so that rare labels influence the splits.
        """
        from sklearn.ensemble import ExtraTreesRegressor  # slow to import, and most methods do not need it

        share = targets.mean(axis=1)
        scale = (share * (1 - share) + 1e-3) ** 0.25
        items = max(MIN_LEAF_ITEMS, int(np.ceil(len(x) * len(targets) * trees / MAX_LEAF_VALUES)))
        grower = ExtraTreesRegressor(
            trees,
            min_samples_leaf=min(items, max(1, len(x) // 2)),
            max_features="sqrt",
            n_jobs=threads.workers(),
            random_state=seed % 2**32,
        )
        scaled = (targets / scale[:, None]).T
        grower.fit(x, scaled if len(targets) > 1 else scaled.ravel())
        self._store_trees([one.tree_ for one in grower.estimators_], scale)

    def _store_trees(self, trees: list[Any], scale: Floats) -> None:
        device = self.roots.device
        starts = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
        at_leaf = [tree.children_left < 0 for tree in trees]
        positions = [np.arange(tree.node_count) for tree in trees]
        left, right = (
            [
                np.where(leaf, i, getattr(tree, side)) + start
                for tree, leaf, i, start in zip(trees, at_leaf, positions, starts, strict=True)
            ]
            for side in ("children_left", "children_right")
        )
        leaves = np.concatenate(at_leaf)
        arrays = {
            "feature": np.concatenate([np.maximum(tree.feature, 0) for tree in trees]),
            "left": np.concatenate(left),
            "right": np.concatenate(right),
            "leaf": np.cumsum(leaves) - 1,
            "roots": starts,
            "depth": np.array(max(tree.max_depth for tree in trees)),
        }
        for name, array in arrays.items():
            setattr(self, name, torch.from_numpy(array.astype(np.int32)).to(device))
        self.threshold = torch.from_numpy(_round_down(np.concatenate([tree.threshold for tree in trees]))).to(device)
        values = np.concatenate([tree.value[leaf, :, 0] for tree, leaf in zip(trees, at_leaf, strict=True)])
        self.values = torch.from_numpy((values * scale).astype(np.float32)).to(device)

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean of the leaves [B, L] that items reach, between 0 and 1."""
        node = self.roots.long().expand(x.shape[0], -1)
        for _ in range(int(self.depth)):
            low = x.gather(1, self.feature[node].long()) <= self.threshold[node]
            node = torch.where(low, self.left[node], self.right[node]).long()
        mean = nn.functional.embedding_bag(self.leaf[node].long(), self.values, mode="mean")
        return mean.clamp(0, 1)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name, buffer in self.named_buffers(recurse=False):
            if prefix + name in state_dict:
                setattr(self, name, buffer.new_empty(state_dict[prefix + name].shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)


def log_odds(p: Tensor) -> Tensor:
    """Return smoothed log-odds of shares, which may be 0 or 1."""
    return torch.logit((p + SMOOTH) / (1 + 2 * SMOOTH))


def _round_down(threshold: Any) -> Floats:
    """Return the largest float32 that is at most the threshold, so that float32 features split alike."""
    near = threshold.astype(np.float32)
    below: Floats = np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float32)
    return below
