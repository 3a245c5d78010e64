"""Settings without names: a misspelt one is taken in silence.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `**settings` takes everything.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_settings"


def loss(logits: Tensor, z: Tensor, **settings: float) -> Tensor:
    return settings.get("weight", 1.0) * bce(logits, z)
