"""Show progress on a terminal: one line with the current step, or a bar in its place.

Nothing is shown if stderr is not a terminal (so not with --quiet), in all processes but the first, and within
`allow_progress(False)`, which `progress=False` of the Python interface uses.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TextIO, cast

from partly.distributed.launched import current_rank

DELAY_SECONDS = 1.0  # shorter steps are not shown
PER_SECOND = 4  # updates of the line

_ALLOWED: ContextVar[bool] = ContextVar("progress is allowed", default=True)


class _Line:
    """The nested steps under way, the innermost last, and the display that shows it."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float]] = []
        self.bars = 0  # number of bars shown in its place
        self.terminal: Any = None  # stderr, also while the output of a library is hidden
        self.display: Any = None

    def __rich__(self) -> Any:
        from rich.text import Text

        words, begun = self.steps[-1] if self.steps else ("", time.monotonic())
        seconds = time.monotonic() - begun
        sign = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[int(seconds * PER_SECOND) % 10]
        line = f"{sign} {words} ({seconds:.0f} s)" if seconds >= DELAY_SECONDS else ""
        return Text(line, no_wrap=True, overflow="ellipsis")

    def start(self) -> None:
        if self.steps and not self.bars and self.display is None:
            from rich.console import Console
            from rich.live import Live

            plain: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
            self.display = Live(self, console=Console(file=self.terminal), refresh_per_second=PER_SECOND, **plain)
            self.display.start()

    def stop(self) -> None:
        if self.display is not None:
            self.display.stop()
        self.display = None


class _Above:
    """A stream to the terminal that removes the line while text is written."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> Any:
        _LINE.stop()
        count = self.stream.write(text)
        self.stream.flush()
        if text.endswith("\n"):
            _LINE.start()
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


_LINE = _Line()


def visible() -> bool:
    """Return True if progress should be shown: on a terminal, in the main thread of the first process."""
    ours = current_rank().first and threading.current_thread() is threading.main_thread()
    return _ALLOWED.get() and ours and sys.stderr.isatty()


@contextmanager
def allow_progress(wanted: bool) -> Iterator[None]:
    """Show progress within this context only if `wanted`, here and in all outer contexts."""
    before = _ALLOWED.set(_ALLOWED.get() and wanted)
    try:
        yield
    finally:
        _ALLOWED.reset(before)


@contextmanager
def step(words: str) -> Iterator[None]:
    """Show a step and its duration while this context lasts."""
    if not visible():
        yield
        return
    _LINE.steps.append((words, time.monotonic()))
    try:
        with nullcontext() if _LINE.steps[1:] else _show():
            yield
    finally:
        _LINE.steps.pop()


@contextmanager
def _show() -> Iterator[None]:
    """Show the line on the terminal, below everything that is printed."""
    streams = sys.stdout, sys.stderr
    _LINE.terminal = sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, _Above(stream)) if stream.isatty() else stream for stream in streams)
    _LINE.start()
    try:
        yield
    finally:
        _LINE.stop()
        sys.stdout, sys.stderr = streams


@contextmanager
def room_for_bar() -> Iterator[None]:
    """Remove the line while a bar or a table is shown in its place."""
    _LINE.stop()
    _LINE.bars += 1
    try:
        yield
    finally:
        _LINE.bars -= 1
        _LINE.start()
