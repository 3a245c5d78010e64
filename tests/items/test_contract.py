"""What holds for items of every kind: views are NumPy's, and digests tell contents apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from partly import items as package
from partly.items import Absent, Arrays, Items, SparseRows, Statistics, as_items, is_items, map_npy, to_absent

Array = np.ndarray[Any, Any]
KINDS = ("features", "pictures", "sparse", "mapped", "mapped half")
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(kind: str, count: int, folder: Path) -> tuple[Items, Array]:
    """Items of a kind, and what `take` gives of all of them."""
    x = np.random.default_rng(0).integers(-3, 4, (count, 3)).astype(np.float32)
    if kind == "pictures":
        pictures = np.random.default_rng(0).integers(0, 256, (count, 16, 17, 3)).astype(np.uint8)
        return Arrays(pictures, "pictures"), pictures.transpose(0, 3, 1, 2)
    if kind == "sparse":
        return as_items(sp.csr_array(x)), x
    if kind == "features":
        return as_items(x), x
    np.save(folder / "x.npy", x.astype(np.float16 if kind == "mapped half" else np.float32))
    return map_npy(folder / "x.npy"), x


@st.composite
def indices(draw: st.DrawFn, count: int) -> slice | Array:
    """A slice, positions (also from the end, and more than once) or a mask of this many items."""
    positions = st.lists(st.integers(-count, count - 1), max_size=6) if count else st.just([])
    kind = draw(st.sampled_from(["slice", "positions", "mask"]))
    if kind == "slice":
        return draw(st.slices(count))
    if kind == "positions":
        return np.array(draw(positions), np.int64)
    return draw(hnp.arrays(bool, count))


@every_kind
@given(data=st.data(), count=st.integers(0, 8))
def test_a_view_of_a_view_is_numpys(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject, count: int
) -> None:
    items, x = make(kind, count, tmp_path_factory.mktemp("views"))
    for _ in range(3):
        index = data.draw(indices(len(x)))
        items, x = items[index], x[index]
        assert len(items) == len(x)
        assert items.shape == x.shape[1:]
        np.testing.assert_array_equal(items.take(slice(None)).numpy(), x)
    if len(x):
        some = data.draw(st.lists(st.integers(0, len(x) - 1)))
        np.testing.assert_array_equal(
            items.take(torch.tensor(some, dtype=torch.int64)).numpy(), x[some].reshape(-1, *x.shape[1:])
        )
    part = data.draw(st.slices(len(x)))
    np.testing.assert_array_equal(items.take(part).numpy(), x[part])


@every_kind
@given(data=st.data())
def test_the_digest_of_a_view_is_that_of_a_copy(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    items, _ = make(kind, 6, tmp_path_factory.mktemp("views"))
    rows = np.arange(6)
    for _ in range(2):
        index = data.draw(indices(len(rows)))
        items, rows = items[index], rows[index]
    if isinstance(items, Arrays):
        copy: Items = Arrays(items.array[rows], items.kind)
    else:
        copy = as_items(items.matrix[rows])
    assert items.digest() == copy.digest()


@every_kind
def test_what_every_kind_says_of_itself(tmp_path: Path, kind: str) -> None:
    items, x = make(kind, 5, tmp_path)
    assert is_items(items)
    assert as_items(items) is items
    assert items.kind == ("pictures" if kind == "pictures" else "features")
    assert len(items) == 5
    assert items.shape == x.shape[1:]
    assert items.names is None
    assert items.take(torch.tensor([3, 1])).dtype == (torch.uint8 if kind == "pictures" else torch.float32)
    assert isinstance(items.statistics, Statistics)
    assert items.statistics.mean.shape == items.statistics.scale.shape == (3,)
    assert items.statistics.mean.dtype == items.statistics.scale.dtype == torch.float64
    assert len(items.digest()) == 64


@every_kind
@pytest.mark.parametrize(
    "index", [np.zeros(4, bool), np.array([[0]]), np.array([0.5]), np.array(["a"]), np.array([5]), np.array([-6])]
)
def test_an_index_that_means_no_items_is_refused(tmp_path: Path, kind: str, index: Array) -> None:
    with pytest.raises(IndexError):
        make(kind, 5, tmp_path)[0][index]


@every_kind
def test_what_is_taken_by_positions_may_be_written_to(tmp_path: Path, kind: str) -> None:
    items, x = make(kind, 5, tmp_path)
    items.take(torch.tensor([0, 1])).fill_(7)
    np.testing.assert_array_equal(items.take(slice(None)).numpy(), x)


def test_the_kinds_never_have_the_same_digest(tmp_path: Path) -> None:
    x = np.ones((4, 3), np.float32)
    np.save(tmp_path / "half.npy", x.astype(np.float16))
    different = [as_items(x), as_items(sp.csr_array(x)), map_npy(tmp_path / "half.npy")]
    assert len({items.digest() for items in different}) == 3


# ---------------------------------------------------------------- the door


def test_what_a_caller_has_becomes_items() -> None:
    assert isinstance(as_items([[1, 2], [3, 4]]), Arrays)
    assert isinstance(as_items(torch.zeros(2, 3)), Arrays)
    assert as_items(np.zeros((2, 16, 16, 1), np.uint8)).kind == "pictures"
    for made in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_array):
        assert isinstance(as_items(made(np.eye(3))), SparseRows)


@every_kind
def test_nothing_is_read_to_see_that_they_are_items(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 asks a protocol's instance for every attribute, the statistics too."""
    items, _ = make(kind, 5, tmp_path)

    def never(*_: object) -> None:
        raise AssertionError("items were read")

    monkeypatch.setattr(Arrays, "_part", never)
    monkeypatch.setattr(SparseRows, "_part", never)
    assert as_items(items) is items
    assert to_absent(items[1:3]).count == 2


def test_anything_with_these_few_methods_is_items() -> None:
    """Issue 11 brings pictures and texts; nobody asks for a class."""

    class Counted:
        kind, shape, names = "features", (1,), None
        statistics = Statistics(torch.zeros(1), torch.ones(1))

        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: Any) -> Counted:
            return self

        def take(self, index: Any) -> torch.Tensor:
            return torch.zeros(3, 1)

        def digest(self) -> str:
            return ""

    counted = Counted()
    assert as_items(counted) is counted
    assert not is_items(np.zeros(3))
    assert not is_items([1, 2])


def test_all_that_is_public_is_there() -> None:
    assert all(hasattr(package, name) for name in package.__all__)


# ---------------------------------------------------------------- what a model remembers


@every_kind
def test_absent_items_keep_kind_shape_and_number(tmp_path: Path, kind: str) -> None:
    items, x = make(kind, 5, tmp_path)
    gone = to_absent(items)
    assert is_items(gone)
    assert (gone.kind, gone.shape, len(gone), gone.names) == (items.kind, x.shape[1:], 5, None)
    assert gone.statistics.mean.shape == gone.statistics.scale.shape == (3,)
    assert gone == Absent(items.kind, items.shape, 5)
    for job in (gone.digest, lambda: gone.take(slice(None)), lambda: gone[:2]):
        with pytest.raises(LookupError, match="does not keep the items"):
            job()


def test_absent_items_keep_the_names() -> None:
    assert to_absent(package.features([[1.0, 2.0]], names=("a", "b"))).names == ("a", "b")
