"""Prior: what teachers say of the training entries before training."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor


class Prior(Protocol):
    """Scores of teachers for the training entries, calibrated on the known entries of other items."""

    def __call__(self, out_of_fold: Tensor | None) -> Tensor:
        """Return logits [N, L]: out-of-fold logits of a model combined with the teachers', or theirs alone."""
        ...

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Prior:
        """Return the prior of some of the items."""
        ...
