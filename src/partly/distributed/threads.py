"""Number of threads: one for small work; otherwise a command uses the available cores, and the library leaves it to its
caller.

Besides torch, NumPy and SciPy have pools of BLAS threads, and scikit-learn has one of OpenMP. On small work they wait
for each other longer than they compute, and much longer on a busy machine.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # if one is set, it decides
P = ParamSpec("P")
R = TypeVar("R")
J = TypeVar("J")
MAX_SINGLE_THREAD_WORK = 1 << 28  # items x features x labels below which one thread is fastest


def cores(root: Path = Path("/")) -> int:
    """Return the number of cores that this process may use, by its affinity and its control group."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([bound, *_quotas(root)]))


def _quotas(root: Path) -> list[int]:
    """Yield the CPU quotas of the control group, version 2 or 1, as seen in a container."""
    groups = root / "sys/fs/cgroup"
    found: list[int] = []
    with suppress(OSError, ValueError):  # none there, or "max"
        quota, period = map(int, (groups / "cpu.max").read_text().split())
        found.append(math.ceil(quota / period))
    with suppress(OSError, ValueError):
        quota, period = (int((groups / f"cpu/cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
        found += [math.ceil(quota / period)] if quota > 0 else []
    return found


def choose(size: float, root: Path = Path("/")) -> tuple[int, str]:
    """Return the threads for a task of this size (items x features x labels) and the reason; 0 if the user has chosen.
    It depends on task and machine only, not on the current load, so that a resumed run gives the same bits."""
    if size < MAX_SINGLE_THREAD_WORK:
        return 1, "more threads do not speed up a task of this size"
    asked = next((f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if os.environ.get(name)), None)
    if asked is not None:
        return 0, asked
    available = cores(root)
    return (
        available,
        f"{available} core{'s' if available > 1 else ''} available; on a busy machine set OMP_NUM_THREADS=1",
    )


def size_of(items: Any, labels: Any) -> float:
    """Return the amount of work to learn labels [N, L] from items; with a backbone it is never small."""
    return len(items) * items.shape[0] * labels.shape[1] if items.kind == "features" else math.inf


def set_threads(count: int) -> None:
    """Set the number of threads of torch, BLAS and OpenMP."""
    import torch

    _pools().limit(limits=count)
    torch.set_num_threads(count)


@contextmanager
def thread_limit(size: float) -> Iterator[None]:
    """Use one thread within this context if the work is small, so that results do not depend on a pool. The last one to
    leave restores the previous number."""
    if size >= MAX_SINGLE_THREAD_WORK:
        yield
        return
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


def limit_threads(size: Callable[..., float]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that runs a function within `thread_limit`; `size` computes the work from its arguments."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def inside(*given: P.args, **named: P.kwargs) -> R:
            with thread_limit(size(*given, **named)):
                return function(*given, **named)

        return inside

    return decorate


def workers() -> int:
    """Return the number of threads that independent jobs may use together; each job uses one."""
    import torch

    return _LIMIT.before or torch.get_num_threads()


def parallel_map(function: Callable[[J], R], jobs: Sequence[J]) -> list[R]:
    """Apply a function to independent jobs in `workers` threads, or in this one if the work is small. Each uses one
    thread of BLAS, so results do not depend on the number of cores."""
    count = 1 if _LIMIT.inside else min(workers(), len(jobs))
    _LIMIT.enter()
    try:
        if count <= 1:
            return [function(job) for job in jobs]
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(function, jobs))
    finally:
        _LIMIT.leave()


class _Limit:
    """One thread while any context is active; the threads of a process share pools."""

    def __init__(self) -> None:
        self.lock, self.inside, self.before, self.pools = threading.Lock(), 0, 0, None

    def enter(self) -> None:
        import torch

        with self.lock:
            if not self.inside:
                self.before = torch.get_num_threads()
                self.pools = _pools().limit(limits=1)
            self.inside += 1
            torch.set_num_threads(1)

    def leave(self) -> None:
        import torch

        with self.lock:
            self.inside -= 1
            if self.inside:
                return
            assert self.pools is not None
            self.pools.restore_original_limits()
            torch.set_num_threads(self.before)
            self.before, self.pools = 0, None


_LIMIT: Any = _Limit()


def _pools() -> Any:
    """Return the thread pools of this process; they are looked up again after scikit-learn is imported."""
    return _find_pools("sklearn" in sys.modules)


@cache
def _find_pools(with_scikit_learn: bool) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
