from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partly
from partly import Dataset, Labels
from partly.data import read, tables, write
from partly.data.formats import feature_table
from partly.errors import DataError
from partly.items import features


def refusal(path) -> str:
    with pytest.raises(DataError) as told:
        read(path)
    assert str(told.value).startswith(f"{path}")
    return str(told.value)


def test_columns_are_the_features_under_their_names(tmp_path):
    (tmp_path / "a.csv").write_text("b,item,a\n1.5,007,-2\n0,NA,1e-3\n")
    data = read(tmp_path / "a.csv")
    assert data.items.names == ("b", "a")
    assert data.items.array.tolist() == [[1.5, -2], [0, 1e-3]]
    assert data.items.take(slice(None)).tolist() == [[1.5, -2], [0, np.float32(1e-3)]]
    assert data.labels.ids == ("007", "NA")


def test_in_a_table_the_line_the_item_and_the_column_are_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('item,a,b\n"x\ny",1,\nz,nan,2\n')
    items = read(path).items
    assert items.take(slice(None)).tolist() == [[1, 0, 2, 1], [1, 1, 2, 0]]  # filled in, and said where
    path.write_text('item,a,b\n"x\ny",1,\nz,inf,2\n')
    told = refusal(path)
    assert told.startswith(f"{path}: 1 of 4 features are infinite or too large (beyond 1e+37)\n")
    assert f"\n  {path}:4: item 'z', column 'a': inf\n" in told


def test_a_null_is_a_missing_feature(tmp_path):
    pq.write_table(pa.table({"item": ["x", "y"], "a": [1.0, None]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").items.needs() == ["'a': 1 missing"]


def test_columns_that_are_not_numbers_are_all_named(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("item,a,colour,b,c\nx,1,red,1,1\ny,1,blue,1,1 kg\n" + "".join(f"z{k},1,2,3,4\n" for k in range(20)))
    for size in (1 << 20, 1 << 5):  # in one block and in many
        monkeypatch.setattr(tables, "BLOCK_BYTES", size)
        told = refusal(path)
        assert told.splitlines()[0] == f"{path}: columns that cannot be encoded: 2"
        assert [line.split(": ")[0] for line in told.splitlines()[1:3]] == ["  'colour'", "  'c'"]
        assert "'1 kg'" in told
        assert "get_dummies" in told.splitlines()[3]
    pq.write_table(pa.table({"item": ["x"], "when": [pa.scalar(0, pa.timestamp("s"))]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").items.needs() == ["'when': date"]
    pq.write_table(pa.table({"item": ["x"], "clock": [pa.scalar(0, pa.time32("s"))]}), tmp_path / "a.parquet")
    assert "'clock': cells of the type time32" in refusal(tmp_path / "a.parquet")


def test_numbers_with_a_comma_and_gaps_are_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("item;a;b\nx;1,5;NA\ny;NA;2,25\nz;n.d.;1\n")
    rows = read(tmp_path / "a.csv", missing=["N.D."]).items
    assert [column.kind for column in rows.table.columns] == ["number", "number"]
    assert rows.take(slice(None)).tolist() == [[1.5, 0, 1.625, 1], [1.5, 1, 2.25, 0], [1.5, 1, 1, 0]]


def test_ids_are_there_once(tmp_path):
    (tmp_path / "a.csv").write_text("item,a\nx,1\nx,2\n")
    assert "'x', as in" in refusal(tmp_path / "a.csv")


def test_positions_are_the_ids_of_a_table_without_any(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    found = read(tmp_path / "a.csv")
    assert (found.items.names, found.labels.ids) == (("a", "b"), ("0", "1"))
    assert found.items.array.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("name", ["item", "id", "ID", "sample"])
def test_ids_may_be_in_a_column_of_another_name(tmp_path, name):
    (tmp_path / "a.csv").write_text(f"a,{name}\n1,x\n3,y\n")
    found = partly.read(tmp_path / "a.csv", id_column="sample")
    assert (found.items.names, found.labels.ids) == (("a",), ("x", "y"))


def test_a_column_that_looks_like_ids_is_not_taken_for_a_category(tmp_path):
    rows = "".join(f"s{i},{i}\n" for i in range(12))
    (tmp_path / "a.csv").write_text(f"sample,a\n{rows}")
    assert "--id-column sample" in refusal(tmp_path / "a.csv")
    assert partly.read(tmp_path / "a.csv", id_column="sample").labels.ids[:2] == ("s0", "s1")


def test_decimal_commas(tmp_path):
    (tmp_path / "a.csv").write_text("item;a;b\nx;1,5;-2\ny;0,25;3e2\n")
    assert read(tmp_path / "a.csv").items.array.tolist() == [[1.5, -2], [0.25, 300]]
    (tmp_path / "a.csv").write_text("item;a;b\nx;1.5;2\ny;0.25;1.000\n")
    assert read(tmp_path / "a.csv").items.array.tolist() == [[1.5, 2], [0.25, 1]]
    (tmp_path / "a.csv").write_text("item;a;b\nx;1,5;2\ny;0,25;1.000\n")
    told = refusal(tmp_path / "a.csv")
    assert "column 'a': 1,5" in told
    assert "column 'b': 1.000" in told


def test_no_items_and_no_features(tmp_path):
    (tmp_path / "a.csv").write_text("item,a,b\n")
    assert read(tmp_path / "a.csv").items.array.shape == (0, 2)
    (tmp_path / "a.csv").write_text("item\nx\n")
    assert read(tmp_path / "a.csv").items.array.shape == (1, 0)


def test_features_are_read_block_by_block(tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
    rows = "".join(f"i{k},{','.join(map(repr, row))}\n" for k, row in enumerate(x.tolist()))
    (tmp_path / "a.csv").write_text(f"item,a,b,c,d\n{rows}")
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1 << 10)
    data = read(tmp_path / "a.csv")
    assert np.array_equal(data.items.array, x)
    assert data.labels.ids == tuple(f"i{k}" for k in range(500))


# ---------------------------------------------------------------- writing


def unnamed(x, ids=None, names=None) -> Dataset:
    return Dataset(features(x, names=names), Labels.from_full(np.ones((len(x), 0)), ids=ids))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_features_are_written_block_by_block(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(feature_table, "BLOCK", 3)
    x = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
    write(unnamed(x, [f"i{k}" for k in range(8)], ("a", "b")), tmp_path / f"a.{suffix}")
    data = read(tmp_path / f"a.{suffix}")
    assert np.array_equal(data.items.take(slice(None)).numpy(), x)
    assert data.labels.ids == tuple(f"i{k}" for k in range(8))


def test_features_without_names_are_counted(tmp_path):
    write(unnamed(np.eye(2)), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == '"item","feature 0","feature 1"'
    assert read(tmp_path / "a.csv").items.names == ("feature 0", "feature 1")


@pytest.mark.parametrize(
    ("ids", "names"), [(["x"], ["item"]), (["\0"], ["cat"]), (["x"], ["\ud800"]), (["\ud800"], ["cat"])]
)
def test_words_that_would_not_come_back_are_not_written(tmp_path, ids, names):
    with pytest.raises(DataError, match=r"a\.csv: "):
        write(unnamed([[1.0]], ids, tuple(names)), tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())
