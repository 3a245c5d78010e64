"""A progress bar for long passes over items, shown on terminals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from partly.distributed.progress import room_for_bar, visible

T = TypeVar("T")
MIN_ITEMS = 200  # fewer take no time


def track_progress(
    values: Iterable[T], total: int, title: str, wanted: bool = True, weight: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """Yield the values and count their weights in a progress bar, if this is a terminal."""
    if not wanted or total < MIN_ITEMS or not visible():
        yield from values
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with room_for_bar(), Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        for value in values:
            bar.advance(task, weight(value))
            yield value
