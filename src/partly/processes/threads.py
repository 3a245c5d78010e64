"""How many threads a command computes with. A library leaves that to whoever calls it; a command has nobody to ask."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

ASKED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # who sets one of them has chosen
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
    asked = next((f"{name}={os.environ[name]}" for name in ASKED if os.environ.get(name)), None)
    if asked is not None:
        return 0, asked
    if size < SMALL:
        return 1, "a task as small as this gains nothing by more"
    there = cores(root)
    return there, f"{there} core{'s' if there > 1 else ''} may be used; on a busy machine set OMP_NUM_THREADS=1"
