"""The trainer as a process: it poses, dies, comes back, and ends with who started it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from annotate.test_trainer import written
from partly.annotate import trainer_supervisor
from partly.annotate.project import open_project
from partly.annotate.stats import read_snapshot
from partly.annotate.trainer import describe_failure
from partly.annotate.trainer_supervisor import TrainerStatus, TrainerSupervisor, describe_exit

PATIENCE = 900.0  # seconds; the machine may be busy, and the trainer stands back


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_trainer_that_is_killed_comes_back_and_goes_on(tmp_path: Path) -> None:
    plan = written(tmp_path)
    _, queue = open_project(plan)
    supervisor = TrainerSupervisor(plan, restart_seconds=0.1, close_seconds=PATIENCE).start()
    try:
        until(lambda: read_snapshot(queue).rounds)  # in the middle of its first training
        first = supervisor.process
        assert first is not None
        first.kill()
        until(lambda: supervisor.process is not first and len(read_snapshot(queue).rounds) == 2)
        until(lambda: supervisor.status() == TrainerStatus("The trainer waits for answers."))
        assert [one["query"] for one in read_snapshot(queue).rounds] == ["before any model", "uncertainty"]
    finally:
        supervisor.close()
    assert supervisor.process is not None
    assert supervisor.process.returncode == 0  # it ended by itself when its input was closed


def test_a_trainer_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing does not wait for the end of a round."""
    command = [sys.executable, "-c", "import time; print('{}', flush=True); time.sleep(600)"]
    monkeypatch.setattr(trainer_supervisor, "module_command", lambda _: (command, os.environ))
    supervisor = TrainerSupervisor(written(tmp_path), close_seconds=0.2).start()
    until(lambda: supervisor.status() == TrainerStatus())
    supervisor.close()
    assert supervisor.process is not None
    assert supervisor.process.returncode == -signal.SIGKILL


def test_a_trainer_that_fails_says_why_and_what_to_do(tmp_path: Path) -> None:
    """Until it works again, also while it is tried once more."""
    plan = written(tmp_path)
    open_project(plan)
    hidden = Path(plan.data).rename(tmp_path / "moved.csv")
    supervisor = TrainerSupervisor(plan, restart_seconds=0.1).start()
    try:
        until(lambda: supervisor.status().failure)
        failure = supervisor.status().failure or ""
        assert plan.data in failure
        assert "Correct this, or restart partly annotate" in failure
        assert plan.data not in supervisor.status().for_person(admin=False)
        assert "Your answers are saved. Please tell an admin." in supervisor.status().for_person(admin=False)
        assert "See Overview" in supervisor.status().for_person(admin=True)
        hidden.rename(plan.data)
        until(lambda: supervisor.status() == TrainerStatus("The trainer waits for answers."))
    finally:
        supervisor.close()


def test_reasons_of_failures() -> None:
    assert "--method partial-bce" in describe_failure(ZeroDivisionError("oops"))
    assert "ZeroDivisionError: oops" in describe_failure(ZeroDivisionError("oops"))
    assert "Memory ran out" in describe_failure(MemoryError())
    assert "memory ran out" in describe_exit(-signal.SIGKILL)
    assert "exit code 3" in describe_exit(3)
