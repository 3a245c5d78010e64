"""Replacements for torch functions that ONNX lacks or runs slowly, used while a graph is traced.

Each function gives the same result as the torch function for the arguments that the networks use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

FEATURES_PER_CHUNK = 16

# Coefficients of Wichura's algorithm AS 241 (Applied Statistics 37, 1988), PPND7: numerator and denominator, ascending
# powers, for the center, the tails, and the far tails.
CENTER = (3.3871327179, 50.434271938, 159.29113202, 59.109374720), (1.0, 17.895169469, 78.757757664, 67.187563600)
TAIL = (1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103), (1.0, 0.73700164250, 0.12021132975)
FAR_TAIL = (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997), (1.0, 0.24197894225, 0.012258202635)


class ReplaceFunctions(TorchFunctionMode):
    """Context in which torch functions are replaced."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return REPLACEMENTS.get(func, func)(*args, **kwargs or {})


def searchsorted(marks: Tensor, values: Tensor, *, right: bool = False) -> Tensor:
    """Binary search for values [D, B] in sorted marks [D, Q]; after equal ones if `right`."""
    count = marks.shape[1]
    place = torch.zeros_like(values, dtype=torch.int64)  # lower bound of the position
    for step in (1 << power for power in reversed(range(count.bit_length()))):
        further = place + step
        mark = marks.gather(1, further.clamp(max=count) - 1)
        passed = (mark <= values) if right else (mark < values)
        place = torch.where(passed & (further <= count), further, place)
    return place


def ndtri(p: Tensor) -> Tensor:
    """Quantile function of the normal distribution, to seven digits."""
    off = p - 0.5
    middle = off * _ratio(0.180625 - off * off, *CENTER)
    far = torch.sqrt(-torch.log(torch.minimum(p, 1 - p)))
    tail = torch.where(far <= 5, _ratio(far - 1.6, *TAIL), _ratio(far - 5, *FAR_TAIL))
    return torch.where(off.abs() <= 0.425, middle, torch.where(off < 0, -tail, tail))


def _ratio(x: Tensor, above: Sequence[float], below: Sequence[float]) -> Tensor:
    return _polynomial(x, above) / _polynomial(x, below)


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    total = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def cdist(one: Tensor, other: Tensor, p: float, compute_mode: Any = None) -> Tensor:
    """Manhattan distance between [B, D] and [M, D], a few features at a time to save memory."""
    assert p == 1.0  # the only value that networks use
    chunks = zip(one.split(FEATURES_PER_CHUNK, dim=1), other.split(FEATURES_PER_CHUNK, dim=1), strict=True)
    return sum(((a.unsqueeze(1) - b).abs().sum(dim=2) for a, b in chunks), torch.zeros(()))


def embedding_bag(index: Tensor, table: Tensor, *_: Any, padding_idx: int | None = None, **__: Any) -> Tensor:
    """Mean of the rows [B, T] of a table, without padding."""
    rows = table[index]
    if padding_idx is None:
        return rows.mean(dim=1)
    real = (index != padding_idx).unsqueeze(2)
    return torch.where(real, rows, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)


REPLACEMENTS: dict[Any, Callable[..., Tensor]] = {
    torch.searchsorted: searchsorted,
    torch.special.ndtri: ndtri,
    torch.cdist: cdist,
    F.embedding_bag: embedding_bag,
}
