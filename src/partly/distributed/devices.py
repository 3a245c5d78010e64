"""The device of a process."""

from __future__ import annotations

import torch

from partly.distributed.launched import current_rank
from partly.errors import SettingError


def device_of(name: str) -> str:
    """Return an available device; refuse one that cannot be used here."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and current_rank().count > 1:
        name = f"cuda:{current_rank().local_rank}"  # a GPU for each process of a machine
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise SettingError(f"device = {name!r} cannot be used here ({reason}). 'auto' takes what there is.") from None
    return name
