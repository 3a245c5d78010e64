"""A progress bar for the loop to report to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from partly.clock import Clock

Watch = Callable[[Clock, dict[str, float]], None]


@contextmanager
def watcher(method: str, head: str, epochs: int, wanted: bool = True) -> Iterator[Watch | None]:
    """Yield a callback for `run.fit(watch=...)` that draws a progress bar; None where there is no terminal for it."""
    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("epoch {task.fields[epoch]}/{task.total:.0f}{task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"{method}, {head}", total=epochs, epoch=1, loss="")

        def watch(clock: Clock, logs: dict[str, float]) -> None:
            done = clock.progress * clock.epochs
            loss = logs.get("loss", math.nan)
            told = f"  loss {loss:.4f}" if math.isfinite(loss) else ""
            bar.update(task, completed=done, epoch=min(clock.epoch + 1, epochs), loss=told)

        yield watch
