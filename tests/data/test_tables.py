"""CSV and Parquet as such: what is well-formed, and where it is not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partly
from partly.data import read_labels, tables
from partly.errors import DataError


def refusal(path, content: bytes, **settings) -> str:
    path.write_bytes(content)
    with pytest.raises(DataError) as told:
        read_labels(path, **settings)
    return str(told.value)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "labels.csv"


GOOD = b"item,cat,dog\nx,1,\ny,0,1\n"


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        b"\xef\xbb\xbf" + GOOD,
        b"\xef\xbb\xbf" + GOOD.replace(b"item", b'"item"'),
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.rstrip(b"\n"),
        GOOD.replace(b"\n", b"\n\n") + b"\n\r\n",
        b'"item","cat","dog"\n"x","1",""\n"y","0","1"\n',
        b"item,cat,dog\nx,1.0,\ny,0.0,1.0\n",
        b"cat,dog,item\n1,,x\n0,1,y\n",
    ],
    ids=["plain", "BOM", "BOM and quotes", "CRLF", "no last newline", "blank lines", "quotes", "floats", "item last"],
)
def test_the_same_file_in_many_guises(file, content):
    file.write_bytes(content)
    read = read_labels(file)
    assert (read.names, read.ids) == (("cat", "dog"), ("x", "y"))
    assert read.ternary().tolist() == [[1, 0], [-1, 1]]


def test_a_header_alone_means_no_items(file):
    for content in (b"item,cat,dog\n", b"item,cat,dog"):
        file.write_bytes(content)
        assert read_labels(file).shape == (0, 2)


def test_an_empty_file_is_refused(file):
    for content in (b"", b"\n\n", b"\xef\xbb\xbf"):
        assert refusal(file, content) == f"{file}: is empty. The first line must name the columns."


def test_ragged_rows_are_all_told_with_their_lines(file):
    told = refusal(file, b'item,cat\n"a\nb",1\n\nc\nd,1\ne,1,0\n')
    assert f"{file}: rows that are not as wide as the header: 2\n" in told
    assert f"\n  {file}:5: 1 cells for 2 columns\n  {file}:7: 3 cells for 2 columns\n" in told


def test_of_many_ragged_rows_the_first_five_are_told(file):
    told = refusal(file, b"item,cat\n" + b"x\n" * 2000)
    assert "header: 2000\n" in told
    assert told.count("1 cells for 2 columns") == 5
    assert "... and 1995 more" in told


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'item,cat\nx,1\ny,"1\n', 3),
        (b'item,cat\nx,1\ny,"1', 3),
        (b'item,cat\nx,1\n"y,1\nz,0\n', 3),
        (b'item,"cat\nx,1\n', 1),
        (b'item,cat\n"x\ny",1\nz,1\n"' + b"y,1\n" * 100_000, 5),
        (b'item,cat\nx,1\n"y"k,1\n', 3),
        (b"item,cat\nx,1\ny,1\rz,0\n", 3),
    ],
    ids=["last cell", "torn", "first cell", "header", "long", "text after a quote", "lone CR"],
)
def test_malformed_csv_is_refused_where_it_begins(file, content, line):
    assert refusal(file, content).startswith(f"{file}:{line}: not well-formed CSV: ")


def test_an_open_quote_is_called_so(file):
    assert refusal(file, b'item,cat\nx,"1').endswith(": the quote that opens here is never closed.")


@pytest.mark.parametrize("content", [b"item,cat\nx\0,1\n", b"item,cat\nx,\0\n"])
def test_nul_bytes_are_refused(file, content):
    assert refusal(file, content).startswith(f"{file}:2: contains NUL bytes or is UTF-16.")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_is_refused(file, encoding):
    told = refusal(file, "item,cat\nx,1\n".encode(encoding))
    assert told == f"{file}:1: contains NUL bytes or is UTF-16. Save the file as UTF-8 text."


def test_latin_1_is_refused_with_the_line_and_the_letter(file):
    for content, line in (("item,cat\nx,1\ncafé,1\n", 3), ("item,café\n", 1)):
        told = refusal(file, content.encode("latin-1"))
        assert told.startswith(f"{file}:{line}: the byte 0xE9 is not UTF-8; in Latin-1 it is 'é'.")


def test_columns_that_occur_twice(file):
    assert refusal(file, b"item,cat,dog,cat\n").startswith(f"{file}:1: columns that occur more than once: 1\n  'cat'")
    for other in ("Cat", " cat", "ｃａｔ"):
        told = refusal(file, f"item,cat,{other}\nx,1,1\n".encode())
        assert told.startswith(f"{file}: Label names must differ by more than case, spaces or Unicode form")
        assert repr(other) in told


def test_a_row_that_fits_no_block_is_refused(file, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1 << 12)
    assert f"{file}: cannot be read (straddling" in refusal(file, b"item,cat\n" + b"x" * 10_000 + b",1\n")


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([1, None, 0], pa.int8()),
        pa.array([1, None, 0], pa.uint64()),
        pa.array([1.0, None, 0.0]),
        pa.array([True, None, False]),
        pa.array(["1", None, "0"]),
        pa.array(["1", "", "0"], pa.large_string()),
        pa.array([1, None, 0]).cast(pa.decimal128(22, 1)),
        pa.array(["1", None, "0"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays([1, None, 0], ["0", "1", "not used"]),
    ],
    ids=lambda cells: str(cells.type),
)
def test_parquet_columns_of_any_type_that_holds_1_and_0(tmp_path, cells):
    labels = read_labels(parquet(tmp_path / "a.parquet", item=["x", "y", "z"], cat=cells))
    assert labels.ternary().tolist() == [[1], [0], [-1]]


def test_a_parquet_column_without_any_value(tmp_path):
    assert read_labels(parquet(tmp_path / "a.parquet", item=["x"], cat=pa.nulls(1))).ternary().tolist() == [[0]]


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        ([1, 2], "2"),
        ([1.0, float("nan")], "nan"),
        (["1", "sure"], "'sure'"),
        ([b"1", b"0"], "b'1'"),
        ([[1], [0]], "[1]"),
    ],
    ids=["2", "nan", "sure", "bytes", "lists"],
)
def test_parquet_cells_of_no_meaning_are_refused(tmp_path, cells, shown):
    path = parquet(tmp_path / "a.parquet", item=["x", "y"], cat=cells)
    with pytest.raises(DataError) as told:
        read_labels(path)
    assert f"label 'cat': {shown}" in str(told.value)


@pytest.mark.parametrize("ids", [["7", "8"], [7, 8], pa.array(["7", "8"]).dictionary_encode()])
def test_parquet_ids_are_text_or_whole_numbers(tmp_path, ids):
    assert read_labels(parquet(tmp_path / "a.parquet", item=ids, cat=[1, 0])).ids == ("7", "8")


@pytest.mark.parametrize("ids", [[7.0, 8.0], [b"7", b"8"], [[7], [8]], [True, False]])
def test_other_parquet_ids_are_refused(tmp_path, ids):
    with pytest.raises(DataError, match=r"column 'item' holds .*; it must hold text or whole numbers"):
        read_labels(parquet(tmp_path / "a.parquet", item=ids, cat=[1, 0]))


def test_parquet_text_that_is_no_utf_8(tmp_path):
    damaged = pa.StringArray.from_buffers(1, pa.array(["é"]).buffers()[1], pa.py_buffer(b"\xff\xff"))
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read \(.*UTF8"):
        read_labels(parquet(tmp_path / "a.parquet", item=damaged, cat=[1]))


def test_parquet_with_a_column_twice(tmp_path):
    pq.write_table(pa.table([["x"], [1], [0]], names=["item", "cat", "cat"]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="columns that occur more than once: 1"):
        read_labels(tmp_path / "a.parquet")


def test_a_pandas_table_whose_index_is_the_item(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"cat": [1.0, None], "dog": [0, 1]}, index=pd.Index(["x", "y"], name="item"))
    table.to_csv(tmp_path / "a.csv")
    table.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        assert read_labels(tmp_path / name).ternary().tolist() == [[1, -1], [0, 1]]


def test_a_damaged_parquet_file_never_crashes(tmp_path):
    path = parquet(tmp_path / "a.parquet", item=[f"i{k}" for k in range(50)], cat=[k % 2 for k in range(50)])
    whole, good = path.read_bytes(), read_labels(path)
    for cut in range(0, len(whole), 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError):
            read_labels(path)
    assert good.shape == (50, 1)


@pytest.mark.parametrize("separator", [b";", b"\t"])
def test_other_separators_are_recognised_by_the_header(file, separator):
    content = GOOD.replace(b",", separator)
    expected = read_labels(_written(file, GOOD))
    assert read_labels(_written(file, content)) == expected
    assert read_labels(_written(file, content.replace(b"cat", b'"cat, small"'))).names == ("cat, small", "dog")
    assert read_labels(_written(file, GOOD.replace(b"cat", b"cat;kitten"))).names == ("cat;kitten", "dog")
    name = {b";": "semicolon", b"\t": "tab"}[separator]
    assert f"A name that contains a {name} needs quotes" in refusal(file, content + separator.join([b"z", b"1"]))
    assert f"{file}:3: label 'cat': '2'" in refusal(
        file, content.replace(b"y" + separator + b"0", b"y" + separator + b"2")
    )


def test_features_may_be_separated_by_semicolons(tmp_path):
    (tmp_path / "x.csv").write_text("item;a;b\nx;1.5;2\ny;3;4\n")
    assert partly.read(tmp_path / "x.csv").items.take(slice(None)).tolist() == [[1.5, 2.0], [3.0, 4.0]]


def _written(path, content: bytes):
    path.write_bytes(content)
    return path


def test_of_a_large_parquet_file_no_more_is_held_than_is_read_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_CELLS", 1 << 16)
    path, group = tmp_path / "a.parquet", 1 << 17
    column = pa.array(np.random.default_rng(0).random(16 * group))
    pq.write_table(pa.table({"a": column}), path, row_group_size=group, use_dictionary=False)
    del column
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in tables.open_table(path).batches(["a"])]
    assert len(held) == 32
    assert max(held) < 8 * 8 * group  # of 16
    assert held[-1] <= 2 * held[1]
