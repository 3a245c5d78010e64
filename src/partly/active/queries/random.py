"""Any unknown entry, all alike: what every other strategy has to beat.

Paper: none; random sampling is the baseline of all papers on asking.

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

IN_PAPERS = ("Random sampling",)


def scores(method: Method, pool: Pool, clock: Clock) -> Iterator[dict[str, npt.NDArray[np.float64]]]:
    """A number for each entry: a function of the seed and the round alone, drawn in reading order."""
    rng = clock.epoch_rng("random query")
    for batch in pool.in_order():
        yield {"score": rng.random(tuple(batch.z.shape))}
