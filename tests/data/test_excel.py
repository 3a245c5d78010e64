"""Excel workbooks as tables."""

from __future__ import annotations

import datetime
import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import partly
from partly.data import read_labels
from partly.data.excel import ExcelTable
from partly.errors import DataError


def save(path: Path, rows: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("another").append(["ignored"])
    book.save(path)
    return path


def test_features_and_labels_of_a_sheet(tmp_path: Path) -> None:
    path = save(tmp_path / "a.xlsx", [["item", "x", "cat", "dog"], ["p", 1.5, True, "no"], [], ["q", 2, None, 1]])
    data = partly.read(path, label_columns=["cat", "dog"])
    assert data.items.take(slice(None)).tolist() == [[1.5], [2]]
    assert data.labels.ids == ("p", "q")
    assert data.labels.ternary().tolist() == [[1, -1], [0, 1]]


def test_cells_are_text(tmp_path: Path) -> None:
    rows = [["a", "b", "c", None], [1, 2.5, True], [3.0, datetime.date(2020, 1, 2), "x"]]
    table = ExcelTable(save(tmp_path / "a.xlsx", rows))
    (batch,) = table.batches(["c", "a", "b"])
    found = list(zip(*batch.to_pydict().values(), strict=True))
    assert found == [("1", "1", "2.5"), ("x", "3", "2020-01-02T00:00:00")]


def test_a_wrong_cell_is_named_by_its_row(tmp_path: Path) -> None:
    path = save(tmp_path / "a.xlsx", [["item", "cat"], ["p", 1], [], ["q", "maybe"]])
    with pytest.raises(DataError, match=r"a.xlsx: row 4: label 'cat': 'maybe'"):
        read_labels(path)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "is empty"),
        ([["item", "item"], [1, 2]], "repeated names: ..item"),
        ([["item", None, "cat"], [1, 2, 3]], r"without a name: .2."),
        ([["item", "cat"], ["p", 1, 7]], "row 2: a cell lies in a column without a name"),
        ([["item", "cat"], ["p", 1], ["p", 0]], "with the id of an earlier one"),
    ],
)
def test_sheets_that_are_no_tables(tmp_path: Path, rows: list[list[Any]], words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_labels(save(tmp_path / "a.xlsx", rows))


def test_hostile_files(tmp_path: Path) -> None:
    path = save(tmp_path / "a.xlsx", [["item", "cat"], ["p", 1]])
    whole = path.read_bytes()
    for content in (
        b"",
        b"x" * 99,
        whole[:-30],
        whole[:200],
        changed(whole, b"<row", b"<wor"),
        changed(whole, b"</sheetData>", b""),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"a.xlsx"):
            read_labels(path)


def test_a_cell_far_away_takes_no_more_than_itself(tmp_path: Path) -> None:
    path = save(tmp_path / "a.xlsx", [["item", "cat"], ["p", 1]])
    path.write_bytes(changed(path.read_bytes(), b'r="B2"', b'r="XFD2"'))
    with pytest.raises(DataError, match="row 2: a cell lies in a column without a name"):
        read_labels(path)


def test_a_bomb_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("xl/sharedStrings.xml", "w") as file:
        for _ in range(300):
            file.write(b" " * (1 << 20))
    with pytest.raises(DataError, match="times as much"):
        read_labels(path)


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.xlsx", [["item", "cat"], ["p", 1]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"pip install 'partly\[excel\]'"):
        read_labels(path)


def test_it_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"unknown suffix '.xlsx'"):
        partly.write(partly.Labels.from_full([[1]]), tmp_path / "a.xlsx")


def changed(whole: bytes, before: bytes, after: bytes) -> bytes:
    """The workbook with another text in its first sheet."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content.replace(before, after) if name.endswith("sheet1.xml") else content)
    return made.getvalue()
