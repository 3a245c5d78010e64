"""Run independent jobs: in processes of this machine, or on Ray, on one machine or many."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from partly.errors import PartlyError, SettingError
from partly.executors import local, on_ray
from partly.executors.local import Died

__all__ = ["Died", "Results", "get_executor", "is_parallel", "parallel_config", "run_parts"]

# (jobs, function of a job) -> every job with its result, or `Died`, in the order of completion
Results = Callable[[Sequence[Any], Callable[[Any], Any]], Iterator[tuple[Any, Any]]]
_CURRENT: ContextVar[Results | None] = ContextVar("executor", default=None)


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


@contextmanager
def parallel_config(on: str = "here", address: str | None = None, count: int | None = None) -> Iterator[None]:
    """Run the independent parts of a fit in worker processes within this context.

    The parts are the models and folds of `auto`, the labels of `PerLabel`, and the folds of cross-fitting. Results are
    those without workers, bit for bit. A part whose process dies is run once more.

    Parameters
    ----------
    on : "here" or "ray"
        Where to run: processes of this machine, or Ray.
    address : str, optional
        Ray cluster to join.
    count : int, optional
        Number of concurrent parts; by default that of the cores.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> from partly.executors import parallel_config
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> Y = (X[:, :2] > 0).astype(float)
    >>> with parallel_config(count=2):
    ...     model = partly.Classifier("bce", head="linear", folds=2, progress=False).fit(X, Y)
    >>> model.out_of_fold_.shape
    (40, 2)
    """
    token = _CURRENT.set(get_executor(on, address, count))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def is_parallel() -> bool:
    """Return whether `parallel_config` is active."""
    return _CURRENT.get() is not None


def run_parts(parts: Sequence[Any], work: Callable[[Any], Any]) -> Iterator[tuple[Any, Any]]:
    """Yield every part with its result: in this process and in order, or as `parallel_config` says, in any order."""
    execute = _CURRENT.get()
    if execute is None:
        yield from ((part, work(part)) for part in parts)
        return
    died = []
    for part, result in execute(parts, work):
        if isinstance(result, Died):
            died.append(part)
        else:
            yield part, result
    for part, result in execute(died, work):
        if isinstance(result, Died):
            raise PartlyError(f"{part}: {result.words}, twice. Fit again; finished parts in a run folder are kept.")
        yield part, result
