"""Arrays in memory, and beyond a size in a temporary file: the same values."""

from __future__ import annotations

import numpy as np
import pytest

from partly.errors import DataError
from partly.teachers import large_arrays


@pytest.mark.parametrize("most", [0, 7, 1000])
def test_stacked_blocks_are_the_matrix(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(large_arrays, "MAX_IN_MEMORY", most)
    matrix = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)
    stacked = large_arrays.stack((matrix[start : start + 2] for start in range(0, 11, 2)), 3)
    assert isinstance(stacked, np.memmap) == (most < 33)
    np.testing.assert_array_equal(stacked, matrix)
    assert large_arrays.stack([], 3).shape == (0, 3)


def test_a_large_array_is_mapped_and_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    small = large_arrays.allocate((4, 2))
    monkeypatch.setattr(large_arrays, "MAX_IN_MEMORY", 7)
    large = large_arrays.allocate((4, 2))
    assert (isinstance(small, np.memmap), isinstance(large, np.memmap)) == (False, True)
    large[:] = 3
    assert large.sum() == 24


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(large_arrays, "MAX_IN_MEMORY", 0)
    monkeypatch.setattr(large_arrays.tempfile, "TemporaryFile", fail)
    for call in (lambda: large_arrays.allocate((2, 2)), lambda: large_arrays.stack([np.ones((2, 2))], 2)):
        with pytest.raises(DataError, match=r"No space left on device.*TMPDIR"):
            call()
