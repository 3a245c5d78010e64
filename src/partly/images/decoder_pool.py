"""A pool of worker processes that decode images. A thread waits for each; answers come in the order of the requests."""

from __future__ import annotations

import atexit
import json
import os
import queue
import subprocess
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any

from partly.distributed.launched import current_rank
from partly.errors import PartlyError, SettingError
from partly.images.shared import Shared
from partly.images.worker import Answer, Request, answer_request, command

WORKERS_VARIABLE = "PARTLY_WORKERS"  # number of worker processes; 0 decodes in this process
MAX_WORKERS = 8  # by default


class WorkerDied(PartlyError):
    """Raised when a worker process ends instead of answering."""


class Worker:
    """A worker process and the memory it shares."""

    def __init__(self) -> None:
        self.shared = Shared()
        arguments, environment = command(self.shared)
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(
            arguments, stdin=pipe, stdout=pipe, stderr=null, env=environment, pass_fds=[self.shared.number]
        )

    def answer(self, request: Request) -> Answer:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):  # reading the answer then fails, too
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            raise WorkerDied(f"A worker process that decodes images ended (status {self.process.wait()}).")
        values: dict[str, Any] = json.loads(line)
        return values, bytes(self.shared.view(values["bytes"]))

    def end(self) -> None:
        with suppress(BrokenPipeError), self.process:
            pass  # leaving closes its pipes, which ends the process, and waits for it
        self.shared.close()


class DecoderPool:
    """Worker processes, started when they are first needed; each answers one request at a time."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._threads = ThreadPoolExecutor(max(1, count), "pictures")
        self._idle: queue.SimpleQueue[Worker | None] = queue.SimpleQueue()
        for _ in range(count):
            self._idle.put(None)
        weakref.finalize(self, _shut_down, self._threads, self._idle)

    def submit(self, request: Request) -> Future[Answer]:
        return self._threads.submit(self._answer if self.count else answer_request, request)

    def map_ordered(self, requests: Iterable[Request], ahead: int) -> Iterator[Future[Answer]]:
        """Yield the answers in the order of the requests, with `ahead` requests submitted in advance.

        If the caller stops early, requests that have not started are canceled.
        """
        waiting: deque[Future[Answer]] = deque()
        try:
            for request in requests:
                waiting.append(self.submit(request))
                if len(waiting) > ahead:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
        finally:
            for future in waiting:
                future.cancel()

    def _answer(self, request: Request) -> Answer:
        worker = self._idle.get() or Worker()
        answer: Answer | None = None
        try:
            answer = worker.answer(request)
            return answer
        finally:
            if answer is None:
                worker.process.kill()
                worker.end()
            self._idle.put(worker if answer is not None else None)


def _shut_down(threads: ThreadPoolExecutor, idle: queue.SimpleQueue[Worker | None]) -> None:
    """End the processes by closing their input."""
    threads.shutdown(wait=True, cancel_futures=True)
    while not idle.empty():
        worker = idle.get()
        if worker is not None:
            worker.end()


def get_pool() -> DecoderPool:
    """Return the pool of this process: $PARTLY_WORKERS workers, or one per core (shared by training processes)."""
    chosen = os.environ.get(WORKERS_VARIABLE, "")
    if not (chosen == "" or chosen.isdecimal()):
        raise SettingError(
            f"{WORKERS_VARIABLE}={chosen!r} must be the number of processes that decode images; 0 for none."
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = max(1, cores // current_rank().local_count)
    return _make_pool(os.getpid(), int(chosen) if chosen else min(cores, MAX_WORKERS))


@cache
def _make_pool(process: int, count: int) -> DecoderPool:
    """Make a pool; `process` is part of the cache key, so that a fork gets a pool of its own."""
    pool = DecoderPool(count)
    atexit.register(_make_pool.cache_clear)
    return pool
