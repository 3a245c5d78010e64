"""A progress bar for the loop to report to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from partly.clock import Clock

Watch = Callable[[Clock, dict[str, float]], None]


@contextmanager
def watcher(method: str, head: str, epochs: int, kept: int, wanted: bool = True) -> Iterator[Watch | None]:
    """Something to give to `run.fit(watch=...)`; None where nobody wants to see it. kept: bytes for entries."""
    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield None
        return
    title = f"{method}, {head}" + (f", keeps {kept / 2**20:.1f} MiB" if kept else "")
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("epoch {task.fields[epoch]}/{task.total:.0f}  loss {task.fields[loss]:.4f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=epochs, epoch=1, loss=float("nan"))

        def watch(clock: Clock, logs: dict[str, float]) -> None:
            done = clock.progress * clock.epochs
            bar.update(task, completed=done, epoch=clock.epoch + 1, loss=logs.get("loss", float("nan")))

        yield watch
