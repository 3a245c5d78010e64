"""Excel workbooks (`.xlsx`) as tables: the first sheet, with column names in its first row. Needs openpyxl."""

from __future__ import annotations

import datetime
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from partly.budget import Budget
from partly.errors import DataError

SUFFIX = ".xlsx"
BLOCK_ROWS = 1 << 12


class ExcelTable:
    """A sheet. All cells are text: a blank one is '', true and false are 1 and 0."""

    decimal_comma = False

    def __init__(self, path: Path) -> None:
        self.path, self.budget = path, Budget(path)
        first = next(self._rows(), None)
        if first is None:
            raise DataError(f"{path}: the first sheet is empty. Its first row must name the columns.")
        names = [_text(cell).strip() for cell in first[1]]
        while names and not names[-1]:
            names.pop()
        blank = [j + 1 for j, name in enumerate(names) if not name]
        twice = sorted({name for name in names if name and names.count(name) > 1})
        if blank or twice or not names:
            raise DataError(
                f"{self.place(-1)}: every column needs a unique name in the first row; columns without a name: "
                f"{blank or 'none'}; repeated names: {twice or 'none'}."
            )
        self.header = names

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        positions, rows = [self.header.index(name) for name in columns], list[list[str]]()
        for number, cells in _after_header(self._rows()):
            if len(cells) > len(self.header) and any(_text(cell) for cell in cells[len(self.header) :]):
                raise DataError(f"{self.path}: row {number}: a cell lies in a column without a name.")
            rows.append([_text(cells[j]) if j < len(cells) else "" for j in positions])
            if len(rows) == BLOCK_ROWS:
                yield _batch(columns, rows)
                rows = []
        yield _batch(columns, rows)

    def place(self, row: int) -> str:
        if row < 0:
            return f"{self.path}: row 1"
        numbers = (number for number, _ in _after_header(self._rows()))
        return f"{self.path}: row {next(n for k, n in enumerate(numbers) if k == row)}"

    def _rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the rows that are not empty, with their numbers."""
        with _workbook(self.path) as book:
            if not book.worksheets:
                raise DataError(f"{self.path}: the workbook has no sheet of cells.")
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # the declared size may be wrong, and rows would be padded to it
            with _errors(self.path):
                for number, cells in enumerate(sheet.iter_rows(values_only=True), 1):
                    if any(cell not in (None, "") for cell in cells):
                        yield number, cells


def _after_header(rows: Iterator[tuple[int, tuple[Any, ...]]]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Skip the first row."""
    next(rows, None)
    return rows


@contextmanager
def _workbook(path: Path) -> Iterator[Any]:
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            f"{path}: needs the library openpyxl: pip install 'partly[excel]'. Or save the sheet as .csv."
        ) from None
    with _errors(path):
        with zipfile.ZipFile(path) as archive:
            Budget(path).unpack(sum(part.file_size for part in archive.infolist()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown styles
            book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    try:
        yield book
    finally:
        book.close()


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Turn any error of openpyxl into a DataError: untrusted files can break it anywhere."""
    try:
        yield
    except (DataError, GeneratorExit):
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DataError(f"{path}: not a readable Excel workbook ({reason}). Save the sheet as .csv.") from error


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, datetime.datetime | datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell)


def _batch(columns: Sequence[str], rows: list[list[str]]) -> Any:
    arrays = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return pa.record_batch([pa.array(array, pa.string()) for array in arrays], list(columns))
