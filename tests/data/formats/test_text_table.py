"""A table with a column of texts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partly.data import formats, read
from partly.data.formats import text_table
from partly.errors import DataError
from partly.items import decode_texts

TEXTS = ["A game\nof war", 'quotes "and", commas', "ünïcode 🐈", "42"]


def write(path: Path, columns: dict[str, list[str]]) -> Path:
    if path.suffix == ".csv":
        rows = zip(*columns.values(), strict=True)
        quoted = (",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
        path.write_text("\n".join([",".join(columns), *quoted]), "utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl", "t.jsonl.gz"])
def test_texts_come_as_they_are(tmp_path: Path, name: str) -> None:
    table = write(tmp_path / name, {"name": ["a", "b", "c", "d"], "section": ["x"] * 4, "text": TEXTS})
    assert formats.of(table, "items") is text_table.FORMAT
    data = read(table)
    assert data.items.kind == "texts"
    assert data.labels.ids == ("a", "b", "c", "d")
    assert decode_texts(data.items.take(slice(None))) == TEXTS


def test_without_ids_positions_are_ids(tmp_path: Path) -> None:
    assert read(write(tmp_path / "t.csv", {"text": TEXTS})).labels.ids == ("0", "1", "2", "3")


def test_labels_are_matched_by_id(tmp_path: Path) -> None:
    table = write(tmp_path / "t.jsonl", {"item": ["a", "b", "c", "d"], "text": TEXTS})
    (tmp_path / "labels.csv").write_text("item,game,animal\nc,0,1\na,1,\n")
    data = read(table, tmp_path / "labels.csv")
    assert decode_texts(data.items.take(slice(None))) == [TEXTS[2], TEXTS[0]]


def test_blank_texts_are_refused_with_their_lines(tmp_path: Path) -> None:
    table = write(tmp_path / "t.jsonl", {"item": ["a", "b", "c"], "text": ["x", " ", "y"]})
    with pytest.raises(DataError, match=r"blank or hold a NUL: 1\n  .*t\.jsonl:2: item 'b'"):
        read(table)
