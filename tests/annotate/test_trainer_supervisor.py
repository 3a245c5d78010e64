"""The trainer as a process: it poses, dies, comes back, and ends with who started it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from annotate.test_trainer import written
from partly.annotate import stats
from partly.annotate.project import open_project
from partly.annotate.trainer import failure
from partly.annotate.trainer_supervisor import Keeper, TrainerStatus, killed

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
        until(lambda: stats.rounds(desk))  # in the middle of its first training
        first = keeper.process
        assert first is not None
        first.kill()
        until(lambda: keeper.process is not first and len(stats.rounds(desk)) == 2)
        until(lambda: keeper.status() == TrainerStatus("The trainer waits for answers."))
        assert [one["query"] for one in stats.rounds(desk)] == ["before any model", "uncertainty"]
    finally:
        keeper.end()
    assert keeper.process is not None
    assert keeper.process.poll() is not None


def test_a_trainer_that_fails_says_why_and_what_to_do(tmp_path: Path) -> None:
    """Until it works again, also while it is tried once more."""
    plan = written(tmp_path)
    open_project(plan)
    hidden = Path(plan.data).rename(tmp_path / "moved.csv")
    keeper = Keeper(plan, pause=0.1).start()
    try:
        until(lambda: keeper.status().failure)
        failure = keeper.status().failure or ""
        assert plan.data in failure
        assert "Correct this, or restart partly annotate" in failure
        assert plan.data not in keeper.status().for_person(admin=False)
        assert "Your answers are saved. Please tell an admin." in keeper.status().for_person(admin=False)
        assert "See Overview" in keeper.status().for_person(admin=True)
        hidden.rename(plan.data)
        until(lambda: keeper.status() == TrainerStatus("The trainer waits for answers."))
    finally:
        keeper.end()


def test_reasons_of_failures() -> None:
    assert "--method partial-bce" in failure(ZeroDivisionError("oops"))
    assert "ZeroDivisionError: oops" in failure(ZeroDivisionError("oops"))
    assert "Memory ran out" in failure(MemoryError())
    assert "memory ran out" in killed(-signal.SIGKILL)
    assert "exit code 3" in killed(3)
