"""Declaration of per-entry training state, from which the memory estimate follows."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class EntryState:
    """A tensor with a number for each training entry, [N, L].

    Parameters
    ----------
    name : str
        Attribute of the method, and key in its checkpoints.
    dtype : torch.dtype
        Type of the numbers; float32 by default.
    fill : float
        First value.
    per_label : bool
        False for a number per item, [N].
    belief : torch.dtype, optional
        Type of the beliefs that are read from this tensor.
    """

    name: str
    dtype: torch.dtype = torch.float32
    fill: float = 0.0
    per_label: bool = True
    belief: torch.dtype | None = None
