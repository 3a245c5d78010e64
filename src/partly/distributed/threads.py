"""How many threads are used: one for small work, by commands and in Python alike; for other work a command takes the
cores that there are, and a library leaves that to its caller.

Besides torch, NumPy and SciPy each have a pool of BLAS threads, and scikit-learn one of OpenMP. On small work they wait
for each other longer than they compute, and on a busy machine much longer."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

ASKED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # who sets one of them has chosen
P = ParamSpec("P")
R = TypeVar("R")
SMALL = 1 << 28  # items x features x labels below which threads wait for each other longer than they compute


def cores(root: Path = Path("/")) -> int:
    """That this process may use: those it is bound to, and no more than its control group is given the time of."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([bound, *_quotas(root)]))


def _quotas(root: Path) -> list[int]:
    """Of the control group of this process, version 2 or 1, as it is seen in a container."""
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
    """Threads for a task of this size (items x features x labels), and why; 0 where somebody has chosen. It follows
    from the task and the machine alone, never from how busy that is just now: a run that is started again would else
    not give the same bits."""
    if size < SMALL:
        return 1, "more threads do not speed up a task of this size"
    asked = next((f"{name}={os.environ[name]}" for name in ASKED if os.environ.get(name)), None)
    if asked is not None:
        return 0, asked
    there = cores(root)
    return there, f"{there} core{'s' if there > 1 else ''} available; on a busy machine set OMP_NUM_THREADS=1"


def size_of(items: Any, labels: Any) -> float:
    """How much work it is to learn these labels [N, L] from these items. A backbone has never little to do."""
    return len(items) * items.shape[0] * labels.shape[1] if items.kind == "features" else math.inf


def set_threads(count: int) -> None:
    """Let torch, BLAS and OpenMP use so many threads from now on."""
    import torch

    _pools().limit(limits=count)
    torch.set_num_threads(count)


@contextmanager
def limited(size: float) -> Iterator[None]:
    """Use one thread while it lasts, where the work is small: the bits then do not depend on any pool. What there was
    before is restored by whoever leaves last."""
    if size >= SMALL:
        yield
        return
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


def limiting(size: Callable[..., float]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Run a function within `limited`; `size` computes how much work it is from the same arguments."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def inside(*given: P.args, **named: P.kwargs) -> R:
            with limited(size(*given, **named)):
                return function(*given, **named)

        return inside

    return decorate


def workers() -> int:
    """How many threads independent jobs may use, though each of them is limited to one."""
    import torch

    return _LIMIT.before or torch.get_num_threads()


class _Limit:
    """One thread for as long as somebody is inside; threads of one process share pools."""

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
    """The pools of this process, looked up again once scikit-learn is there, which is imported late."""
    return _known_pools("sklearn" in sys.modules)


@cache
def _known_pools(with_scikit_learn: bool) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
