"""CSV, TSV, JSON lines and Parquet files as a header and a stream of Arrow batches, and what their cells mean.

A CSV file is gone through twice. The first pass, by Python's own strict reader, holds nothing and knows every
line: encoding, quotes and ragged rows are refused there. Arrow's reader is fast but takes a torn last line for a
whole one and counts no lines, so it only sees files that passed.
"""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from partly.budget import Budget, decode_dictionaries
from partly.data.compression import codec_of, open_compressed, open_decompressed
from partly.data.excel import ExcelTable
from partly.data.json_lines import JsonTable
from partly.data.json_records import JsonRecords, is_records
from partly.data.paths import format_suffix, refuse_database
from partly.errors import DataError, listing
from partly.labels.spellings import WORDS

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
SUFFIXES = (".csv", ".parquet", ".tsv", ".jsonl")
READABLE = (*SUFFIXES, ".json", ".xlsx")  # the last two are read, and not written
TSV = ".tsv"  # a table with tabs in the place of commas
BLOCK_BYTES = 1 << 23  # of a CSV file, held at a time; a row must fit
BLOCK_CELLS = 1 << 22  # of a Parquet file, held at a time
GROUP_CELLS = 1 << 24  # of a Parquet row group: every group costs some bytes per column
MAX_LISTED_FAULTS = 5  # faults told in full
INVALID = 2  # an entry that is not spelled in one of these ways
UNCERTAIN = 3  # one of which it is said that nobody is sure
# Numbers that are equal are one key here: 1.0, True and Decimal(1) are found under 1.
CELL_VALUES: dict[object, int] = {
    1: 1,
    0: -1,
    "1": 1,
    "0": -1,
    "1.0": 1,
    "0.0": -1,
    "1,0": 1,
    "0,0": -1,
    "": 0,
    None: 0,
}


class CsvTable:
    """A UTF-8 CSV or TSV file with a header, also packed. All cells are text; a blank one is ''."""

    def __init__(self, path: Path) -> None:
        self.path, self.budget, self.separator = path, Budget(path), find_separator(path)
        self.decimal_comma = self.separator == ";"
        first = next(self._records(), None)
        if first is None:
            raise DataError(f"{path}: is empty. The first line must name the columns.")
        self.header = _distinct(first[1], f"{path}:{first[0]}")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        if not self._checked():
            return
        with _arrow_errors(self.path), open_decompressed(self.path) as file:
            yield from arrow_csv.open_csv(
                self.path if codec_of(self.path) is None else file,
                read_options=arrow_csv.ReadOptions(block_size=BLOCK_BYTES),
                parse_options=arrow_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.header, pa.string()), include_columns=list(columns)
                ),
            )

    def _checked(self) -> int:
        """How many rows there are, all as wide as the header."""
        width = len(self.header)
        widths = _widths(self.path, self.separator)
        if widths.keys() <= {width, 0}:  # 0: a blank line
            return widths[width] - 1
        ragged = Faults(self, "rows that are not as wide as the header")
        for row, (_, cells) in enumerate(self._records(), -1):
            if len(cells) != width:
                ragged.add([row], [f"{len(cells)} cells for {width} columns"])
        ragged.refuse(f"A name that holds a {SEPARATORS[self.separator]} needs quotes around it.")
        raise DataError(f"{self.path}: was changed while it was read.")

    def place(self, row: int) -> str:
        """Where a row stands; -1 is the header."""
        line, _ = next(islice(self._records(), row + 1, None))
        return f"{self.path}:{line}"

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        return _records(self.path, self.separator)


