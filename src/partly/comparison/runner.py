"""Runs the cells of an experiment in worker processes, a line per finished cell; after a kill it goes on."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache, partial
from multiprocessing.connection import wait
from pathlib import Path
from types import ModuleType
from typing import Any

from partly.comparison import lines
from partly.comparison.plan import Cell, Experiment
from partly.comparison.protocol import blind, open_data, run_cell
from partly.comparison.view import Live
from partly.data import Dataset
from partly.files import locked


def run(experiment: Experiment, out: Path, workers: int | None = None, progress: bool = True) -> list[lines.Line]:
    """Run what is not there yet; returns every line of the experiment. The file is `<out>/<name>.jsonl`."""
    path = out / f"{experiment.name}.jsonl"
    with locked(out):
        there = {lines.key_of(line): line for line in lines.read(path)}
        lines.check(list(there.values()))
        lines.check_present(list(there.values()))
        opened = partial(_opened, labels=experiment.labels, skip_bad=experiment.skip_bad)
        wanted = {_key(cell, opened(cell.data, size=cell.size)): cell for cell in experiment.cells()}
        todo = [cell for key, cell in wanted.items() if key not in there]
        with Live(len(wanted), [there[key] for key in wanted if key in there], progress) as live:
            for line in _finished(todo, experiment, workers or os.cpu_count() or 1):
                lines.check([*there.values(), line])
                lines.append(path, line)
                there[lines.key_of(line)] = line
                live.add(line)
        lines.settle(path, there.values())
    return [there[key] for key in wanted]


def unlisted(experiment: Experiment) -> int:
    """How many items there are of which a file of labels says nothing at all."""
    how = {"labels": experiment.labels, "skip_bad": experiment.skip_bad, "size": experiment.size}
    return sum(len(_opened(name, **how).unlisted) for name in experiment.data)


def _finished(todo: list[Cell], experiment: Experiment, workers: int) -> Iterator[lines.Line]:
    """The lines of these cells as they come. Always in processes of one thread each, however many there are, so that
    neither the number of workers nor an interruption changes a bit."""
    if not todo:
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(todo)), context, initializer=_start_worker)
    try:
        how = (experiment.labels, experiment.skip_bad)
        with _without_script():  # the processes start here
            futures: list[Future[lines.Line]] = [pool.submit(_work, cell, *how) for cell in todo]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


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


def _start_worker() -> None:
    import torch

    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()


def _leave_with(sentinel: Any) -> None:
    """A worker does not outlive a killed parent."""
    wait([sentinel])
    os._exit(1)


def _work(cell: Cell, labels: str | None, skip_bad: bool) -> lines.Line:
    _blind(cell.method, json.dumps(cell.settings))  # outside of the cell's time, as is all that is loaded on first use
    return run_cell(cell, _opened(cell.data, labels=labels, skip_bad=skip_bad, size=cell.size))


@cache
def _blind(method: str, settings: str) -> None:
    blind(method, json.loads(settings))


@cache
def _opened(name: str, *, labels: str | None, skip_bad: bool, size: int | None) -> Dataset:
    return open_data(name, labels, skip_bad, size)


def _key(cell: Cell, data: Dataset) -> str:
    return lines.key_of(cell.key() | {"data_digest": data.digest})
