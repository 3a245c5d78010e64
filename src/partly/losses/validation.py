"""Validation of z, the labels that losses are given.

Targets in another encoding (0 for no, NaN or -100 for unknown) would be learned from without an error. The training
loop skips the check, since its z comes from `Labels`, and so does compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from partly.errors import LabelError

Loss = TypeVar("Loss", bound=Callable[..., Tensor])
SKIPS_VALIDATION = ContextVar("trusted", default=False)  # whether z was validated already


@contextmanager
def skip_validation() -> Iterator[None]:
    """Skip the validation of z within this context."""
    before = SKIPS_VALIDATION.set(True)
    try:
        yield
    finally:
        SKIPS_VALIDATION.reset(before)


def validates_z(loss: Loss) -> Loss:
    """Decorate a loss so that it validates z first. Of nested losses only the outermost does."""

    @wraps(loss)
    def validate_and_compute(logits: Tensor, z: Tensor, **settings: Any) -> Tensor:
        if torch.compiler.is_compiling() or SKIPS_VALIDATION.get():
            return loss(logits, z, **settings)
        _refuse(logits, z)
        with skip_validation():
            return loss(logits, z, **settings)

    return cast(Loss, validate_and_compute)


def _refuse(logits: Tensor, z: Tensor) -> None:
    if z.shape != logits.shape:
        raise LabelError(f"z has the shape {list(z.shape)} and logits {list(logits.shape)}; both must be [B, L].")
    if z.dtype == torch.bool or not z.dtype.is_signed:
        problem = f"{str(z.dtype).removeprefix('torch.')}, which cannot hold -1"
    elif ((z == 0) | (z == 1) | (z == -1)).all():
        return
    else:
        strange = z[~((z == 0) | (z == 1) | (z == -1))]
        values = ", ".join(f"{value:g}" for value in strange.unique()[:5].tolist())
        problem = f"{len(strange)} other values of {z.numel()}: {values}"
    raise LabelError(
        f"z is +1 (yes), -1 (no) and 0 (unknown); here are {problem}. From y with 1 yes, 0 no and NaN unknown: "
        "z = torch.where(y.isnan(), 0, 2 * y - 1); with -1 or -100 for unknown: z = torch.where(y < 0, 0, 2 * y - 1). "
        "partly.Labels has constructors for these, and .ternary() is z."
    )
