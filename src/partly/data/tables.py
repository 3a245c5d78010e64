"""Tables (CSV, TSV, JSON, Excel, Parquet) as a header and a stream of Arrow batches, and the values of their cells.

A CSV file is read twice. The first pass, by Python's strict reader, refuses bad encodings, quotes and ragged rows with
their line numbers. Arrow's reader is fast, but accepts a truncated last line and does not count lines.
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
from partly.data.json_tables import JsonRecords, JsonTable, is_records
from partly.data.paths import format_suffix, refuse_database
from partly.errors import DataError, listing
from partly.labels.spellings import WORDS

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
SUFFIXES = (".csv", ".parquet", ".tsv", ".jsonl")
READABLE = (*SUFFIXES, ".json", ".xlsx")  # the last two cannot be written
TSV = ".tsv"
BLOCK_BYTES = 1 << 23  # of a CSV file in memory; a row must fit
BLOCK_CELLS = 1 << 22  # of a Parquet file in memory
GROUP_CELLS = 1 << 24  # of a Parquet row group: every group costs some bytes per column
MAX_LISTED_FAULTS = 5
INVALID = 2  # a cell that is no spelling of yes, no or unknown
UNCERTAIN = 3  # a cell that is marked as uncertain
# 1.0, True and Decimal(1) equal 1, so the key 1 serves them too.
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
    """A UTF-8 CSV or TSV file with a header, optionally compressed. All cells are text; a blank one is ''."""

    def __init__(self, path: Path) -> None:
        self.path, self.budget, self.separator = path, Budget(path), find_separator(path)
        self.decimal_comma = self.separator == ";"
        first = next(self._records(), None)
        if first is None:
            raise DataError(f"{path}: is empty. The first line must name the columns.")
        self.header = _check_distinct(first[1], f"{path}:{first[0]}")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        if not self._count_rows():
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

    def _count_rows(self) -> int:
        """Count the rows; refuse those that are not as wide as the header."""
        width = len(self.header)
        widths = _count_widths(self.path, self.separator)
        if widths.keys() <= {width, 0}:  # 0: a blank line
            return widths[width] - 1  # without the header
        ragged = Faults(self, "rows that are not as wide as the header")
        for row, (_, cells) in enumerate(self._records(), -1):
            if len(cells) != width:
                ragged.add([row], [f"{len(cells)} cells for {width} columns"])
        ragged.refuse(f"A name that contains a {SEPARATORS[self.separator]} needs quotes around it.")
        raise DataError(f"{self.path}: was changed while it was read.")

    def place(self, row: int) -> str:
        """Return the location of a row for messages; -1 is the header."""
        line, _ = next(islice(self._records(), row + 1, None))
        return f"{self.path}:{line}"

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        return _records(self.path, self.separator)


class ParquetTable:
    """A Parquet file with typed cells.

    Text is read dictionary-encoded and decoded in pieces, because a few bytes can stand for a long text in every row.
    """

    decimal_comma = False

    def __init__(self, path: Path) -> None:
        self.path, self.budget = path, Budget(path)
        with _arrow_errors(path):
            self.schema = pq.read_schema(path)
            self.header = _check_distinct(self.schema.names, str(path))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        size, budget = max(1, BLOCK_CELLS // max(1, len(columns))), Budget(self.path)
        texts = [name for name in columns if pa.types.is_string(self.schema.field(name).type)]
        selected = None if any("." in name for name in columns) else list(columns)  # Arrow reads a dot as a path
        # pre_buffer would keep everything in memory until the end of the file.
        with (
            _arrow_errors(self.path),
            pq.ParquetFile(self.path, pre_buffer=False, read_dictionary=texts) as file,
        ):
            for batch in file.iter_batches(size, columns=selected):
                yield from decode_dictionaries(batch.select(list(columns)), budget)

    def place(self, row: int) -> str:
        return f"{self.path}: row {row + 1}" if row >= 0 else str(self.path)


class Table(Protocol):
    """A header and a stream of Arrow batches. decimal_comma: numbers may be written as 1,5."""

    path: Path
    budget: Budget
    header: list[str]
    decimal_comma: bool

    def batches(self, columns: Sequence[str]) -> Iterator[Any]: ...

    def place(self, row: int) -> str: ...


def is_table(path: Path) -> bool:
    """Return whether a file is a table: by its suffix, or for JSON, which other formats use too, by its content."""
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


def _separator_to_write(path: Path) -> str:
    return "\t" if format_suffix(path) == TSV else ","


def first_cell(table: Table, name: str) -> Any:
    """Return the first cell of a column that is not blank; None if all cells of the first batch are."""
    for batch in table.batches([name]):
        return next((cell for cell in batch.column(0).to_pylist() if cell not in (None, "")), None)
    return None


def write_table(path: Path, schema: Any, batches: Iterator[Any]) -> None:
    """Write a table, completely or not at all: text in quotes, a missing cell blank (CSV) or null (Parquet, JSON)."""
    # Fractions hardly ever repeat, and building a dictionary takes more than half of the time.
    use_dictionary = not any(pa.types.is_floating(column.type) for column in schema)
    options = arrow_csv.WriteOptions(delimiter=_separator_to_write(path))
    writers: dict[str, Callable[..., Any]] = {
        ".parquet": partial(pq.ParquetWriter, use_dictionary=use_dictionary),
        ".jsonl": _JsonWriter,
    }
    is_csv = format_suffix(path) not in writers  # spreadsheets run formulas of CSV files only
    writer = writers.get(format_suffix(path), partial(arrow_csv.CSVWriter, write_options=options))
    guard = FormulaGuard(path)
    written_schema = guard.header(schema) if is_csv else schema
    with open_compressed(path) as file, writer(file, written_schema) as table:
        for batch in batches:
            table.write_batch(guard.batch(batch, written_schema) if is_csv else batch)
    guard.warn()


@contextmanager
def for_spreadsheets(wanted: bool = True) -> Iterator[None]:
    """Put a ' before CSV cells that a spreadsheet would run as formulas, in all files written in this context.

    A spreadsheet does not show the '; when the file is read back, it is part of the name.
    """
    token = _SAFE.set(wanted)
    try:
        yield
    finally:
        _SAFE.reset(token)


_SAFE: ContextVar[bool] = ContextVar("safe", default=False)
FORMULA = r"^[=+\-@\t\r]"  # start of a cell that a spreadsheet runs
NUMBER = r"^[+-]?[0-9]*[.]?[0-9]+([eE][+-]?[0-9]+)?$"  # starts like a formula, but is harmless


class FormulaGuard:
    """Escapes cells of one CSV file that a spreadsheet would run if this was requested, and otherwise warns of them."""

    def __init__(self, path: Path) -> None:
        self.path, self.safe, self.count, self.first = path, _SAFE.get(), 0, ""

    def header(self, schema: Any) -> Any:
        return pa.schema([field.with_name(self._column(pa.array([field.name]))[0].as_py()) for field in schema])

    def batch(self, batch: Any, schema: Any) -> Any:
        columns = (self._column(column) if pa.types.is_string(column.type) else column for column in batch.columns)
        return pa.record_batch(list(columns), schema)

    def _column(self, column: Any) -> Any:
        is_formula = pc.and_(
            pc.match_substring_regex(column, FORMULA), pc.invert(pc.match_substring_regex(column, NUMBER))
        )
        formulas = column.filter(is_formula.fill_null(False))
        if not len(formulas):
            return column
        self.count, self.first = self.count + len(formulas), self.first or formulas[0].as_py()
        return pc.if_else(is_formula, pc.binary_join_element_wise("'", column, ""), column) if self.safe else column

    def warn(self) -> None:
        if self.count and not self.safe:
            warnings.warn(
                f"{self.path}: {self.count} cells look like formulas ({self.first!r:.60}), which a spreadsheet may "
                "run. If you do not trust the names, write with --safe-csv (in Python: with "
                "partly.data.for_spreadsheets()), or as .parquet.",
                stacklevel=2,
            )


class _JsonWriter:
    """Writes one JSON object per line, as JsonTable reads it."""

    def __init__(self, file: Any, schema: Any) -> None:
        self._file, self._names = file, schema.names

    def __enter__(self) -> _JsonWriter:
        # A line of nulls is not a row; it names the columns even if there are no rows.
        self._file.write((json.dumps(dict.fromkeys(self._names)) + "\n").encode())
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write_batch(self, batch: Any) -> None:
        self._file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist()).encode())


class RowLocator(Protocol):
    """A table that can describe the location of a row."""

    path: Path

    def place(self, row: int) -> str: ...


@dataclass
class Faults:
    """Faults of one kind in a table: all are counted, the first few are listed."""

    table: RowLocator
    what: str
    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, rows: Sequence[int] | npt.NDArray[Any], texts: Iterable[str]) -> None:
        """Add faulty rows with a text for each; only the first few texts are evaluated."""
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
    """Parse cells as +1, -1 or 0. Other cells are UNCERTAIN if `unsure` is true for them, else INVALID.

    missing : further spellings of unknown.
    """
    unknown = {word.strip().lower() for word in missing}
    try:
        encoded = _simplify(column).dictionary_encode()
    except pa.ArrowNotImplementedError:  # lists, for example
        return np.full(len(column), INVALID, np.int8)

    def value_of(cell: object) -> int:
        if unknown and str(cell).strip().lower() in unknown:
            return 0
        return parse_cell(cell, UNCERTAIN if unsure(cell) else INVALID)

    values = [value_of(cell) for cell in encoded.dictionary.to_pylist()]
    codes: npt.NDArray[np.int32] = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return np.array([*values, 0], np.int8)[codes]


def parse_cell(cell: object, otherwise: int) -> int:
    """Return +1, -1 or 0; `otherwise` for a cell that spells none of yes, no and unknown."""
    if isinstance(cell, str):
        cell = cell.strip()
        return WORDS.get(cell.lower(), CELL_VALUES.get(cell, otherwise))
    return CELL_VALUES.get(cell, otherwise)


def text_column(column: Any, name: str, path: Path) -> Any:
    """Return ids or names as an Arrow array of strings, '' for missing ones."""
    column = _simplify(column)
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise DataError(f"{path}: column {name!r} holds {kind}; it must hold text or whole numbers.")
    return column.cast(pa.string()).fill_null("")


def _simplify(column: Any) -> Any:
    """Turn dictionaries and large strings into plain columns."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    needs_cast = pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type)
    return column.cast(pa.string()) if needs_cast else column