class ParquetTable:
    """A Parquet file; the cells have types.

    Text is read as a dictionary and codes, and is spelled out piece by piece: a few bytes of a file can stand for a
    long text in every row.
    """

    decimal_comma = False

    def __init__(self, path: Path) -> None:
        self.path, self.budget = path, Budget(path)
        with _arrow_errors(path):
            self.schema = pq.read_schema(path)
            self.header = _distinct(self.schema.names, str(path))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        size, budget = max(1, BLOCK_CELLS // max(1, len(columns))), Budget(self.path)
        words = [name for name in columns if pa.types.is_string(self.schema.field(name).type)]
        only = None if any("." in name for name in columns) else list(columns)  # Arrow takes a dot for a path
        # pre_buffer would hold all that was read until the end of the file.
        with (
            _arrow_errors(self.path),
            pq.ParquetFile(self.path, pre_buffer=False, read_dictionary=words) as file,
        ):
            for batch in file.iter_batches(size, columns=only):
                yield from decode_dictionaries(batch.select(list(columns)), budget)

    def place(self, row: int) -> str:
        return f"{self.path}: row {row + 1}" if row >= 0 else str(self.path)


class Table(Protocol):
    """A header and a stream of Arrow batches. decimal_comma: numbers may be written 1,5."""

    path: Path
    budget: Budget
    header: list[str]
    decimal_comma: bool

    def batches(self, columns: Sequence[str]) -> Iterator[Any]: ...

    def place(self, row: int) -> str: ...


def is_table(path: Path) -> bool:
    """By its name; JSON by its content, since other formats are written in it too."""
    return format_suffix(path) in (*SUFFIXES, ".xlsx") or is_records(path)


def open_table(path: Path) -> Table:
    refuse_database(path)
    kinds: dict[str, Callable[[Path], Table]] = {
        ".parquet": ParquetTable,
        ".jsonl": JsonTable,
        ".json": JsonRecords,
        ".xlsx": ExcelTable,
    }
    return kinds.get(format_suffix(path), CsvTable)(path)


def _separator(path: Path) -> str:
    return "\t" if format_suffix(path) == TSV else ","


def first_cell(table: Table, name: str) -> Any:
    """The first cell of a column that is not blank; None where all that was read are."""
    for batch in table.batches([name]):
        return next((cell for cell in batch.column(0).to_pylist() if cell not in (None, "")), None)
    return None


def write_table(path: Path, schema: Any, batches: Iterator[Any]) -> None:
    """Text in quotes, a missing cell blank (CSV) or null (Parquet, JSON). Whole, or not at all."""
    # Fractions hardly ever repeat, and to look for those that do takes more than half of the time.
    words = not any(pa.types.is_floating(one.type) for one in schema)
    options = arrow_csv.WriteOptions(delimiter=_separator(path))
    writers: dict[str, Callable[..., Any]] = {
        ".parquet": partial(pq.ParquetWriter, use_dictionary=words),
        ".jsonl": _JsonWriter,
    }
    plain = format_suffix(path) in writers  # and no spreadsheet opens it as a table of formulas
    writer = writers.get(format_suffix(path), partial(arrow_csv.CSVWriter, write_options=options))
    cells = Formulas(path)
    written = schema if plain else cells.header(schema)
    with open_compressed(path) as file, writer(file, written) as table:
        for batch in batches:
            table.write_batch(batch if plain else cells.batch(batch, written))
    cells.warn()


@contextmanager
def for_spreadsheets(wanted: bool = True) -> Iterator[None]:
    """While it lasts, cells of CSV files that a spreadsheet would take for a formula are written with ' before them. It
    then shows them as they are; read back, the ' is part of the name."""
    before = _SAFE.set(wanted)
    try:
        yield
    finally:
        _SAFE.reset(before)


_SAFE: ContextVar[bool] = ContextVar("safe", default=False)
FORMULA = r"^[=+\-@\t\r]"  # how a cell begins that a spreadsheet runs
NUMBER = r"^[+-]?[0-9]*[.]?[0-9]+([eE][+-]?[0-9]+)?$"  # and which of them are numbers, that do nothing


class Formulas:
    """The cells of one CSV file that a spreadsheet would run: made harmless where that is wanted, else warned of."""

    def __init__(self, path: Path) -> None:
        self.path, self.safe, self.count, self.first = path, _SAFE.get(), 0, ""

    def header(self, schema: Any) -> Any:
        return pa.schema([field.with_name(self._column(pa.array([field.name]))[0].as_py()) for field in schema])

    def batch(self, batch: Any, schema: Any) -> Any:
        words = (self._column(column) if pa.types.is_string(column.type) else column for column in batch.columns)
        return pa.record_batch(list(words), schema)

    def _column(self, column: Any) -> Any:
        runs = pc.and_(pc.match_substring_regex(column, FORMULA), pc.invert(pc.match_substring_regex(column, NUMBER)))
        found = column.filter(runs.fill_null(False))
        if not len(found):
            return column
        self.count, self.first = self.count + len(found), self.first or found[0].as_py()
        return pc.if_else(runs, pc.binary_join_element_wise("'", column, ""), column) if self.safe else column

    def warn(self) -> None:
        if self.count and not self.safe:
            warnings.warn(
                f"{self.path}: {self.count} cells begin as formulas do ({self.first!r:.60}): a spreadsheet "
                "that opens it may run them. Where the names are not your own, write with --safe-csv (in Python: with "
                "partly.data.for_spreadsheets()), or as .parquet.",
                stacklevel=2,
            )


class _JsonWriter:
    """An object a line, as JsonTable reads it."""

    def __init__(self, file: Any, schema: Any) -> None:
        self._file, self._names = file, schema.names

    def __enter__(self) -> _JsonWriter:
        # A line of nulls is no row, and names the columns even where there are none.
        self._file.write((json.dumps(dict.fromkeys(self._names)) + "\n").encode())
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write_batch(self, batch: Any) -> None:
        self._file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist()).encode())


class RowLocator(Protocol):
    """A table that can say where a row stands."""

    path: Path

    def place(self, row: int) -> str: ...


