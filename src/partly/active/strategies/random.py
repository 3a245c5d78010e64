"""Random sampling: uniformly random unknown entries, the baseline of every other strategy.

Paper: none; random sampling is the baseline of all papers on active learning.

Differs: nothing.

Defaults: it has no settings.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from partly.clock import Clock
from partly.method import Method
from partly.pool import Pool
from partly.registry import About

ABOUT = About(in_papers=("Random sampling",))


def scores(method: Method, pool: Pool, clock: Clock) -> Iterator[dict[str, npt.NDArray[np.float64]]]:
    """Yield a random number per entry in reading order, from the seed and the round alone; no item is read."""
    rng = clock.epoch_rng("random query")
    for _, z in pool.labels_in_order():
        yield {"score": rng.random(tuple(z.shape))}
