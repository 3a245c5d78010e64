"""Limits per client: sign-in attempts, and threads for expensive work that anybody can request."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from partly.annotate.errors import ApiError

WINDOW_SECONDS = 900.0  # a failed attempt counts for this long
MAX_KEYS = 10_000  # keys whose attempts are remembered
LOW_PRIORITY_NICENESS = 10
BUSY = "The server is busy. Try again in a few seconds."


@dataclass
class AttemptLimiter:
    """Failed attempts by key: an address, an account, or both.

    Attempts are kept in memory and timed by a monotonic clock: an attacker cannot restart the server.
    """

    now: Callable[[], float] = time.monotonic
    _times: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def attempt(self, limits: dict[str, int]) -> Iterator[None]:
        """Count an attempt under each key before it is made, so that parallel attempts count; forget it on success."""
        with self._lock:
            now = self.now()
            recent = [self._recent_times(key, now) for key in limits]
            if any(len(times) >= limit for times, limit in zip(recent, limits.values(), strict=True)):
                raise ApiError("Too many attempts. Wait 15 minutes.", 429)
            for times in recent:
                times.append(now)
        yield
        with self._lock:
            for times in recent:
                if now in times:
                    times.remove(now)

    def forget(self, key: str) -> None:
        with self._lock:
            self._times.pop(key, None)

    def _recent_times(self, key: str, now: float) -> deque[float]:
        times = self._times.setdefault(key, deque())
        self._times.move_to_end(key)
        while len(self._times) > MAX_KEYS:
            self._times.popitem(last=False)
        while times and times[0] < now - WINDOW_SECONDS:
            times.popleft()
        return times


def network_of(address: str) -> str:
    """Return the address that attempts are counted under: for IPv6 the /64 network, which one client controls."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


class WorkerPool:
    """A few threads and a bounded queue for one kind of work, so that it delays nothing else."""

    def __init__(self, name: str, threads: int, max_waiting: int, seconds: float, low_priority: bool = False) -> None:
        self._threads = ThreadPoolExecutor(threads, f"partly-{name}", _lower_priority if low_priority else None)
        self._slots = threading.Semaphore(threads + max_waiting)
        self._seconds = seconds

    async def run(self, job: Callable[..., Any], *args: Any) -> Any:
        """Return the result of a job; answer 503 if the queue is full or the job takes too long."""
        if not self._slots.acquire(blocking=False):
            raise ApiError(BUSY, 503)
        future = self._threads.submit(partial(job, *args))
        future.add_done_callback(lambda _: self._slots.release())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError:
            raise ApiError(BUSY, 503) from None


def _lower_priority() -> None:
    """Lower the priority of this thread, on Linux; elsewhere it would affect the whole process."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY_NICENESS)
