"""A JSON list of flat objects as a table."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import partly
from partly.data import formats, read_labels
from partly.data.json_tables import JsonRecords, is_records
from partly.errors import DataError

ROWS = [{"item": "p", "x": 1.5, "cat": True, "dog": None}, {"item": "q", "x": 2, "cat": "no", "dog": 1}]


def test_one_table_of_records(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(ROWS))
    data = partly.read(path, label_columns=["cat", "dog"])
    assert data.items.names == ("x",)
    assert data.labels.ids == ("p", "q")
    assert data.labels.ternary().tolist() == [[1, 0], [-1, 1]]
    packed = tmp_path / "a.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert partly.read(packed, label_columns="cat,dog").labels == data.labels


def test_other_json_stays_what_it_is(tmp_path: Path) -> None:
    labels = partly.Labels.from_ternary([[1, -1]], names=["cat", "dog"], ids=["a.jpg"])
    for form in ("coco", "label-studio"):
        path = tmp_path / f"{form}.json"
        partly.write(labels, path, form=form)
        assert not is_records(path)
        assert formats.of(path, "items") is None
        assert read_labels(path) == labels


HOSTILE = {
    "a name twice": '[{"item": "p", "cat": 1, "cat": 0}]',
    "torn": '[{"item": "p", "cat": 1}, {"item": "q"',
    "NaN": '[{"item": "p", "cat": 1}, {"item": "q", "cat": NaN}]',
    "no object": '[{"item": "p", "cat": 1}, 7]',
    "another column": '[{"item": "p", "cat": 1}, {"item": "q", "cow": 1}]',
    "an object inside": '[{"item": "p", "cat": 1}, {"item": "q", "cat": {"a": 1}}]',
    "an id twice": '[{"item": "p", "cat": 1}, {"item": "p", "cat": 1}]',
    "not a label": '[{"item": "p", "cat": 1}, {"item": "q", "cat": "maybe"}]',
    "deep": '[{"item": "p", "cat": 1}, ' + "[" * 1000 + "]" * 1000 + "]",
    "bad UTF-8": b'[{"item": "p", "cat": 1}, {"item": "\xff", "cat": 1}]',
}


@pytest.mark.parametrize("case", HOSTILE)
def test_refused(tmp_path: Path, case: str) -> None:
    path, text = tmp_path / "a.json", HOSTILE[case]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError):
        read_labels(path)


def test_places(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"item": "p", "cat": 1}, {"item": "q", "cat": "maybe"}]')
    with pytest.raises(DataError, match=r"a.json: record 2: label 'cat': 'maybe'"):
        read_labels(path)
    assert JsonRecords(path).header == ["item", "cat"]
    for text in ("[]", "{}", "7", "", "[7]"):
        path.write_text(text)
        assert not is_records(path)
