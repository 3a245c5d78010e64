"""Where the head `warm-linear` starts: at the logistic regressions of the known entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from partly.clock import seed_for
from partly.items import BLOCK, streamed
from partly.method import Method, Task
from partly.networks import Network
from partly.networks.network import eval_mode
from partly.solvers import folds

Floats = npt.NDArray[np.float32]
PICTURES = 64  # that a backbone is shown at a time
LEAST = 1e-6  # scale of a feature, so that one that never changes is not divided by nothing


@torch.no_grad()
def start_heads(method: Method, task: Task) -> None:
    """Put the linear heads of a new method there, if it has any. Where there are several they keep the little by which
    they differ, or they would stay equal."""
    networks = [part for part in method.modules() if isinstance(part, Network) and part.warm]
    if not networks or task.observed is None or not task.observed.counts()[1].any():
        return
    z = task.observed.rows(slice(None)).T
    x, mean, scale = _head_inputs(method, task, networks[0])
    fold = folds.assign_folds(len(task.items), seed_for(task.config.seed, "folds"))
    found = folds.solve(x, (z != 0).astype(np.float32), (z > 0).astype(np.float32), fold)
    w = found.w / scale
    for network in networks:
        network.head.get_parameter("weight").add_(torch.from_numpy(w))
        network.head.get_parameter("bias").copy_(torch.from_numpy(found.b - w @ mean))


def _head_inputs(method: Method, task: Task, network: Network) -> tuple[Any, Floats, Floats]:
    """What is solved on, [N, D], at mean 0 and scale 1; and mean and scale of what the head sees of the same items. A
    network standardises features by itself, but not what a backbone makes of pictures or texts."""
    if task.config.backbone is None:
        x = method.standardized_features(task.items, BLOCK, network.get_submodule("features.0"))
        return x, np.zeros(x.shape[1], np.float32), np.ones(x.shape[1], np.float32)
    parts = [slice(i, i + PICTURES) for i in range(0, len(task.items), PICTURES)]
    with eval_mode(network):
        made = torch.cat([network.embed(batch) for batch in streamed(task.items, parts)]).numpy()
    mean, scale = made.mean(axis=0), np.maximum(made.std(axis=0), LEAST)
    made -= mean  # where they lie: `folds.memory` counts them twice, and no more
    made /= scale
    return made, mean, scale
