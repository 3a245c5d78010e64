"""Run independent jobs: in processes of this machine, or on Ray, on one machine or many."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from partly.errors import SettingError
from partly.executors import local, on_ray
from partly.executors.local import Died

__all__ = ["Died", "Results", "get_executor"]

# (jobs, function of a job) -> every job with its result, or `Died`, in the order of completion
Results = Callable[[Sequence[Any], Callable[[Any], Any]], Iterator[tuple[Any, Any]]]


def get_executor(on: str = "here", address: str | None = None, count: int | None = None) -> Results:
    """Return the executor for `on`, "here" or "ray".

    `address` names a Ray cluster to join; `count` is the number of concurrent jobs, by default that of the cores.
    """
    if on == "ray":
        return partial(on_ray.results, address=address, count=count)
    if on != "here":
        raise SettingError(f"on = {on!r}: should be 'here' or 'ray'.")
    if address is not None:
        raise SettingError(f"address = {address!r} is for a Ray cluster: add --on ray (on='ray').")
    return partial(local.results, count=count or os.cpu_count() or 1)
