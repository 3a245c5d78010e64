"""Where the head `warm-linear` starts: at the logistic regressions of the known entries."""

from __future__ import annotations

import numpy as np
import torch

from partly.clock import seed_for
from partly.errors import SettingError
from partly.items import BLOCK
from partly.method import Method, Task
from partly.networks import Network
from partly.solving import folds

HEAD = "warm-linear"


@torch.no_grad()
def start(method: Method, task: Task) -> None:
    """Put the linear heads of a new method there, if it has any. Where there are several they keep the little by which
    they differ, or they would stay equal."""
    networks = [part for part in method.modules() if isinstance(part, Network) and part.warm]
    if not networks or task.observed is None or not task.observed.counts()[1].any():
        return
    if task.items.kind != "features" or task.backbone is not None:
        raise SettingError(
            f"The head {HEAD!r} starts from what is solved, on features that come straight to it; here it has "
            f"{task.items.kind}{f' behind {task.backbone}' if task.backbone else ''}. Take the head 'linear'."
        )
    z = task.observed.rows(slice(None)).T
    x = method.standardised(task.items, BLOCK, networks[0].get_submodule("features.0"))
    fold = folds.fold_of(len(task.items), seed_for(task.seed, "folds"))
    found = folds.solve(x, (z != 0).astype(np.float32), (z > 0).astype(np.float32), fold)
    for network in networks:
        network.head.get_parameter("weight").add_(torch.from_numpy(found.w))
        network.head.get_parameter("bias").copy_(torch.from_numpy(found.b))
