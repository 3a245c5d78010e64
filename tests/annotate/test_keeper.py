"""The trainer as a process: it poses, dies, comes back, and ends with who started it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from annotate.test_trainer import written
from partly.annotate import figures
from partly.annotate.keeper import Keeper
from partly.annotate.project import open_project

PATIENCE = 900.0  # seconds; the machine may be busy, and the trainer stands back


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_trainer_that_is_killed_comes_back_and_goes_on(tmp_path: Path) -> None:
    plan = written(tmp_path)
    _, desk = open_project(plan)
    keeper = Keeper(plan, pause=0.1).start()
    try:
        until(lambda: figures.rounds(desk))  # in the middle of its first training
        first = keeper.process
        assert first is not None
        first.kill()
        until(lambda: keeper.process is not first and len(figures.rounds(desk)) == 2)
        until(lambda: keeper.words() == "The trainer waits for answers.")
        assert [one["query"] for one in figures.rounds(desk)] == ["before any model", "uncertainty"]
    finally:
        keeper.end()
    assert keeper.process is not None
    assert keeper.process.poll() is not None
