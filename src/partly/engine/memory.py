"""What a run or a model needs, known before it is made, and what there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from partly import methods
from partly.budget import MEMORY_SHARE, available
from partly.distributed.launched import launched
from partly.engine.checkpoint import Tensors
from partly.engine.recipe import Recipe
from partly.engine.training import Validation
from partly.errors import CheckpointError, PartlyError
from partly.items import Items
from partly.labels import Labels
from partly.method import Method
from partly.optim import optimisers

MOST = 8  # methods that are named as a way out
SLACK = 1 << 26  # bytes that a model may take beyond its weights while it is loaded
# What makes tensors of a size that somebody may have written into a file.
MAKERS = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.arange, torch.eye)


def entry_memory(
    recipe: Recipe, items: Items, labels: Labels, validation: Validation | None = None, copies: int = 0
) -> int:
    """Bytes that training needs at its peak for entries: what the method keeps, what it needs to work on them, what
    scoring the validation part takes, and copies of the beliefs: one where they stay in memory, one where a start is
    read. All are added up, since what is freed is not always given back."""
    task = recipe.task(items, labels.shape[1], labels)
    kept, working = methods.find(recipe.method).memory(task, recipe.settings)
    scored = 0 if validation is None else validation.memory()
    believed = methods.find(recipe.method).kind.belief_memory(task, recipe.settings)
    return kept + working + scored + copies * believed


def weight_memory(method: Method, validation: Validation | None = None) -> int:
    """Bytes that training needs for the weights of a method that was built: themselves, gradients, what optimisers
    remember, their average, and those of the best epoch where there is a choice."""
    every = sum(tensor.nbytes for tensor in method.state_dict().values())
    learned = sum(
        p.nbytes for one in method.optimisers().values() for group in one.param_groups for p in group["params"]
    )
    copies = 1 + optimisers.COPIES[method.task.optimizer] + (method.task.average is not None)
    return int(every * (1 + (validation is not None)) + learned * copies)


def check_memory(
    recipe: Recipe,
    items: Items,
    labels: Labels,
    validation: Validation | None = None,
    copies: int = 0,
    method: Method | None = None,
) -> None:
    """Refuse a run that would not fit: for its entries, before anything is made; with a method that was built, for its
    weights too, before anything is trained."""
    processes = launched().local_count  # each keeps all of it
    needed = processes * entry_memory(recipe, items, labels, validation, copies)
    weights = 0 if method is None else processes * weight_memory(method, validation)
    there, who = available()
    if needed + weights > MEMORY_SHARE * there:
        raise PartlyError(
            f"{recipe.method} keeps {_size(needed)} for {labels.shape[0]} x {labels.shape[1]} entries"
            + (f" and {_size(weights)} for weights and what trains them" if weights else "")
            + f"{f' in {processes} processes' if processes > 1 else ''}; "
            f"the limit is {MEMORY_SHARE:.0%} of the {_size(there)} of {who}. "
            "Take settings or a method with less per-entry state (partly methods), or fewer items."
            + _what_fits(recipe, items, labels, needed, int(MEMORY_SHARE * there) - weights)
        )


def _what_fits(recipe: Recipe, items: Items, labels: Labels, needed: int, room: int) -> str:
    """How many items there is room for, by the share that all of them take, and who needs nothing for entries."""
    fits, task = len(items) * room // max(needed, 1), recipe.task(items, labels.shape[1])
    words = f"\nAbout {fits:,} items with these labels would fit." if 0 < fits < len(items) else ""
    able = [info for info in methods.discover().values() if items.kind in info.kind.kinds]
    without = [info.name for info in able if not sum(info.memory(task, info.defaults()))]
    few, more = ", ".join(without[:MOST]), f" and {len(without) - MOST} more" if len(without) > MOST else ""
    return words + (f"\nNothing is kept for entries by {few}{more}." if without else "")


def check_scores(items: int, labels: int, what: str, way_out: str) -> None:
    """Refuse a matrix of scores that cannot be held, before any of it is worked out."""
    needed, (there, who) = 4 * items * labels, available()
    if needed > there:
        raise PartlyError(
            f"{what} of {items:,} x {labels:,} entries take {_size(needed)}; {who} has {_size(there)}. {way_out}"
        )


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**28 else f"{count / 2**20:.1f} MiB"


class Ceiling(TorchFunctionMode):
    """While it lasts, no more tensors are made than the weights in a file call for: sizes in run.json may be anybody's.
    A model that does not fit into memory is refused before."""

    def __init__(self, folder: Path, tensors: Tensors) -> None:
        super().__init__()
        self.folder, self.left = folder, 4 * tensors.nbytes + SLACK
        there, who = available()
        needed = 2 * tensors.nbytes  # what is read, and the model that takes it
        if needed > MEMORY_SHARE * there:
            raise PartlyError(
                f"{folder}: loading it takes {_size(needed)}; the limit is {MEMORY_SHARE:.0%} of the {_size(there)} of "
                f"{who}. Load it where there is more."
            )

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in MAKERS:
            plain = {name: value for name, value in kwargs.items() if name not in ("generator", "out", "pin_memory")}
            self.left -= func(*args, **plain | {"device": "meta"}).nbytes
            if self.left < 0:
                raise CheckpointError(
                    f"{self.folder}: run.json asks for far larger layers than there are weights for. It is damaged, or "
                    "not to be trusted."
                )
        return func(*args, **kwargs)
