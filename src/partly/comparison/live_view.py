"""Progress of a running comparison: finished cells, remaining time, and mean scores so far."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import ExitStack
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from partly.comparison.results import Record
from partly.distributed.progress import room_for_bar, visible

PRINT_INTERVAL_SECONDS = 30.0  # where there is no terminal


class LiveView:
    """A live table on a terminal, a line now and then elsewhere, and nothing if progress is off."""

    def __init__(self, total: int, finished: list[Record], enabled: bool) -> None:
        self.total, self.records, self.enabled = total, list(finished), enabled
        self.resumed, self.started, self.printed = len(finished), time.monotonic(), 0.0
        self.console, self._room = Console(stderr=True), ExitStack()
        self.live = Live(self, console=self.console, refresh_per_second=1) if enabled and visible() else None
        self.means: Table | None = None

    def __enter__(self) -> Self:
        if self.live:
            self._room.enter_context(room_for_bar())
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.live.stop()
        self._room.close()

    def add(self, record: Record) -> None:
        self.records.append(record)
        if self.live:
            self.means = self.build_table()
            self.live.refresh()
        elif self.enabled and self._is_due():
            self.printed = time.monotonic()
            self.console.print(self.describe())

    def _is_due(self) -> bool:
        return time.monotonic() - self.printed > PRINT_INTERVAL_SECONDS or len(self.records) == self.total

    def __rich__(self) -> RenderableType:
        """Return the status with elapsed time, and the mean scores; drawn every second."""
        status = Text(f"{self.describe()} ({time.monotonic() - self.started:.0f} s)")
        return status if self.means is None else Group(status, self.means)

    def describe(self) -> str:
        status = f"{len(self.records)} of {self.total} cells"
        new = len(self.records) - self.resumed
        if not new:
            return status
        elapsed = time.monotonic() - self.started
        left = elapsed / new * (self.total - len(self.records))
        return f"{status}, about {left / 60:.0f} min left" if left else f"{status}, done"

    def build_table(self) -> Table:
        """Mean test mAP so far: a row for data, scenario and head, a column per method."""
        scores: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for record in self.records:
            if record["test"]["mAP"] is not None:
                row: tuple[str, ...] = (record["data"], record["scenario"], record["head"])
                scores[row][record["method"]].append(record["test"]["mAP"])
        methods = sorted({method for row in scores.values() for method in row})
        table = Table("data", "scenario", "head", *(Column(Text(name)) for name in methods))  # no markup
        for row, cells in sorted(scores.items()):
            means = (f"{sum(v) / len(v):.3f} ({len(v)})" if (v := cells.get(m)) else "" for m in methods)
            table.add_row(*map(Text, row), *means)
        return table
