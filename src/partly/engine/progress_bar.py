"""A progress bar for training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from partly.clock import Clock
from partly.distributed.progress import room_for_bar, visible

StepCallback = Callable[[Clock, dict[str, float]], None]


@contextmanager
def progress_callback(method: str, head: str, epochs: int, wanted: bool = True) -> Iterator[StepCallback | None]:
    """Show a progress bar; yield the callback of `fit` that moves it, or None where no bar is shown."""
    if not wanted or not visible():
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("epoch {task.fields[epoch]}/{task.total:.0f}{task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with room_for_bar(), Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{method}, {head}", total=epochs, epoch=1, loss="")

        def move(clock: Clock, logs: dict[str, float]) -> None:
            done, loss = clock.progress * clock.epochs, logs.get("loss", math.nan)
            loss_text = f"  loss {loss:.4f}" if math.isfinite(loss) else ""
            bar.update(task, completed=done, epoch=clock.epoch + 1, loss=loss_text)

        yield move
