"""Where jobs run that do not need each other: in processes of this machine, or on Ray, on one machine or many."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from partly.errors import SettingError
from partly.executors import local, on_ray
from partly.executors.local import Died

__all__ = ["Died", "Results", "placed"]

# Jobs and what is to be done with each -> every job with what came of it, or `Died`, as they come.
Results = Callable[[Sequence[Any], Callable[[Any], Any]], Iterator[tuple[Any, Any]]]


def placed(on: str = "here", address: str | None = None, count: int | None = None) -> Results:
    """on: 'here' or 'ray'; address: of a Ray cluster to join; count: jobs at a time, all cores if not given."""
    if on == "ray":
        return partial(on_ray.results, address=address, count=count)
    if on != "here":
        raise SettingError(f"on = {on!r}: should be 'here' or 'ray'.")
    if address is not None:
        raise SettingError(f"address = {address!r} is that of a Ray cluster: with --on ray (on='ray').")
    return partial(local.results, count=count or os.cpu_count() or 1)
