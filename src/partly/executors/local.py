"""Worker processes that do one job at a time: a death is noticed, with the job that was lost; all end at once when the
caller leaves, however it leaves.

By hand, since a ProcessPoolExecutor breaks as a whole when one of its processes dies, without saying which job it had,
and lets running jobs end before it does.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any, TypeVar

Job = TypeVar("Job")


@dataclass(frozen=True)
class Died:
    """In the place of what a job comes to: how its process ended."""

    words: str


@dataclass
class _Worker:
    process: Any
    pipe: Connection

    def result(self) -> Any:
        """What came of its job; an exception that is for the caller, or `Died`."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            killed = ", as the system does where memory is short" if -code == signal.SIGKILL else ""
            return Died(f"its process ended ({name}{killed})")


def results(jobs: Sequence[Job], work: Callable[[Job], Any], count: int) -> Iterator[tuple[Job, Any]]:
    """Every job with what `work` makes of it, or `Died`, as they come. An exception that `work` raises is raised here,
    and ends it all."""
    context = multiprocessing.get_context("spawn")
    left, crew, busy = deque(jobs), [_started(context, work) for _ in range(min(count, len(jobs)))], {}

    def give(worker: _Worker) -> None:
        if left:
            busy[worker.pipe] = (worker, left.popleft())
            worker.pipe.send(busy[worker.pipe][1])

    try:
        for worker in crew:
            give(worker)
        while busy:
            # A pipe whose other end is gone is ready too; the sentinel is for one that somebody else still holds.
            ready = wait([*busy, *(worker.process.sentinel for worker, _ in busy.values())])
            for worker, job in [one for one in busy.values() if {one[0].pipe, one[0].process.sentinel} & set(ready)]:
                del busy[worker.pipe]
                found = worker.result()
                if isinstance(found, BaseException):
                    raise found
                if isinstance(found, Died):
                    crew[crew.index(worker)] = worker = _started(context, work)
                give(worker)
                yield job, found
    finally:
        for worker in crew:
            worker.process.kill()
            worker.process.join()


def _started(context: Any, work: Callable[[Any], Any]) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work), daemon=True)
    with _without_script(), _without_ctrl_c():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _without_script() -> Iterator[None]:
    """Processes that start within this do not run the caller's script again, as Python would have them do: they need
    nothing of it, and one without `if __name__ == "__main__"` would compare again in each of them."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal, and the parent decides. Processes that start within this have it
    blocked from their first instruction on, long before they could ask for that themselves; here it comes late."""
    resource_tracker.ensure_running()  # multiprocessing starts it with the first process, and unblocks all then
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """In the worker: one thread, so that neither the number of workers nor an interruption changes a bit."""
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()
    while True:
        job = pipe.recv()
        try:
            found = work(job)
        except Exception as error:
            found = error
        pipe.send(found)


def _leave_with(sentinel: Any) -> None:
    """A worker does not outlive a killed parent."""
    wait([sentinel])
    os._exit(1)
