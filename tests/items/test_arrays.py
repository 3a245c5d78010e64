"""Items in one array: statistics against NumPy in float64, one pass, the digest, and what is refused at the door."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from partly.errors import DataError
from partly.items import Arrays, arrays, as_items, features, image_array

Array = np.ndarray[Any, Any]
X = np.array([[1.5, -2.0], [0.0, 1e-3], [3.0, 4.0]], np.float32)
VALUES = st.floats(-1e4, 1e4, width=32)
BLOCKS = st.sampled_from([1, 5, 1 << 22])  # numbers: an item each, one or two, all at once


def digest(x: Array) -> str:
    return Arrays(x).digest()


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the number of items whenever some are read."""
    seen: list[int] = []
    part = Arrays._part

    def counted(self: Arrays, index: Any) -> Array:
        read = part(self, index)
        seen.append(len(read))
        return read

    monkeypatch.setattr(Arrays, "_part", counted)
    return seen


# ---------------------------------------------------------------- take


def test_pictures_come_with_their_channels_first() -> None:
    x = np.arange(2 * 16 * 17 * 3, dtype=np.uint8).reshape(2, 16, 17, 3)
    items = image_array(x)
    assert items.shape == (3, 16, 17)
    batch = items.take(torch.tensor([1]))
    assert batch.shape == (1, 3, 16, 17)
    assert batch.dtype == torch.uint8
    assert batch[0, 2, 5, 7] == x[1, 5, 7, 2]
    assert torch.equal(items.take(slice(1, 2)), batch)


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int64", "bool", ">f4"])
def test_numbers_of_any_kind_come_as_float32(dtype: str) -> None:
    x = np.asfortranarray(X.astype(dtype))
    for items in (features(x), Arrays(x)):
        for batch in (items.take(slice(None)), items.take(torch.arange(3))):
            assert batch.dtype == torch.float32
            np.testing.assert_array_equal(batch.numpy(), X.astype(dtype).astype(np.float32))
    assert features(x).prepared.array.flags.c_contiguous


def test_nothing_is_copied_where_the_array_is_float32_already() -> None:
    x = X.copy()
    items = as_items(x)
    assert items.array is x
    assert np.shares_memory(items.take(slice(0, 2)).numpy(), x)
    assert np.shares_memory(as_items(torch.from_numpy(x)).array, x)
    assert as_items(items[:2]).array is x
    seen = np.zeros((2, 16, 16, 3), np.uint8)
    assert as_items(seen).array is seen


def test_memory_that_cannot_be_written_to_is_copied() -> None:
    """torch would warn of it."""
    x = X.copy()
    x.setflags(write=False)
    np.testing.assert_array_equal(as_items(x).take(slice(None)).numpy(), X)


# ---------------------------------------------------------------- statistics


