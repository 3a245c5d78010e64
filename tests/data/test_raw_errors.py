"""Files that made readers fail with an error that is none of ours: each is refused, and the message names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partly.data import read, read_hierarchy, read_labels, read_scores
from partly.errors import DataError


def _npy(path: Path, header: str, version: bytes = b"\x01\x00") -> None:
    text = header.encode() + b" " * (118 - len(header) % 118) + b"\n"
    path.write_bytes(b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + bytes(64))


def _parquet(path: Path, column: str, kind: pa.DataType) -> None:
    """Text that is no UTF-8."""
    bad = pa.Array.from_buffers(kind, 2, pa.array([b"\xff\xfe", b"x"]).buffers())
    other = {"item": pa.array(["a", "b"]), "label": pa.array(["cat", "dog"]), "value": pa.array([1, 0])}
    pq.write_table(pa.table(other | {column: bad}), path)


ARFF = "@relation x\n@attribute a numeric\n@attribute b {{0,1}}\n@data\n{row}\n"


def _arff(path: Path, row: str, relation: str = "'x: -C -1'") -> None:
    path.write_text(ARFF.format(row=row).replace("@relation x", f"@relation {relation}"))


FILES: dict[str, Callable[[Path], object]] = {
    "syntax.npy": lambda path: _npy(path, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, "),
    "deep.npy": lambda path: _npy(path, "(" * 3000),
    "word.npy": lambda path: _npy(path, "{'descr': 'nothing', 'fortran_order': False, 'shape': (3, 4), }"),
    "negative.npy": lambda path: _npy(path, "{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4), }"),
    "huge.npy": lambda path: _npy(
        path, "{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952, 4), }"
    ),
    "digits.npy": lambda path: _npy(path, f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 5000}, 4), }}"),
    "object.npy": lambda path: _npy(path, "{'descr': '|O', 'fortran_order': False, 'shape': (3, 4), }"),
    "version.npy": lambda path: _npy(path, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", b"\x09\x00"),
    "type.npy": lambda path: _npy(path, "{'descr': [('a', '<f4', (2, 2))], 'fortran_order': False, 'shape': (1,), }"),
    "half.jsonl": lambda path: path.write_text('{"item": "\\ud800", "cat": 1}\n'),
    "name.jsonl": lambda path: path.write_text('{"item": "a", "\\ud800": 1}\n'),
    "text.jsonl": lambda path: path.write_text('{"id": "a", "text": "\\udfff"}\n'),
    "digits.jsonl": lambda path: path.write_text(f'{{"item": "a", "cat": {"9" * 5000}}}\n'),
    "deep.jsonl": lambda path: path.write_text('{"item": ' + "[" * 100_000 + "\n"),
    "latin.jsonl": lambda path: path.write_bytes(b'{"item": "\xff", "cat": 1}\n'),
    "item.parquet": lambda path: _parquet(path, "item", pa.string()),
    "label.parquet": lambda path: _parquet(path, "label", pa.string()),
    "digits.arff": lambda path: _arff(path, f"{'9' * 5000},1"),
    "place.arff": lambda path: _arff(path, f"{{{'9' * 5000} 1}}"),
    "count.arff": lambda path: _arff(path, "1,1", f"'x: -C {'9' * 5000}'"),
    "superscript.arff": lambda path: _arff(path, "{² 1}"),
    "quote.arff": lambda path: _arff(path, "'a\n"),
    "twice.json": lambda path: path.write_text('[{"item": "a", "cat": 1, "cat": 0}]'),
    "twice-within.json": lambda path: path.write_text(
        '[{"data": {"item": "a"}, "annotations": [{"result": [{"type": "x", "type": "y", "a": 1, "a": 2}]}]}, 5]'
    ),
    "half.json": lambda path: path.write_text('[{"data": {"item": "\\ud800"}, "annotations": []}]'),
    "result.json": lambda path: path.write_text('[{"data": {"item": "a"}, "annotations": [{"result": [5]}]}]'),
    "results.json": lambda path: path.write_text('[{"data": {"item": "a"}, "annotations": [{"result": 5}]}]'),
    "annotations.json": lambda path: path.write_text('[{"data": {"item": "a"}, "annotations": 5}]'),
    "category.json": lambda path: path.write_text(
        json.dumps({"images": [{"id": [1]}], "categories": [{"id": [1], "name": "a"}], "annotations": []})
    ),
    "digits.svm": lambda path: path.write_text(f"{'9' * 5000} 1:1\n"),
    "index.svm": lambda path: path.write_text(f"1 {'9' * 5000}:1\n"),
    "counts.svm": lambda path: path.write_text(f"1 {'9' * 5000} 3\n0 0:1\n"),
    "comment.svm": lambda path: path.write_text("# partly {\n1 0:1\n"),
    "comments.svm": lambda path: path.write_text("# partly 5\n1 0:1\n"),
    "names.svm": lambda path: path.write_text('# partly {"labels": 5}\n1 0:1\n'),
}


@pytest.mark.parametrize("name", FILES)
def test_no_reader_fails_with_an_error_of_another_kind(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    FILES[name](path)
    for reader in (
        lambda: read(path, absent="unknown", uncertain="unknown"),
        lambda: read_labels(path, absent="unknown", uncertain="unknown"),
        lambda: read_scores(path),
        lambda: read_hierarchy(path),
    ):
        with suppress(DataError):  # an error of another kind fails the test
            reader()


@pytest.mark.parametrize("name", [one for one in FILES if one != "half.json"])
def test_none_of_them_is_taken_for_good(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    FILES[name](path)
    how = {"absent": "unknown", "uncertain": "unknown"}
    with pytest.raises(DataError):
        (read if path.suffix in (".npy", ".svm", ".arff") or name == "text.jsonl" else read_labels)(path, **how)


def test_good_files_beside_them_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 4), np.float32))
    assert len(read(tmp_path / "a.npy").items) == 3
    (tmp_path / "a.jsonl").write_text('{"item": "\\ud83d\\ude00", "cat": 1}\n')
    assert read_labels(tmp_path / "a.jsonl").ids == ("😀",)
    _arff(tmp_path / "a.arff", "1.5,1")
    assert read(tmp_path / "a.arff", absent="no").labels.names == ("b",)


def test_a_column_whose_name_is_no_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "column": [1.0, 2.0]}), path)
    path.write_bytes(path.read_bytes().replace(b"column", b"c\xb0lumn"))
    with pytest.raises(DataError, match="cannot be read"):
        read(path)
