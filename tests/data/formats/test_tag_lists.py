"""All tags of an item in one cell."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partly
from partly.data import read_labels
from partly.errors import DataError

UNKNOWN = [[1, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]]
NO = [[1, 1, -1], [-1, 1, 1], [-1, -1, -1], [0, 0, 0]]
LISTS: list[list[str] | None] = [["cat", "dog"], ["dog", "sun"], [], None]


def written(folder: Path, kind: str) -> Path:
    path = folder / f"tags.{kind.partition(' ')[0]}"
    rows = [{"item": name, "tags": tags, "note": 1} for name, tags in zip("pqrs", LISTS, strict=True)]
    if kind.startswith("csv"):
        sign = kind.partition(" ")[2]
        cells = [None if row["tags"] is None else sign.join(row["tags"]) or "[]" for row in rows]
        lines = (f'{row["item"]},"{cell or ""}",1\n' for row, cell in zip(rows, cells, strict=True))
        path.write_text("item,tags,note\n" + "".join(lines))
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "json":
        path.write_text(json.dumps(rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("kind", ["csv ;", "csv |", "csv ,", "jsonl", "json", "parquet"])
def test_tags_of_all_kinds_of_tables(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind)
    for absent, expected in (("unknown", UNKNOWN), ("no", NO)):
        labels = read_labels(path, absent=absent)
        assert (labels.names, labels.ids) == (("cat", "dog", "sun"), ("p", "q", "r", "s"))
        assert labels.rows(slice(None)).tolist() == expected
    with pytest.raises(DataError, match=r"'tags' lists positives.*--absent unknown or --absent no"):
        read_labels(path)
    assert read_labels(path, absent="no", names=["sun", "cat", "dog", "cow"]).names == ("sun", "cat", "dog", "cow")
    with pytest.raises(DataError, match=r"label 'cat' is not among the 2 names"):
        read_labels(path, absent="no", names=["sun", "dog"])


def test_the_caller_names_column_separator_and_unknown(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,kinds,x\np,a b,1\nq,none,2\n")
    how: dict[str, Any] = {"id_column": "image", "label_columns": "kinds", "tag_separator": " ", "missing": ["none"]}
    data = partly.read(path, absent="no", **how)
    assert data.items.names == ("x",)
    assert data.labels.ids == ("p", "q")
    assert data.labels.ternary().tolist() == [[1, 1], [0, 0]]


def test_a_label_may_be_called_tags(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("item,tags,cat\np,1,0\nq,,1\n")
    assert read_labels(path).names == ("tags", "cat")


HOSTILE = {
    "two separators": 'item,tags\np,a;b\nq,"c,d"\n',
    "an unfinished list": "item,tags\np,\"['a', b]\"\n",
    "an id twice": "item,tags\np,a\np,b\n",
    "names alike": "item,tags\np,Cat;cat\n",
    "a blank id": "item,tags\n,a\n",
    "NUL": "item,tags\np,a\0b\n",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_refused_by_name_of_the_file(tmp_path: Path, case: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HOSTILE[case])
    with pytest.raises(DataError, match=str(path)):
        read_labels(path, absent="no")


def test_lists_within_lists_and_torn_files(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for text in ('{"item": "p", "tags": [["a"]]}\n', '{"item": "p", "tags": {"a": 1}}\n', '{"item": "p", "tags": ["a'):
        path.write_text(text)
        with pytest.raises(DataError, match=str(path)):
            read_labels(path, absent="no")
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(b'{"item": "p", "tags": ["a"]}\n')[:-6])
    with pytest.raises(DataError, match=str(packed)):
        read_labels(packed, absent="no")