@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=VALUES), BLOCKS)
def test_statistics_of_features(x: Array, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK", block)
        found = as_items(x).statistics
    np.testing.assert_allclose(found.mean, x.mean(axis=0, dtype=np.float64), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(found.scale, x.astype(np.float64).std(axis=0), rtol=1e-9, atol=1e-9)


@given(hnp.arrays(np.uint8, (5, 3, 4, 2)), BLOCKS)
def test_statistics_of_pictures_are_by_channel(x: Array, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK", block)
        found = Arrays(x, "pictures").statistics
    np.testing.assert_allclose(found.mean, x.mean(axis=(0, 1, 2), dtype=np.float64), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(found.scale, x.astype(np.float64).std(axis=(0, 1, 2)), rtol=1e-9, atol=1e-9)


@given(hnp.arrays(np.float32, (6, 2), elements=VALUES), hnp.arrays(bool, 6).filter(np.any), BLOCKS)
def test_statistics_of_a_view(x: Array, chosen: Array, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK", block)
        found = as_items(x)[chosen].statistics
    np.testing.assert_allclose(found.mean, x[chosen].mean(axis=0, dtype=np.float64), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(found.scale, x[chosen].astype(np.float64).std(axis=0), rtol=1e-9, atol=1e-9)


def test_a_large_offset_leaves_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of squares would lose some of it."""
    monkeypatch.setattr(arrays, "BLOCK", 7)
    x = 1e6 + np.random.default_rng(0).integers(0, 4, (100, 1))
    np.testing.assert_allclose(as_items(x).statistics.scale, x.std(axis=0), rtol=1e-9)


def test_one_pass_for_statistics_and_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "BLOCK", 4)  # two items
    items = as_items(np.ones((7, 2), np.float32))
    expected = as_items(np.ones((7, 2), np.float32)).digest()
    seen = reads(monkeypatch)
    assert items.statistics.mean.tolist() == [1, 1]
    assert items.digest() == expected
    assert items.statistics is items.statistics
    assert seen == [2, 2, 2, 1]


def test_the_digest_alone_takes_one_pass_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "BLOCK", 6)
    items = as_items(np.ones((7, 2), np.float32))
    seen = reads(monkeypatch)
    assert items.digest() == items.digest()
    assert seen == [3, 3, 1]


# ---------------------------------------------------------------- digest


def test_the_digest_is_of_shape_type_and_numbers() -> None:
    expected = hashlib.sha256(b"(3, 2)<f4" + X.astype("<f4").tobytes()).hexdigest()
    assert digest(X) == expected
    assert digest(np.asfortranarray(X)) == digest(np.repeat(X, 2, 0)[::2]) == expected
    assert as_items(X.astype(">f4")).digest() == as_items(X.astype(np.float64)).digest() == expected
    changed = X.copy()
    changed[0, 0] += 1
    others = {digest(changed), digest(X.reshape(2, 3)), digest(X.view(np.int32)), digest(X[::-1]), expected}
    assert len(others) == 5
    assert digest(np.zeros((0, 3))) != digest(np.zeros((3, 0)))


def test_the_order_of_bytes_is_no_part_of_the_digest() -> None:
    assert digest(X.astype(">f4")) == digest(X.astype("<f4"))


@given(hnp.arrays(np.float32, (5, 3), elements=VALUES), BLOCKS, st.integers(0, 4), st.integers(0, 2))
def test_the_digest_sees_every_number_and_not_the_blocks(x: Array, block: int, i: int, j: int) -> None:
    whole, other = digest(x), x.copy()
    other[i, j] += 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK", block)
        assert digest(x) == whole
        assert digest(other) != whole


def test_the_digest_of_a_view_is_that_of_a_copy() -> None:
    items = as_items(X)
    assert items[1:].digest() == items[np.array([1, 2])].digest() == as_items(X[1:].copy()).digest()
    assert items[:].digest() == items[np.arange(3)].digest() == items.digest()
    assert items[::-1].digest() != items.digest()
    assert items[:2].digest() != items.digest()


# ---------------------------------------------------------------- refused


def test_the_door_for_arrays_names_its_place() -> None:
    with pytest.raises(DataError, match="X: features must be a matrix"):
        features([1, 2], "X")
    with pytest.raises(DataError, match=r"X: .*\n  item 0, feature 1: nan"):
        as_items([[1.0, float("nan")]], "X")
    with pytest.raises(DataError, match=r"X: .*\n  item 0, feature b: nan"):
        features([[1.0, float("nan")]], "X", names=("a", "b"))
    with pytest.raises(DataError, match=r"F: .*\n  there, 0 and 1: nan"):
        features([[1.0, float("nan")]], "F", place=lambda i, j: f"there, {i} and {j}")


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((2, 2, 2)), np.array([["1"]]), np.ones((2, 2), complex)])
def test_what_is_no_matrix_of_numbers(bad: Array) -> None:
    with pytest.raises(DataError, match="X: features must be a matrix of numbers, items x features; got"):
        as_items(bad)


def test_features_that_are_not_finite_are_counted_and_placed() -> None:
    x = np.ones((10, 3))
    x[2, 1], x[4, 0], x[5, 2], x[6:, 0] = np.nan, np.inf, 1e300, -np.inf
    with pytest.raises(DataError) as told:
        as_items(x)
    lines = str(told.value).splitlines()
    assert lines[0] == "X: 7 of 30 features are missing (NaN), infinite or too large (beyond 1e+37)"
    assert lines[1:4] == ["  item 2, feature 1: nan", "  item 4, feature 0: inf", "  item 5, feature 2: 1e+300"]
    assert lines[6] == "  ... and 2 more"
    assert lines[7].startswith("Fill them in")


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((2, 16, 16, 3), np.float32),
        ((2, 16, 16, 3), np.int8),
        ((2, 16, 16, 2), np.uint8),
        ((2, 16, 16, 4), np.uint8),
        ((2, 3, 16, 16), np.uint8),
        ((2, 15, 16, 3), np.uint8),
        ((0, 16, 16, 3), np.uint8),
    ],
)
def test_what_are_no_pictures(shape: tuple[int, ...], dtype: type) -> None:
    with pytest.raises(DataError, match=r"X: images must be uint8 \[N, H, W, 1 or 3\], at least 16 x 16; got"):
        as_items(np.zeros(shape, dtype))


def test_a_tensor_is_taken_for_its_numbers() -> None:
    """Also one that NumPy has no type for, or that has a gradient."""
    x = torch.randn(3, 2)
    for one in (x.bfloat16(), x.requires_grad_(), x.detach().half()):
        assert torch.equal(as_items(one).take(slice(None)), one.detach().float())


def test_a_list_of_paths_is_refused_with_a_way_out() -> None:
    with pytest.raises(DataError, match=r"X holds paths\. Read the files of a folder: partly\.read\(FOLDER\)\.items"):
        as_items([Path("a.jpg"), Path("b.jpg")])
