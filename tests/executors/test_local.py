"""Worker processes: who dies is replaced and named, and all end at once. Forked here, which is faster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from comparison.killed import alive, children, left
from comparison.making import write_split
from partly.comparison import results
from partly.executors import local

FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.multiprocessing, "get_context", lambda _: FORK)


def work(job: object) -> object:
    if isinstance(job, str):
        os.kill(os.getpid(), getattr(signal, job))
    if job == 13:
        raise ArithmeticError("unlucky")
    if job == 99:
        time.sleep(600)
    return os.getpid(), job


def test_every_job_comes_back_once() -> None:
    found = list(local.results(range(20, 40), work, 3))
    assert sorted(job for job, _ in found) == list(range(20, 40))
    assert all(told == job for job, (_, told) in found)
    assert 1 <= len({process for _, (process, _) in found}) <= 3
    assert list(local.results([], work, 3)) == []


def test_a_death_costs_one_job_and_is_named() -> None:
    jobs = [1, "SIGKILL", 2, 3, "SIGTERM", 4]
    found = dict(local.results(jobs, work, 2))
    assert found.keys() == set(jobs)
    assert found["SIGKILL"] == local.Died("its process ended (SIGKILL, as the system does when memory runs out)")
    assert found["SIGTERM"] == local.Died("its process ended (SIGTERM)")
    assert [found[job][1] for job in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_an_exception_is_raised_and_ends_all() -> None:
    with pytest.raises(ArithmeticError, match="unlucky"):
        list(local.results([99, 13], work, 2))
    assert not multiprocessing.active_children()


def test_all_end_at_once_when_the_caller_leaves() -> None:
    coming = local.results([1, 99, 99], work, 2)
    next(coming)
    begun = multiprocessing.active_children()
    assert begun
    coming.close()
    assert not any(alive(process.pid) for process in begun if process.pid)


def deaf(_: object) -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_ctrl_c_is_for_the_parent_alone() -> None:
    """From a worker's first instruction on: one that still imports must not end with a traceback of its own."""
    assert list(local.results([1], deaf, 1)) == [(1, True)]
    assert not deaf(None)


def test_a_signal_stops_a_comparison_and_what_is_finished_stays(tmp_path: Path) -> None:
    """For real, as a terminal does it: to all processes of a command. SIGINT, then SIGTERM to the parent alone."""
    write_split(tmp_path / "tiny.npz")
    (tmp_path / "small.toml").write_text(
        'data = "tiny.npz"\nmethods = ["bce"]\nscenarios = ["uniform:0.5"]\nheads = ["linear"]\nseeds = 400\n'
    )
    command = [sys.executable, "-m", "partly", "compare", "small.toml", "--out", "out", "--workers", "2"]
    path, before = tmp_path / "out" / "small.jsonl", 0
    for number, to_all in ((signal.SIGINT, True), (signal.SIGTERM, False)):
        with subprocess.Popen(
            command, cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as child:
            while child.poll() is None and len(results.read(path)) < before + 3:
                time.sleep(0.05)
            crew = children(child.pid)
            (os.killpg if to_all else os.kill)(child.pid, number)
            told = child.communicate(timeout=60)[1]
        assert child.returncode == 128 + number, told
        assert "Traceback" not in told
        assert left(crew) == []
        assert before + 3 <= len(results.read(path)) < 1200
        before = len(results.read(path))
        if to_all:
            assert f"{before} of 1200 cells are in" in told
