"""Data sets with a train and a test part, by name or by file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from partly.data.scenes import scenes
from partly.data.split import Split, is_split, read_split

BUILT_IN: dict[str, Callable[[], Split]] = {"scenes": scenes, "scenes-coarse": partial(scenes, coarse=True)}


def open_split(name: str) -> Split | None:
    """A built-in set, or an `.npz` file with both parts; None for anything else."""
    if name in BUILT_IN:
        return BUILT_IN[name]()
    return read_split(name) if is_split(name) else None
