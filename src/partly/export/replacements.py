"""What ONNX has no word for, or only a slow one, said in simpler words while a graph is traced.

Each function here takes the place of one of torch, with the arguments that the networks give it, and makes the same of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

AT_ONCE = 16  # features of which differences are held at a time

# Coefficients of Wichura's algorithm AS 241 (Applied Statistics 37, 1988), PPND7: from the constant up, numerator and
# denominator, in the middle, in the tails, and far out in them.
MIDDLE = (3.3871327179, 50.434271938, 159.29113202, 59.109374720), (1.0, 17.895169469, 78.757757664, 67.187563600)
TAIL = (1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103), (1.0, 0.73700164250, 0.12021132975)
FAR = (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997), (1.0, 0.24197894225, 0.012258202635)


class Replacing(TorchFunctionMode):
    """While it is entered, torch's own functions are replaced."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return REPLACED.get(func, func)(*args, **kwargs or {})


def searchsorted(marks: Tensor, values: Tensor, *, right: bool = False) -> Tensor:
    """Before which of the sorted marks [D, Q] the values [D, B] belong; after equal ones where `right`. By halves."""
    count = marks.shape[1]
    place = torch.zeros_like(values, dtype=torch.int64)  # so many marks lie before, at least
    for step in (1 << power for power in reversed(range(count.bit_length()))):
        further = place + step
        mark = marks.gather(1, further.clamp(max=count) - 1)
        passed = (mark <= values) if right else (mark < values)
        place = torch.where(passed & (further <= count), further, place)
    return place


def ndtri(p: Tensor) -> Tensor:
    """The value that a normal variable stays below with probability p, to seven digits."""
    off = p - 0.5
    middle = off * _ratio(0.180625 - off * off, *MIDDLE)
    far = torch.sqrt(-torch.log(torch.minimum(p, 1 - p)))
    tail = torch.where(far <= 5, _ratio(far - 1.6, *TAIL), _ratio(far - 5, *FAR))
    return torch.where(off.abs() <= 0.425, middle, torch.where(off < 0, -tail, tail))


def _ratio(x: Tensor, above: Sequence[float], below: Sequence[float]) -> Tensor:
    return _polynomial(x, above) / _polynomial(x, below)


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    total = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def cdist(one: Tensor, other: Tensor, p: float, compute_mode: Any = None) -> Tensor:
    """Sums of absolute differences between [B, D] and [M, D], a few features at a time: all at once is much memory."""
    assert p == 1.0  # what the networks ask for
    parts = zip(one.split(AT_ONCE, dim=1), other.split(AT_ONCE, dim=1), strict=True)
    return sum(((a.unsqueeze(1) - b).abs().sum(dim=2) for a, b in parts), torch.zeros(()))


def embedding_bag(index: Tensor, table: Tensor, *given: Any, padding_idx: int | None = None, **how: Any) -> Tensor:
    """The mean of the rows [B, T] of a table; of those that are not padding, where there is any."""
    rows = table[index]
    if padding_idx is None:
        return rows.mean(dim=1)
    real = (index != padding_idx).unsqueeze(2)
    return torch.where(real, rows, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)


REPLACED: dict[Any, Callable[..., Tensor]] = {
    torch.searchsorted: searchsorted,
    torch.special.ndtri: ndtri,
    torch.cdist: cdist,
    F.embedding_bag: embedding_bag,
}
