"""JSON lines: rows of chosen columns, and what is refused with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from partly.data import json_tables
from partly.data.json_tables import JsonTable
from partly.errors import DataError


def rows(path: Path, *columns: str) -> list[list[str]]:
    batches = list(JsonTable(path).batches(columns))
    return [list(row) for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]


def test_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_tables, "BLOCK_ROWS", 2)
    (tmp_path / "x.jsonl").write_text('{"a": "1", "b": 2, "c": [3]}\n\n{"b": null, "a": "é"}\n{"a": "x"}\n', "utf-8")
    table = JsonTable(tmp_path / "x.jsonl")
    assert table.header == ["a", "b", "c"]
    assert rows(tmp_path / "x.jsonl", "b", "a") == [["2", "1"], ["", "é"], ["", "x"]]
    (tmp_path / "y.jsonl").write_text('{"a": null, "b": null}\n{"a": 1.5, "b": true}\n{"a": false}\n')
    assert rows(tmp_path / "y.jsonl", "a", "b") == [["1.5", "1"], ["0", ""]]
    assert JsonTable(tmp_path / "y.jsonl").place(0) == f"{tmp_path}/y.jsonl:2"
    assert [table.place(row) for row in (-1, 0, 1, 2)] == [f"{tmp_path}/x.jsonl:{n}" for n in (1, 1, 3, 4)]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"a": 1}\n[1]\n', ":2: every line must be a JSON object"),
        ('{"a": 1}\n{"a": \n', ":2: no JSON object"),
        ('{"a": 1, "a": 2}\n', ":1: no JSON object .a name occurs more than once"),
        ('{"a": [[1]]}\n', ":1: 'a' is ..1..; it must be text, a number or a list of texts"),
        ('{"a": NaN}\n', ":1: 'a' is nan"),
        ('{"a": 1}\n{"a": 1, "b": 0}\n', ":2: 'b' is not in the first object"),
        ("", "is empty"),
        ("[" * 100_000, ":1: no JSON object"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "x.jsonl").write_text(content)
    with pytest.raises(DataError, match=told):
        rows(tmp_path / "x.jsonl", "a")


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_tables, "MAX_LINE_BYTES", 1000)
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(b" " * 10**6))
    with pytest.raises(DataError, match=":1: a line is longer than 1000 bytes"):
        JsonTable(tmp_path / "x.jsonl.gz")


@pytest.mark.parametrize("cut", [1, 5, 15, 25])
def test_a_damaged_archive_is_told(tmp_path: Path, cut: int) -> None:
    whole = gzip.compress(b'{"a": 1}\n' * 100)
    (tmp_path / "x.jsonl.gz").write_bytes(whole[:cut])
    with pytest.raises(DataError, match="cannot be read"):
        rows(tmp_path / "x.jsonl.gz", "a")
    (tmp_path / "y.jsonl.gz").write_bytes(whole[:12] + b"\xff\xff" + whole[14:])
    with pytest.raises(DataError, match="cannot be read"):
        rows(tmp_path / "y.jsonl.gz", "a")
