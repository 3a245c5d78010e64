"""Hidden layers beside a solved linear path: they learn what the path leaves over, and count as far as that helps.

The path is solved first. What it says of a training item by a fold that has not seen it is the offset to which the
network adds, so that the network sees the path's real mistakes. It starts at nothing. One fold is kept from it, and says
how much of what it adds counts: where hidden layers only learn the few known entries by heart, none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from partly.clock import Clock
from partly.method import Task
from partly.networks.members import Members
from partly.pool import Batch, Pool
from partly.solving.calibration import calibrate
from partly.solving.solved import Solved, Terms

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
APART = 0  # the fold that the network does not learn from


class Beside(Solved):
    """A network beside a linear path."""

    own_epochs = None
    share: Tensor  # of what the network adds

    def __init__(self, task: Task, terms: Terms, settings: dict[str, Any]) -> None:
        super().__init__(task, terms, settings)
        self.hidden, self.head = (self.network.get_submodule(name) for name in ("features.1.parts.hidden", "head"))
        self.optimiser = task.optimiser(self.hidden.parameters())