# -------------------------------------------------------------------- the strict pass over CSV files


def find_separator(path: Path) -> str:
    """Return the separator: a tab in a .tsv, else the first one outside quotes in the first line."""
    if format_suffix(path) == TSV:
        return "\t"
    first = next((line for line in _lines(path) if line.strip()), "")
    unquoted = "".join(first.split('"')[::2])
    return next((character for character in unquoted if character in SEPARATORS), ",")


def _count_widths(path: Path, separator: str) -> Counter[int]:
    """Count records by their number of cells, in one fast pass; -1 stands for a malformed file."""
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
    """Yield every record with its first line, the header first; blank lines are skipped."""
    reader = csv.reader(_lines(path), strict=True, delimiter=separator)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        reason = "the quote that opens here is never closed" if "end of data" in str(error) else str(error)
        raise DataError(f"{path}:{line}: not well-formed CSV: {reason}.") from error


def _lines(path: Path) -> Iterator[str]:
    with _arrow_errors(path), open_decompressed(path) as file:
        for number, line in enumerate(file, 1):
            if b"\0" in line:
                raise DataError(f"{path}:{number}: contains NUL bytes or is UTF-16. Save the file as UTF-8 text.")
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                raise DataError(
                    f"{path}:{number}: the byte 0x{byte:02X} is not UTF-8; in Latin-1 it is {chr(byte)!r}. "
                    "Save the file as UTF-8 text."
                ) from error


def _check_distinct(header: list[str], where: str) -> list[str]:
    repeated = [repr(name) for name, count in Counter(header).items() if count > 1]
    if repeated:
        raise DataError(
            f"{where}: columns that occur more than once: {len(repeated)}" + listing(repeated, len(repeated))
        )
    return header


@contextmanager
def _arrow_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error
