"""A process's shard of a batch. Only networks can use it, and their outputs are those of the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from partly.distributed.group import Group
from partly.distributed.layers import over_batch
from partly.errors import SettingError


@dataclass(frozen=True, eq=False)
class BatchShard:
    """Takes the place of x [B, ...] if a batch is spread over processes.

    Direct access to items is refused: code would take a part for the whole batch.
    """

    own: Tensor  # the rows of this process; one that stands in, where there are none
    rows: slice  # which of the batch they are
    of: int  # rows of the batch
    group: Group

    def spread(self, network: Callable[[Tensor, Tensor | None], Any], z: Tensor | None = None) -> Any:
        """Apply a network (or any function of single items) to the rows of this process, and return the output of the
        whole batch, one or several tensors [B, ...]."""
        known = None if z is None else z[self.rows] if self.rows.start < self.rows.stop else z[:1]
        with over_batch(self.own, self.rows, self.of, self.group):
            logits = network(self.own, known)
        return self.gather(logits) if isinstance(logits, Tensor) else tuple(map(self.gather, logits))

    def gather(self, own: Tensor) -> Tensor:
        """Return the rows of all processes, [B, ...], from those of this one."""
        whole: Tensor = _Gathered.apply(own[: self.rows.stop - self.rows.start], self)  # type: ignore[no-untyped-call]
        return whole

    @classmethod
    def __torch_function__(cls, *call: Any) -> NoReturn:
        refuse(getattr(call[0], "__name__", str(call[0])))

    def __len__(self) -> int:
        refuse("len")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python itself asks whether there is such a thing
            raise AttributeError(name)
        refuse(name)


def refuse(what: str) -> NoReturn:
    raise SettingError(
        f"This method looks at the items of a batch by itself ({what}), and with several processes each has only its "
        "share of them. Train it with one process, or let it ask a network: network(batch.x, batch.z)."
    )


class _Gathered(torch.autograd.Function):
    """Gather rows. In the backward pass each process follows its own rows. Gradients are averaged over processes
    (`Group.average`), so they are multiplied by the number of processes here to give their sum."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, share: BatchShard) -> Tensor:
        ctx.share = share
        whole = own.new_zeros(share.of, *own.shape[1:])
        whole[share.rows] = own
        return share.group.total(whole)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        return slopes[0][ctx.share.rows] * ctx.share.group.count, None
