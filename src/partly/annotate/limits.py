"""Limits on what one client may use: attempts to sign in, and threads for work that anybody can ask for."""

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

from partly.annotate.passwords import Refused

WINDOW_SECONDS = 900.0  # for which a failed attempt counts
MAX_KEYS = 10_000  # of which attempts are remembered
NICE = 10  # of threads that give way
BUSY = "The server is busy. Try again in a few seconds."


@dataclass
class Attempts:
    """Failed attempts by key: an address, an account, or both. Kept in memory and by a clock that is never set back:
    who guesses cannot restart the server, and who can restart it need not guess."""

    now: Callable[[], float] = time.monotonic
    _times: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def attempt(self, limits: dict[str, int]) -> Iterator[None]:
        """Count an attempt under each key, which has a limit, before it is made: many at once are no way around. An
        attempt that succeeds is not counted."""
        with self._lock:
            now = self.now()
            times = [self._recent(key, now) for key in limits]
            if any(len(kept) >= most for kept, most in zip(times, limits.values(), strict=True)):
                raise Refused("Too many attempts. Wait a quarter of an hour.", 429)
            for kept in times:
                kept.append(now)
        yield
        with self._lock:
            for kept in times:
                if now in kept:
                    kept.remove(now)

    def forget(self, key: str) -> None:
        with self._lock:
            self._times.pop(key, None)

    def _recent(self, key: str, now: float) -> deque[float]:
        times = self._times.setdefault(key, deque())
        self._times.move_to_end(key)
        while len(self._times) > MAX_KEYS:
            self._times.popitem(last=False)
        while times and times[0] < now - WINDOW_SECONDS:
            times.popleft()
        return times


def network_of(address: str) -> str:
    """The address by which attempts are counted; of IPv6 the network, in which a client has any number of addresses."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return str(found)


class Pool:
    """A few threads of their own for one kind of work, so that it holds up nothing else, and a queue with an end.
    gives_way: other threads are given the processor first."""

    def __init__(self, name: str, threads: int, max_waiting: int, seconds: float, gives_way: bool = False) -> None:
        self._threads = ThreadPoolExecutor(threads, f"partly-{name}", _give_way if gives_way else None)
        self._places = threading.Semaphore(threads + max_waiting)
        self._seconds = seconds

    async def run(self, job: Callable[..., Any], *args: Any) -> Any:
        """The result of a job. Refused with 503, to be tried again, where too many wait or it takes too long."""
        if not self._places.acquire(blocking=False):
            raise Refused(BUSY, 503)
        future = self._threads.submit(partial(job, *args))
        future.add_done_callback(lambda _: self._places.release())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError:
            raise Refused(BUSY, 503) from None


def _give_way() -> None:
    """Lower the priority of this thread, on Linux; elsewhere it would be that of the whole process."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
