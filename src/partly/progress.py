"""A progress bar for the loop to report to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from partly.clock import Clock
from partly.training import Watch


@contextmanager
def watcher(title: str, epochs: int, wanted: bool = True) -> Iterator[Watch | None]:
    """Something to give to `training.train(watch=...)`; None where nobody wants to see it."""
    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
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
