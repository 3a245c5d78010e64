"""Run jobs in worker processes, one job at a time each. A worker that dies is reported with its job and replaced; all
workers end when the caller leaves.

`ProcessPoolExecutor` does not fit: one dead process breaks the whole pool without naming its job, and shutting it down
waits for running jobs.
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
    """Result of a job whose process died, with the reason."""

    words: str


@dataclass
class _Worker:
    process: Any
    pipe: Connection

    def result(self) -> Any:
        """Return the result of its job, an exception for the caller, or `Died`."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            killed = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
            return Died(f"its process ended ({name}{killed})")


def results(jobs: Sequence[Job], work: Callable[[Job], Any], count: int) -> Iterator[tuple[Job, Any]]:
    """Yield every job with its result or `Died`, in the order of completion; an exception of `work` ends all jobs."""
    context = multiprocessing.get_context("spawn")
    left, crew, busy = deque(jobs), [_start(context, work) for _ in range(min(count, len(jobs)))], {}

    def give(worker: _Worker) -> None:
        if left:
            busy[worker.pipe] = (worker, left.popleft())
            worker.pipe.send(busy[worker.pipe][1])

    try:
        for worker in crew:
            give(worker)
        while busy:
            # A closed pipe is ready, too; the sentinel covers a pipe that another process still holds open.
            ready = wait([*busy, *(worker.process.sentinel for worker, _ in busy.values())])
            for worker, job in [one for one in busy.values() if {one[0].pipe, one[0].process.sentinel} & set(ready)]:
                del busy[worker.pipe]
                result = worker.result()
                if isinstance(result, BaseException):
                    raise result
                if isinstance(result, Died):
                    crew[crew.index(worker)] = worker = _start(context, work)
                give(worker)
                yield job, result
    finally:
        for worker in crew:
            worker.process.kill()
            worker.process.join()


def _start(context: Any, work: Callable[[Any], Any]) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work), daemon=True)
    with _without_script(), _without_ctrl_c():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _without_script() -> Iterator[None]:
    """Start processes without running the caller's script again.

    They need nothing of it, and a script without `if __name__ == "__main__"` would start its work again in each.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Start processes with Ctrl-C blocked, which reaches every process of a terminal: the parent decides what to do."""
    resource_tracker.ensure_running()  # it would be started with the first process, and unblock all signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """Run jobs in a worker, on one thread, so that the number of workers does not change results."""
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()
    while True:
        job = pipe.recv()
        try:
            result = work(job)
        except Exception as error:
            result = error
        pipe.send(result)


def _leave_with(sentinel: Any) -> None:
    """End the worker when its parent is killed."""
    wait([sentinel])
    os._exit(1)
