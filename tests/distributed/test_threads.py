"""How many threads: what was asked for, what may be used, and one where a step is small."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from partly import PerLabel
from partly.distributed import threads


@pytest.fixture(autouse=True)
def nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in threads.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "5000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
    ],
)
def test_cores(files: dict[str, str], expected: int, tmp_path: Path) -> None:
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert threads.cores(tmp_path) == expected
    assert threads.choose(threads.MAX_SINGLE_THREAD_WORK, tmp_path)[0] == expected
    assert threads.choose(threads.MAX_SINGLE_THREAD_WORK - 1, tmp_path)[0] == 1


def test_what_was_asked_for_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads.choose(threads.MAX_SINGLE_THREAD_WORK, tmp_path) == (0, "OMP_NUM_THREADS=5")
    assert threads.choose(1, tmp_path)[0] == 1  # the same bits, whatever is set


# ---------------------------------------------------------------- pools


def pools() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info()}


def test_small_work_has_one_thread_and_then_as_many_as_before() -> None:
    torch.set_num_threads(2)
    with threadpool_limits(2):
        with threads.thread_limit(1):
            assert pools() == {1}
            assert torch.get_num_threads() == 1
            assert threads.workers() == 2
            with threads.thread_limit(1):
                assert pools() == {1}
            assert pools() == {1}
        assert pools() == {2}
        assert torch.get_num_threads() == threads.workers() == 2
        with threads.thread_limit(threads.MAX_SINGLE_THREAD_WORK):
            assert pools() == {2}
        with pytest.raises(ZeroDivisionError), threads.thread_limit(1):
            raise ZeroDivisionError
        assert pools() == {2}


def test_what_overlaps_in_other_threads_is_restored_at_the_end() -> None:
    with threadpool_limits(2):
        torch.set_num_threads(2)
        first, second = threads.thread_limit(1), threads.thread_limit(1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert pools() == {1}
        second.__exit__(None, None, None)
        assert pools() == {2}


SCRIPT = """
import hashlib, sys
import numpy as np
from threadpoolctl import threadpool_info
import partly
from partly import training

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 60))
Y = np.where(rng.random((400, 5)) < 0.5, X[:, :5] > 0, np.nan)
seen = set()
kept = training.train
def train(*given, **named):
    seen.update(pool["num_threads"] for pool in threadpool_info())
    return kept(*given, **named)
training.train = train
for method, head in (("bce", "linear"), ("bce", "kernel"), ("auto", "auto"), ("em", "mlp")):
    model = partly.Classifier(method, head, progress=False, epochs=None if method == "auto" else 1)
    p = model.fit(X, Y).predict_proba(X)
    print(method, head, hashlib.sha256(p.tobytes()).hexdigest())
print(sorted(seen), sorted({pool["num_threads"] for pool in threadpool_info()}))
"""


def test_a_classifier_gives_the_same_bits_whatever_the_pool() -> None:
    said = {}
    for count in ("1", "2"):
        there = os.environ | dict.fromkeys((*threads.THREAD_VARIABLES, "OPENBLAS_NUM_THREADS"), count)
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=there, check=True, capture_output=True, text=True)
        *digests, counts = done.stdout.splitlines()
        said[count] = digests
        assert counts == f"[1] [{count}]"
    assert said["1"] == said["2"]
    assert len(said["1"]) == 4


def test_per_label_fits_with_one_thread_too() -> None:
    seen: set[int] = set()

    class Watching(LogisticRegression):
        def fit(self, *given: Any, **named: Any) -> Any:
            seen.update(pools())
            return super().fit(*given, **named)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3))
    with threadpool_limits(2):
        PerLabel(Watching(), progress=False).fit(x, (x > 0).astype(float))
        assert seen == {1}
        assert pools() == {2}


def test_jobs_run_in_threads_with_one_blas_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs wait for each other, so they can only end if they run at the same time; results keep their order."""
    monkeypatch.setattr(threads, "workers", lambda: 2)
    barrier, before = threading.Barrier(2, timeout=20), torch.get_num_threads()

    def job(number: int) -> tuple[int, set[int]]:
        barrier.wait()
        return number, {pool["num_threads"] for pool in threadpool_info()}

    assert threads.parallel_map(job, [3, 1]) == [(3, {1}), (1, {1})]
    assert torch.get_num_threads() == before
    assert threads.parallel_map(job, []) == []


def test_jobs_of_small_work_start_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "workers", lambda: 2)
    with threads.thread_limit(threads.MAX_SINGLE_THREAD_WORK - 1):
        used = threads.parallel_map(lambda _: threading.get_ident(), [1, 2, 3])
    assert set(used) == {threading.get_ident()}
