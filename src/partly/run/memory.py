"""What a run needs for entries (items x labels), known before anything is made."""

from __future__ import annotations

import math
import os

from partly import methods, metrics
from partly.errors import PartlyError
from partly.items import Items
from partly.labels import Labels
from partly.processes.launched import launched
from partly.run.recipe import Recipe
from partly.training import Validation

MEMORY_SHARE = 0.6  # of RAM that what is kept for entries may take


def entry_memory(
    recipe: Recipe, items: Items, labels: Labels, validation: Validation | None = None, copies: int = 0
) -> int:
    """Bytes that training needs at its peak for entries: what the method keeps, what it needs to work on them, what
    scoring the validation part takes, and copies of the beliefs: one where they stay in memory, one where a start is
    read. All are added up, since what is freed is not always given back."""
    task = recipe.task(items, labels.shape[1], labels)
    kept, working = methods.find(recipe.method).memory(task, recipe.settings)
    scored = 0 if validation is None else metrics.memory(validation.labels.shape)
    believed = methods.find(recipe.method).kind.belief_bytes * math.prod(labels.shape)
    return kept + working + scored + copies * believed


def check_memory(
    recipe: Recipe, items: Items, labels: Labels, validation: Validation | None = None, copies: int = 0
) -> None:
    """Refuse a run whose entries would not fit, before anything is made."""
    processes = launched().local_count  # each keeps all of it
    needed = processes * entry_memory(recipe, items, labels, validation, copies)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > MEMORY_SHARE * there:
        raise PartlyError(
            f"{recipe.method} keeps {needed / 2**30:.1f} GiB for {labels.shape[0]} x {labels.shape[1]} entries"
            f"{f' in {processes} processes' if processes > 1 else ''}; "
            f"the limit is {MEMORY_SHARE:.0%} of the {there / 2**30:.1f} GiB of this machine. "
            "Take settings or a method with less per-entry state (partly methods), or fewer items."
        )
