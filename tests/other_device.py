"""A device that computes on the CPU but refuses what a GPU refuses: tensors of both in one operation.

Tensors on it hold a tensor of the CPU. It has no NumPy, so whatever leaves it has to be copied with `.cpu()`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = "lazy"  # a type that torch knows and that needs no driver
COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
INDEXED = ("index", "index_put", "index_put_", "_index_put_impl_")  # a GPU takes positions of the CPU, too


class DeviceTensor(Tensor):
    """A tensor on the device."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> DeviceTensor:
        made = Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), inner.storage_offset(), dtype=inner.dtype, device=torch.device(DEVICE)
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(operation, args, kwargs or {})

    def tolist(self) -> Any:
        return self.inner.tolist()

    def __repr__(self, **_: Any) -> str:
        return f"DeviceTensor({self.inner!r})"


class OtherDevice(TorchDispatchMode):
    """The context in which the device exists."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(operation, args, kwargs or {})


def compute(operation: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [part for part in tree_leaves((args, kwargs)) if isinstance(part, Tensor)]
    away = [isinstance(part, DeviceTensor) for part in tensors]
    if any(away) and operation not in COPIES:
        by_position = operation.overloadpacket.__name__ in INDEXED and away[0]
        strange = [part for part in tensors if not isinstance(part, DeviceTensor) and part.dim()]
        if strange and not (by_position and all(not part.is_floating_point() for part in strange)):
            shapes = [tuple(part.shape) for part in tensors]
            raise RuntimeError(f"{operation}: tensors on different devices, {list(zip(shapes, away, strict=True))}")
    wanted = kwargs.get("device")
    if wanted is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    result = operation(*tree_map(_inner, args), **tree_map(_inner, kwargs))
    if operation._schema.is_mutable:
        return args[0] if result is not None else None
    there = any(away) if wanted is None else torch.device(wanted).type == DEVICE
    return tree_map(_outer, result) if there else result


def _inner(part: Any) -> Any:
    return part.inner if isinstance(part, DeviceTensor) else part


def _outer(part: Any) -> Any:
    return DeviceTensor(part) if isinstance(part, Tensor) else part
