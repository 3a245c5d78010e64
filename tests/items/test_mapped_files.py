"""Features that stay in their file: what is read of it and when, and a digest that lies beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from partly.atomic_io import sha256_of
from partly.errors import DataError
from partly.items import Arrays, arrays, as_items, map_npy

Array = np.ndarray[Any, Any]
X = np.array([[1.5, -2.0], [0.0, 0.25], [3.0, 4.0]], np.float32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", X)
    return tmp_path / "x.npy"


def beside(file: Path, text: str, newer: float = 1.0) -> None:
    """A digest that was written so many seconds after the features."""
    path = file.with_name(f"{file.name}.sha256")
    path.write_text(text)
    at = file.stat().st_mtime + newer
    os.utime(path, (at, at))


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen: list[int] = []
    part = Arrays._part

    def counted(self: Arrays, index: Any) -> Array:
        read = part(self, index)
        seen.append(len(read))
        return read

    monkeypatch.setattr(Arrays, "_part", counted)
    return seen


@given(
    hnp.arrays(np.float16, st.tuples(st.integers(1, 6), st.integers(1, 3)), elements=st.floats(-99, 99, width=16)),
    st.sampled_from(["float16", "float32", "float64"]),
    st.booleans(),
)
def test_a_file_is_what_its_array_is(
    tmp_path_factory: pytest.TempPathFactory, x: Array, dtype: str, fortran: bool
) -> None:
    path = tmp_path_factory.mktemp("files") / "x.npy"
    np.save(path, np.asfortranarray(x.astype(dtype)) if fortran else x.astype(dtype))
    mapped, held = map_npy(path), as_items(x)
    assert isinstance(mapped.array, np.memmap)
    assert (len(mapped), mapped.shape, mapped.kind) == (len(held), held.shape, "features")
    for index in (slice(None), slice(1, None), torch.arange(len(x)).flip(0)):
        batch = mapped.take(index)
        assert batch.dtype == torch.float32
        assert torch.equal(batch, held.take(index))
    np.testing.assert_allclose(mapped.statistics.mean, held.statistics.mean, rtol=1e-12)
    np.testing.assert_allclose(mapped.statistics.scale, held.statistics.scale, rtol=1e-12)
    assert mapped.digest() == Arrays(x.astype(dtype)).digest()


def test_float32_is_not_copied(file: Path) -> None:
    items = map_npy(file)
    assert np.shares_memory(items.take(slice(0, 2)).numpy(), items.array)


def test_nobody_writes_to_the_file(file: Path) -> None:
    before = file.read_bytes()
    items = map_npy(file)
    items.take(slice(None)).fill_(7)
    del items
    assert file.read_bytes() == before


def test_opening_reads_nothing_and_a_batch_reads_its_rows(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = reads(monkeypatch)
    items = map_npy(file)[::2][:1]
    assert (len(items), items.shape, seen) == (1, (2,), [])
    items.take(torch.tensor([0]))
    assert seen == [1]


def test_one_pass_for_statistics_and_digest(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "BLOCK", 4)  # two items
    seen = reads(monkeypatch)
    items = map_npy(file)
    assert items.statistics.mean.tolist() == pytest.approx([1.5, 0.75])
    assert items.digest() == Arrays(X).digest()
    assert seen == [2, 1, 2, 1]  # and those of the array in memory


# ---------------------------------------------------------------- a digest beside the file


def test_a_file_that_carries_its_own_digest_is_not_read_for_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside(file, f"{'ab' * 32}  x.npy\n")
    seen = reads(monkeypatch)
    items = map_npy(file)
    assert items.digest() == items[:].digest() == "ab" * 32
    assert len({items.digest(), items[:2].digest(), items[1:].digest(), items[::-1].digest()}) == 4
    assert items[:2].digest() == items[np.array([0, 1])].digest() == items[np.array([True, True, False])].digest()
    assert items[1:].digest() == items[::-1][:2][::-1].digest()
    assert not seen
    assert items.statistics.mean.tolist() == pytest.approx([1.5, 0.75])
    assert seen == [3]


def test_a_view_of_all_items_has_the_digest_of_the_file(file: Path) -> None:
    beside(file, "ab" * 32)
    items = map_npy(file)
    assert items[np.arange(3)].digest() == items[np.ones(3, bool)].digest() == items.digest()


def test_as_sha256sum_prints_it(file: Path) -> None:
    beside(file, f"{sha256_of(file)}  {file.name}\n")
    assert map_npy(file).digest() == sha256_of(file)


def test_a_digest_that_is_as_old_as_the_file_counts(file: Path) -> None:
    beside(file, "ab" * 32, newer=0)
    assert map_npy(file).digest() == "ab" * 32


def test_a_stale_digest_is_ignored(file: Path) -> None:
    for text in ("ab" * 32, "no digest at all"):
        beside(file, text, newer=-1)
        assert map_npy(file).digest() == Arrays(X).digest()


@pytest.mark.parametrize("text", ["", " \n", "ab" * 31, "ab" * 33, "AB" * 32, "xy" * 32, f"x.npy {'ab' * 32}", "\xff"])
def test_a_malformed_digest_is_refused(file: Path, text: str) -> None:
    beside(file, text)
    with pytest.raises(DataError, match=r"x\.npy\.sha256: must hold a digest in the format of `sha256sum x\.npy`"):
        map_npy(file)


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("block", [4, 1 << 22])  # two items, and all at once
def test_what_is_not_finite_is_refused_when_it_is_measured(
    file: Path, monkeypatch: pytest.MonkeyPatch, bad: float, block: int
) -> None:
    monkeypatch.setattr(arrays, "BLOCK", block)
    x = np.ones((7, 2), np.float32)
    x[5, 1] = bad
    np.save(file, x)
    items = map_npy(file)
    with pytest.raises(DataError) as told:
        _ = items.statistics
    assert f"\n  item 5, feature 1: {bad}" in str(told.value)
    assert "Fill them in" in str(told.value)


def test_what_is_refused_is_named(file: Path) -> None:
    np.save(file, np.where(X == 4, np.nan, X))
    with pytest.raises(DataError) as told:
        _ = map_npy(file).statistics
    assert str(file) in str(told.value)


@pytest.mark.parametrize("bad", ["1e+300", "-3e+38"])
def test_what_is_too_large_is_refused_when_it_is_measured(file: Path, bad: str) -> None:
    np.save(file, np.array([[1.0, float(bad)]]))
    with pytest.raises(DataError, match=rf"too large .*\n  item 0, feature 1: {re.escape(bad)}"):
        _ = map_npy(file).statistics


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((2, 2, 2)), np.array([["1"]]), np.ones((2, 2), complex)])
def test_what_is_no_matrix_of_numbers(file: Path, bad: Array) -> None:
    np.save(file, bad)
    with pytest.raises(DataError, match=r"x\.npy: features must be a matrix of numbers, items x features; got"):
        map_npy(file)


def test_an_archive_under_this_name(file: Path) -> None:
    with file.open("wb") as opened:
        np.savez(opened, x=X)
    with pytest.raises(DataError, match=r"x\.npy: features must be a matrix .*; got an archive"):
        map_npy(file)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x80\x04K\x01.", b"1,2\n3,4\n"])
def test_what_is_no_npy_file(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.npy: cannot be read"):
        map_npy(file)
    with pytest.raises(DataError, match=r"none\.npy: cannot be read"):
        map_npy(file.with_name("none.npy"))


def test_in_a_view_the_place_in_the_file_is_named(tmp_path: Path) -> None:
    x = np.zeros((90, 2), np.float32)
    x[60, 1] = np.nan
    np.save(tmp_path / "x.npy", x)
    view = map_npy(tmp_path / "x.npy")[np.arange(50, 90)]
    with pytest.raises(DataError, match=r"x\.npy: .*\n  item 60, feature 1: nan"):
        view.statistics  # noqa: B018


def test_columns_that_lie_together_are_read_row_by_row_too(tmp_path: Path) -> None:
    x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3))
    np.save(tmp_path / "x.npy", x)
    items = map_npy(tmp_path / "x.npy")
    assert items.take(torch.tensor([3, 1])).tolist() == x[[3, 1]].tolist()
    assert items[np.array([2, 0])].take(torch.tensor([1])).tolist() == x[[0]].tolist()
