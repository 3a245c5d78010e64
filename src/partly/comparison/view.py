"""What a person sees while a comparison runs: cells done, time left, the means so far."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import ExitStack
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.table import Column, Table
from rich.text import Text

from partly.distributed.progress import room_for_bar, visible

Line = dict[str, Any]
EVERY = 30.0  # seconds between two plain lines where there is no terminal


class Live:
    """A table on a terminal; a plain line now and then elsewhere; nothing where nobody wants to see it."""

    def __init__(self, total: int, done: list[Line], wanted: bool) -> None:
        self.total, self.lines, self.wanted = total, list(done), wanted
        self.before, self.begun, self.said = len(done), time.monotonic(), 0.0
        self.console, self._room = Console(stderr=True), ExitStack()
        self.live = RichLive(self, console=self.console, refresh_per_second=1) if wanted and visible() else None
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

    def add(self, line: Line) -> None:
        self.lines.append(line)
        if self.live:
            self.means = self.table()
            self.live.refresh()
        elif self.wanted and (time.monotonic() - self.said > EVERY or len(self.lines) == self.total):
            self.said = time.monotonic()
            self.console.print(self.status())

    def __rich__(self) -> RenderableType:
        """What is drawn every second: the status with the time, so that it is seen to go on, and the means."""
        status = Text(f"{self.status()} ({time.monotonic() - self.begun:.0f} s)")
        return status if self.means is None else Group(status, self.means)

    def status(self) -> str:
        ran = len(self.lines) - self.before
        if not ran:
            return f"{len(self.lines)} of {self.total} cells"
        left = (time.monotonic() - self.begun) / ran * (self.total - len(self.lines))
        return f"{len(self.lines)} of {self.total} cells, about {left / 60:.0f} min left"

    def table(self) -> Table:
        """Mean test mAP so far: a row for data, scenario and head, a column per method."""
        means: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for line in self.lines:
            if line["test"]["mAP"] is not None:
                row: tuple[str, ...] = (line["data"], line["scenario"], line["head"])
                means[row][line["method"]].append(line["test"]["mAP"])
        methods = sorted({method for row in means.values() for method in row})
        table = Table("data", "scenario", "head", *(Column(Text(name)) for name in methods))  # no markup
        for row, cells in sorted(means.items()):
            shown = (f"{sum(v) / len(v):.3f} ({len(v)})" if (v := cells.get(m)) else "" for m in methods)
            table.add_row(*map(Text, row), *shown)
        return table