@dataclass
class Faults:
    """What cannot be read, of one kind: all are counted, the first few told."""

    table: RowLocator
    what: str
    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, rows: Sequence[int] | npt.NDArray[Any], texts: Iterable[str]) -> None:
        """A text per row. Only the first few are asked for."""
        self.count += len(rows)
        self.first += islice(zip(map(int, rows), texts, strict=False), MAX_LISTED_FAULTS - len(self.first))

    def refuse(self, remedy: str) -> None:
        if self.count:
            places = (f"{self.table.place(row)}: {text}" for row, text in self.first)
            raise DataError(
                f"{self.table.path}: {self.what}: {self.count}" + listing(places, self.count) + f"\n{remedy}"
            )


# -------------------------------------------------------------------- cells


def parse_ternary(
    column: Any, unsure: Callable[[object], bool] = lambda _: False, missing: Sequence[str] = ()
) -> npt.NDArray[np.int8]:
    """+1, -1, 0 as everywhere, UNSURE where the format has such cells, and WRONG where it is none of `SPELLINGS`.
    missing: further spellings of unknown."""
    spelled = {word.strip().lower() for word in missing}
    try:
        encoded = _plain(column).dictionary_encode()
    except pa.ArrowNotImplementedError:  # lists and the like
        return np.full(len(column), INVALID, np.int8)
    cells = encoded.dictionary.to_pylist()
    meaning = [
        0
        if spelled and str(cell).strip().lower() in spelled
        else parse_cell(cell, UNCERTAIN if unsure(cell) else INVALID)
        for cell in cells
    ]
    codes: npt.NDArray[np.int32] = encoded.indices.fill_null(len(meaning)).to_numpy(zero_copy_only=False)
    return np.array([*meaning, 0], np.int8)[codes]


def parse_cell(cell: object, otherwise: int) -> int:
    """+1, -1 or 0, or else what is said for a cell that is none of `SPELLINGS`."""
    if isinstance(cell, str):
        cell = cell.strip()
        return WORDS.get(cell.lower(), CELL_VALUES.get(cell, otherwise))
    return CELL_VALUES.get(cell, otherwise)


def text_column(column: Any, name: str, path: Path) -> Any:
    """Ids or names as an Arrow array of strings, '' where there is none."""
    column = _plain(column)
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise DataError(f"{path}: column {name!r} holds {kind}; it must hold text or whole numbers.")
    return column.cast(pa.string()).fill_null("")


def _plain(column: Any) -> Any:
    """Dictionaries and the longer kinds of text as simple columns."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    longer = pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type)
    return column.cast(pa.string()) if longer else column


# -------------------------------------------------------------------- the strict pass


def find_separator(path: Path) -> str:
    """What separates the cells of a file: tabs in a .tsv, else the first comma, semicolon or tab of its first line that
    is in no quotes."""
    if format_suffix(path) == TSV:
        return "\t"
    first = next((line for line in _lines(path) if line.strip()), "")
    outside = "".join(first.split('"')[::2])
    return next((letter for letter in outside if letter in SEPARATORS), ",")


def _widths(path: Path, separator: str) -> Counter[int]:
    """How many records have how many cells, in one fast pass; -1 stands for a file that is no clean CSV."""
    try:
        with open_decompressed(path) as raw:
            if any(b"\0" in chunk for chunk in iter(lambda: raw.read(1 << 20), b"")):
                return Counter([-1])
        with io.TextIOWrapper(open_decompressed(path), encoding="utf-8-sig", newline="\n") as file:
            return Counter(map(len, csv.reader(file, strict=True, delimiter=separator)))
    except (csv.Error, UnicodeDecodeError):
        return Counter([-1])
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Every record with the line on which it begins, the header first; blank lines are none."""
    reader = csv.reader(_lines(path), strict=True, delimiter=separator)
    begins = 1
    try:
        for cells in reader:
            if cells:
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        reason = "a quote is opened here and never closed" if "end of data" in str(error) else str(error)
        raise DataError(f"{path}:{begins}: not well-formed CSV: {reason}.") from error


def _lines(path: Path) -> Iterator[str]:
    with _arrow_errors(path), open_decompressed(path) as file:
        for number, line in enumerate(file, 1):
            if b"\0" in line:
                raise DataError(f"{path}:{number}: holds NUL bytes or is UTF-16. Save the file as UTF-8 text.")
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                raise DataError(
                    f"{path}:{number}: the byte 0x{byte:02X} is not UTF-8; in Latin-1 it is {chr(byte)!r}. "
                    "Save the file as UTF-8 text."
                ) from error


def _distinct(header: list[str], where: str) -> list[str]:
    twice = [repr(name) for name, count in Counter(header).items() if count > 1]
    if twice:
        raise DataError(f"{where}: columns that occur more than once: {len(twice)}" + listing(twice, len(twice)))
    return header


@contextmanager
def _arrow_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error
