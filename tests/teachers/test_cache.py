"""Matrices in the cache: computed once, and after an interruption only the rest."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from partly.teachers import cache


def test_a_matrix_is_computed_once_and_goes_on_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SAVE_SECONDS", 0.0)
    calls: list[int] = []

    def compute(rows: slice) -> np.ndarray:
        if rows.start == 4 and len(calls) < 3:
            calls.append(-1)
            raise KeyboardInterrupt
        calls.append(rows.start)
        return np.arange(rows.start, rows.stop, dtype=np.float32)[:, None] * [1, 10]

    arguments = ({"test": "resume"}, (7, 2), compute, 2, "Testing")
    with pytest.raises(KeyboardInterrupt):
        cache.load_or_compute(*arguments)
    found = cache.load_or_compute(*arguments)
    assert calls == [0, 2, -1, 4, 6]
    np.testing.assert_array_equal(found, np.arange(7)[:, None] * [1, 10])
    assert isinstance(cache.load_or_compute(*arguments), np.memmap)
    assert len(calls) == 5


def test_other_keys_have_other_matrices() -> None:
    first = cache.load_or_compute({"test": 1}, (2, 1), lambda rows: np.ones((2, 1), np.float32), 2, "Testing")
    other = cache.load_or_compute({"test": 2}, (2, 1), lambda rows: np.zeros((2, 1), np.float32), 2, "Testing")
    assert (first.sum(), other.sum()) == (2, 0)


def test_a_failure_keeps_what_was_computed() -> None:
    calls: list[int] = []

    def compute(rows: slice) -> np.ndarray:
        calls.append(rows.start)
        if rows.start == 4 and calls.count(4) == 1:
            raise OSError("the model is gone")
        return np.ones((rows.stop - rows.start, 1), np.float32)

    with pytest.raises(OSError, match="gone"):
        cache.load_or_compute({"test": "failure"}, (6, 1), compute, 2, "Testing")
    assert cache.load_or_compute({"test": "failure"}, (6, 1), compute, 2, "Testing").sum() == 6
    assert calls == [0, 2, 4, 4]


def test_a_second_process_waits_for_the_first() -> None:
    started, calls = threading.Event(), list[int]()

    def compute(rows: slice) -> np.ndarray:
        calls.append(rows.start)
        started.set()
        time.sleep(0.2)
        return np.ones((2, 1), np.float32)

    arguments = ({"test": "two at once"}, (2, 1), compute, 2, "Testing")
    with ThreadPoolExecutor() as pool:
        first = pool.submit(cache.load_or_compute, *arguments)
        assert started.wait(10)
        second = cache.load_or_compute(*arguments)
        np.testing.assert_array_equal(first.result(), second)
    assert calls == [0]
