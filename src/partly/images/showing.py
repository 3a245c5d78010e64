"""How far a long pass over items has come, where somebody is watching."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from partly.distributed.progress import room_for_bar, visible

T = TypeVar("T")
FEW = 200  # so many take no time


def track_progress(
    things: Iterable[T], total: int, title: str, wanted: bool = True, weight: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """The same things; a bar counts them on a terminal, each for as much as it weighs."""
    if not wanted or total < FEW or not visible():
        yield from things
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with room_for_bar(), Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        for thing in things:
            bar.advance(task, weight(thing))
            yield thing
