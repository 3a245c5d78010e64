"""A table that says where pictures lie: CSV, Parquet and JSON lines alike."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from images.making import some_pictures
from partly.data import formats, read
from partly.data.formats import image_table
from partly.errors import DataError

PATHS = ["x/p1.jpg", "x/p0.png", "x/p2.png"]


def write(path: Path, columns: dict[str, list[str]]) -> Path:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if path.suffix == ".csv":
        path.write_text("\n".join([",".join(columns), *(",".join(row.values()) for row in rows)]))
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl", "t.jsonl.gz"])
def test_pictures_are_found_from_the_tables_folder(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    some_pictures(tmp_path / "x", 3)
    whole = read(tmp_path / "x", size=16).items
    table = write(tmp_path / name, {"path": PATHS, "size": ["1", "2", "3"]})
    assert formats.of(table, "items") is image_table.FORMAT
    monkeypatch.chdir(tmp_path / "x")
    data = read(Path("..") / name, size=16)
    assert data.labels.ids == tuple(PATHS)
    assert torch.equal(data.items.take(slice(None)), whole.take(torch.tensor([1, 0, 2])))


@pytest.mark.parametrize("column", ["item", "id", "name"])
def test_a_column_may_say_what_they_are_called(tmp_path: Path, column: str) -> None:
    some_pictures(tmp_path / "x", 3)
    absolute = [str(tmp_path / path) for path in PATHS]
    table = write(tmp_path / "t.csv", {column: ["a", "b", "c"], "path": absolute})
    assert read(table).labels.ids == ("a", "b", "c")


def test_files_that_are_not_there_are_bad(tmp_path: Path) -> None:
    some_pictures(tmp_path / "x", 3)
    table = write(tmp_path / "t.csv", {"item": ["a", "b"], "path": ["x/p0.png", "x/p9.png"]})
    with pytest.raises(DataError, match=r"bad files: 1 of 2\n  b: cannot be read \(No such file"):
        read(table)


def test_an_id_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    table = write(tmp_path / "t.jsonl", {"path": ["a.png", "b.png", "a.png"]})
    with pytest.raises(DataError, match=r"t\.jsonl:3: 'a.png', as in .*t\.jsonl:1"):
        read(table)


def test_a_feature_may_be_called_path(tmp_path: Path) -> None:
    """And is one, where its cells are numbers."""
    for name in ("t.csv", "t.parquet"):
        table = write(tmp_path / name, {"item": ["a", "b"], "path": ["1.5", "2"], "text": ["0", "3"]})
        data = read(table)
        assert data.items.kind == "features"
        assert data.items.take(slice(None)).tolist() == [[1.5, 0], [2, 3]]
