"""Start the head `warm-linear` at the logistic regressions of the known entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from partly.clock import seed_for
from partly.items import BLOCK, stream_batches
from partly.method import Method, Task
from partly.networks import Network
from partly.networks.network import eval_mode
from partly.solvers import folds

Floats = npt.NDArray[np.float32]
IMAGES_PER_CHUNK = 64  # images per forward pass
DIFFERENCE = 0.1  # of several heads from the solution, as a share of the initial weights of a random head
MIN_SCALE = 1e-6  # lower bound of the scale of constant features


@torch.no_grad()
def start_heads(method: Method, task: Task) -> None:
    """Set the linear heads of a new method to the solved weights. Several heads keep small random differences."""
    networks = [part for part in method.modules() if isinstance(part, Network) and part.warm]
    if not networks or task.observed is None:
        return
    z = task.observed.rows(slice(None)).T
    if not (z < 0).any():  # only yes is known: unknown entries count as no
        z = np.where(z > 0, z, -1)
    x, mean, scale = _head_inputs(method, task, networks[0])
    fold = folds.assign_folds(len(task.items), seed_for(task.config.seed, "folds"))
    fit = folds.solve(x, (z != 0).astype(np.float32), (z > 0).astype(np.float32), fold)
    w = fit.w / scale
    for network in networks:
        network.head.get_parameter("weight").mul_(DIFFERENCE).add_(torch.from_numpy(w))
        network.head.get_parameter("bias").copy_(torch.from_numpy(fit.b - w @ mean))


def _head_inputs(method: Method, task: Task, network: Network) -> tuple[Any, Floats, Floats]:
    """Return the standardized inputs of the head [N, D], with their mean and scale.

    A network standardizes features itself, but not the output of a backbone.
    """
    if task.config.backbone is None:
        x = method.standardized_features(task.items, BLOCK, network.get_submodule("features.0"))
        return x, np.zeros(x.shape[1], np.float32), np.ones(x.shape[1], np.float32)
    blocks = [slice(i, i + IMAGES_PER_CHUNK) for i in range(0, len(task.items), IMAGES_PER_CHUNK)]
    with eval_mode(network):
        features = torch.cat([network.embed(batch) for batch in stream_batches(task.items, blocks)]).numpy()
    mean, scale = features.mean(axis=0), np.maximum(features.std(axis=0), MIN_SCALE)
    features -= mean  # in place, since `folds.memory` counts the features only twice
    features /= scale
    return features, mean, scale
