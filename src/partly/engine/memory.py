"""Memory that a run or a model needs, estimated before it is allocated, and compared with what is available."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from partly import methods
from partly.budget import MEMORY_SHARE, available
from partly.config import ResolvedConfig
from partly.distributed.launched import current_rank
from partly.engine.checkpoint import Tensors
from partly.engine.plan import MemoryEstimate, Plan
from partly.engine.resolution import make_task
from partly.engine.training import Validation
from partly.errors import CheckpointError, PartlyError
from partly.items import Items
from partly.labels import Labels
from partly.method import Method
from partly.optim import optimizers

MAX_SUGGESTED = 8  # methods that an error names
LOADING_BYTES = 1 << 26  # bytes that a model may take beyond its weights while it is loaded
# What makes tensors of a size that somebody may have written into a file.
TENSOR_FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.arange, torch.eye)


def estimate_memory(
    config: ResolvedConfig, items: Items, labels: Labels, validation: Validation | None = None
) -> MemoryEstimate:
    """Estimate the memory of a run from what its method registers for entries."""
    task, method = make_task(config, items, labels.shape[1], labels), methods.find(config.method)
    kept, working = method.memory(task, config.settings)
    scoring = 0 if validation is None else validation.memory()
    return MemoryEstimate(kept + working + scoring, method.kind.belief_memory(task, config.settings))


def weight_memory(method: Method, validation: Validation | None = None) -> int:
    """Return the bytes for the weights of a built method in training: weights, gradients, optimizer state, their
    average, and those of the best epoch if there is a validation part."""
    all_bytes = sum(tensor.nbytes for tensor in method.state_dict().values())
    learned = sum(
        p.nbytes
        for optimizer in method.optimizers().values()
        for group in optimizer.param_groups
        for p in group["params"]
    )
    copies = 1 + optimizers.COPIES[method.task.config.optimizer] + (method.task.config.average is not None)
    return int(all_bytes * (1 + (validation is not None)) + learned * copies)


def check_memory(plan: Plan, copies: int = 0, method: Method | None = None) -> None:
    """Refuse a plan that does not fit: its entries, before anything is allocated; with the untrained method also its
    weights, before anything is trained."""
    processes = current_rank().local_count  # each holds everything
    needed = processes * plan.memory.total(copies)
    weights = 0 if method is None else processes * weight_memory(method, plan.validation)
    limit, source = available()
    if needed + weights > MEMORY_SHARE * limit:
        items, labels = plan.labels.shape
        raise PartlyError(
            f"{plan.config.method} keeps {_size(needed)} for {items} x {labels} entries"
            + (f" and {_size(weights)} for weights and what trains them" if weights else "")
            + f"{f' in {processes} processes' if processes > 1 else ''}; "
            f"the limit is {MEMORY_SHARE:.0%} of the {_size(limit)} of {source}. "
            "Take settings or a method with less per-entry state (partly methods), or fewer items."
            + _suggest(plan, needed, int(MEMORY_SHARE * limit) - weights)
        )


def _suggest(plan: Plan, needed: int, room: int) -> str:
    """Say how many items fit, in proportion, and which methods keep nothing for entries."""
    items = plan.items
    fits, task = len(items) * room // max(needed, 1), make_task(plan.config, items, plan.labels.shape[1])
    text = f"\nAbout {fits:,} items with these labels would fit." if 0 < fits < len(items) else ""
    able = [info for info in methods.discover().values() if items.kind in info.kind.kinds]
    names = [info.name for info in able if not sum(info.memory(task, info.defaults()))]
    rest = f" and {len(names) - MAX_SUGGESTED} more" if len(names) > MAX_SUGGESTED else ""
    return text + (f"\nNothing is kept for entries by {', '.join(names[:MAX_SUGGESTED])}{rest}." if names else "")


def check_scores(items: int, labels: int, what: str, way_out: str) -> None:
    """Refuse a matrix of scores that does not fit into memory, before it is computed."""
    needed, (limit, source) = 4 * items * labels, available()
    if needed > limit:
        raise PartlyError(
            f"{what} of {items:,} x {labels:,} entries take {_size(needed)}; {source} has {_size(limit)}. {way_out}"
        )


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**28 else f"{count / 2**20:.1f} MiB"


class AllocationLimit(TorchFunctionMode):
    """Limit allocations while a model is loaded to what its weights need: sizes in run.json cannot be trusted. A model
    that does not fit into memory is refused."""

    def __init__(self, folder: Path, tensors: Tensors) -> None:
        super().__init__()
        self.folder, self.left = folder, 4 * tensors.nbytes + LOADING_BYTES
        limit, source = available()
        needed = 2 * tensors.nbytes  # what is read, and the model that takes it
        if needed > MEMORY_SHARE * limit:
            raise PartlyError(
                f"{folder}: loading it takes {_size(needed)}; the limit is {MEMORY_SHARE:.0%} of the {_size(limit)} of "
                f"{source}. Load it where there is more."
            )

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in TENSOR_FACTORIES:
            plain = {name: value for name, value in kwargs.items() if name not in ("generator", "out", "pin_memory")}
            self.left -= func(*args, **plain | {"device": "meta"}).nbytes
            if self.left < 0:
                raise CheckpointError(
                    f"{self.folder}: run.json asks for far larger layers than there are weights for. It is damaged, or "
                    "not to be trusted."
                )
        return func(*args, **kwargs)
