"""The processes that decode, and how they are asked. A thread waits for each; answers come in the order of the
questions, whoever is faster."""

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

from partly.distributed.launched import launched
from partly.errors import PartlyError, SettingError
from partly.images.shared import Shared
from partly.images.worker import Answer, Request, answered, command

WORKERS = "PARTLY_WORKERS"  # how many processes decode; 0: none, the asking one does it itself
MOST_WORKERS = 8  # where nobody says


class Died(PartlyError):
    """A process ended over a question, instead of answering it."""


class Worker:
    """A process, and the memory in which it leaves pixels."""

    def __init__(self) -> None:
        self.shared = Shared()
        words, environment = command(self.shared)
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=null, env=environment, pass_fds=[self.shared.number]
        )

    def asked(self, request: Request) -> Answer:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):  # then there is no answer either
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            raise Died(f"A process that decodes pictures ended (status {self.process.wait()}).")
        told: dict[str, Any] = json.loads(line)
        return told, bytes(self.shared.room(told["bytes"]))

    def end(self) -> None:
        with suppress(BrokenPipeError), self.process:
            pass  # leaving closes its pipes, which ends it, and waits for it
        self.shared.close()


class Crew:
    """Some processes, started when they are first needed; each is asked one thing at a time."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._threads = ThreadPoolExecutor(max(1, count), "pictures")
        self._idle: queue.SimpleQueue[Worker | None] = queue.SimpleQueue()
        for _ in range(count):
            self._idle.put(None)
        weakref.finalize(self, _let_go, self._threads, self._idle)

    def ask(self, request: Request) -> Future[Answer]:
        return self._threads.submit(self._asked if self.count else answered, request)

    def in_order(self, requests: Iterable[Request], ahead: int) -> Iterator[Future[Answer]]:
        """The answers in the order of the questions, of which `ahead` are asked before the first answer is waited for.
        Who stops listening leaves nothing behind: what has not begun is not done."""
        waiting: deque[Future[Answer]] = deque()
        try:
            for request in requests:
                waiting.append(self.ask(request))
                if len(waiting) > ahead:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
        finally:
            for future in waiting:
                future.cancel()

    def _asked(self, request: Request) -> Answer:
        worker = self._idle.get() or Worker()
        told: Answer | None = None
        try:
            told = worker.asked(request)
            return told
        finally:
            if told is None:
                worker.process.kill()
                worker.end()
            self._idle.put(worker if told is not None else None)


def _let_go(threads: ThreadPoolExecutor, idle: queue.SimpleQueue[Worker | None]) -> None:
    """End the processes by closing what they read from."""
    threads.shutdown(wait=True, cancel_futures=True)
    while not idle.empty():
        worker = idle.get()
        if worker is not None:
            worker.end()


def crew() -> Crew:
    """That of this process: as many as it may use cores (its part of them, where several train), or as the
    environment says."""
    asked = os.environ.get(WORKERS, "")
    if not (asked == "" or asked.isdecimal()):
        raise SettingError(f"{WORKERS}={asked!r} should be the number of processes that decode pictures; 0 for none.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = max(1, cores // launched().local_count)
    return _crew(os.getpid(), int(asked) if asked else min(cores, MOST_WORKERS))


@cache
def _crew(process: int, count: int) -> Crew:
    """process: so that a fork of this one has a crew of its own."""
    made = Crew(count)
    atexit.register(_crew.cache_clear)
    return made
