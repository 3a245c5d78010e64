"""Layers over a whole batch while each process has some of its rows.

Batch normalization uses mean and variance over all processes (torch's own synchronization needs GPUs). Dropout masks
are drawn for the whole batch in each process, so they are those of a single process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from partly.clock import seed_for
from partly.distributed.group import Group
from partly.errors import SettingError


@contextmanager
def over_batch(own: Tensor, rows: slice, of: int, group: Group) -> Iterator[None]:
    """Let a network work on `own`, which are these rows of a batch of `of`.

    Other layers than dropout draw for their own rows; afterwards the generator is the same in all processes again.
    """
    generator = torch.cuda.default_generators[own.device.index] if own.is_cuda else torch.default_generator
    common = generator.clone_state()
    seed = torch.randint(1 << 62, (), generator=generator, device=own.device).item()
    generator.manual_seed(seed_for(int(seed), group.rank))
    before = generator.get_state()
    try:
        with _OverBatch(len(own), rows, of, group, common):
            yield
    finally:
        if not generator.get_state().equal(before):  # so that the next network does not draw the same
            torch.rand((), generator=common, device=own.device)
        generator.set_state(common.get_state())


class _OverBatch(TorchFunctionMode):
    def __init__(self, own: int, rows: slice, of: int, group: Group, common: torch.Generator) -> None:
        super().__init__()
        self.own, self.rows, self.of, self.group, self.common = own, rows, of, group, common

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        instead = {F.batch_norm: self.batch_norm, F.dropout: self.dropout}.get(func, func)
        return instead(*args, **kwargs or {})

    def batch_norm(
        self,
        x: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        """Like `F.batch_norm`, over the rows of all processes."""
        if not training:
            return F.batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
        if _is_recomputed():
            raise SettingError(
                "Batch normalization that learns inside torch.utils.checkpoint, or without gradients, cannot be taken "
                "over several processes. Put it at rest (the backbone's settings keep_statistics or freeze), or train "
                "with one process."
            )
        wide = (1, -1, *[1] * (x.ndim - 2))
        count, mean, variance = self._moments(x)
        with torch.no_grad():
            for running, now in ((running_mean, mean), (running_var, variance * count / (count - 1).clamp(min=1))):
                if running is not None:
                    running.lerp_(now.to(running.dtype), momentum)
        scale = torch.rsqrt(variance + eps) if weight is None else torch.rsqrt(variance + eps) * weight
        shift = -mean * scale if bias is None else bias - mean * scale
        return torch.addcmul(shift.view(wide), x, scale.view(wide))

    def _moments(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return count, mean and variance of each channel over all processes, [C] each, with one exchange. Stand-in
        rows do not count."""
        over = (0, *range(2, x.ndim))
        mean = x.mean(over)  # torch.var_mean takes many times as long on maps whose channels lie together
        variance = (x - mean.detach().view(1, -1, *[1] * (x.ndim - 2))).square().mean(over)
        item_count = x.numel() / x.shape[1] if self.rows.start < self.rows.stop else 0.0
        placed = x.new_zeros(self.group.count, 3, x.shape[1])
        placed[self.group.rank] = torch.stack([torch.full_like(mean, item_count), mean, variance])
        counts, means, variances = _total(placed, self.group).unbind(1)
        shares = counts / counts.sum(dim=0)
        mean = (shares * means).sum(dim=0)
        return counts.sum(dim=0), mean, (shares * (variances + (means - mean).square())).sum(dim=0)

    def dropout(self, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        """Like `F.dropout`, with the mask that a single process would draw; with a mask of its own if rows are not
        items, or are recomputed for the gradient."""
        if not training or not 0 < p < 1 or len(x) % self.own or _is_recomputed():
            return F.dropout(x, p, training, inplace)
        block = len(x) // self.own
        start = self.rows.start if self.rows.start < self.rows.stop else 0
        whole = x.new_empty(self.of * block, *x.shape[1:]).bernoulli_(1 - p, generator=self.common).div_(1 - p)
        mask = whole[start * block : start * block + len(x)]
        return x.mul_(mask) if inplace else x * mask


def _is_recomputed() -> bool:
    """Return True inside torch.utils.checkpoint, which calls a layer again in the backward pass."""
    hooked = torch._C._autograd._top_saved_tensors_default_hooks(True) is not None
    return hooked or not torch.is_grad_enabled()


def _total(tensor: Tensor, group: Group) -> Tensor:
    total: Tensor = _Total.apply(tensor, group)  # type: ignore[no-untyped-call]
    return total


class _Total(torch.autograd.Function):
    """Sum over processes, with gradients to all of them."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.total(tensor.clone())

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        return ctx.group.total(slopes[0].clone()), None
