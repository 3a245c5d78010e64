"""Rows of a table with missing values or columns that are not numbers; encoded when training starts (`encoding`)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from torch import Tensor

from partly.errors import DataError, listing
from partly.items.arrays import Arrays, Place, features, refuse_infinite
from partly.items.columns import match_features
from partly.items.contract import Index, Kind, Positions, Statistics, select_rows
from partly.items.encoding import Column, Encoding, warn_of_words
from partly.labels.names import Names

MISSING_CELLS = ("", "?", "na", "n/a", "nan", "null", "none")  # in any case
BOOLEAN_CELLS = {"true": 1.0, "false": 0.0}
DURATION = re.compile(r"(?:(?P<days>-?\d+) days?,? )?\+?(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d+)?)")
SECONDS_PER_DAY = 86_400.0
MICROSECONDS_PER_SECOND = 1e6
ENCODING_OFF = (
    "Encode them yourself (pandas.get_dummies, scikit-learn), or automatically: encode=True, without --no-encode."
)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, with names or only in order."""

    columns: tuple[Column, ...]
    named: bool = True
    where: str = "X"

    @cached_property
    def encoding(self) -> Encoding:
        """Encoding fitted to all rows, for uses without training."""
        return Encoding.fit(self.columns, self.named)


@dataclass(frozen=True, eq=False)
class TableRows:
    """All or some rows of a table.

    `take` uses an encoding fitted to the whole table; training and prediction use `encode` and `encode_as`.
    """

    table: Table
    rows: Positions | None = None  # None: all
    kind: Kind = "features"
    origin: None = None
    encoding: None = None
    conditioning: None = None

    def __len__(self) -> int:
        return len(self.table.columns[0].values) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.names),)

    @property
    def names(self) -> Names:
        return self.table.encoding.names

    @property
    def column_names(self) -> Names | None:
        """Names of the columns before encoding."""
        return tuple(column.name for column in self.table.columns) if self.table.named else None

    @property
    def width(self) -> int:
        """Number of columns before encoding."""
        return len(self.table.columns)

    def __getitem__(self, index: Index) -> TableRows:
        return replace(self, rows=select_rows(self.rows, index, len(self)))

    def take(self, index: Tensor | slice) -> Tensor:
        return self._features.take(index)

    @property
    def statistics(self) -> Statistics:
        return self._features.statistics

    def digest(self) -> str:
        return self._features.digest()

    @cached_property
    def _features(self) -> Arrays:
        return self.encode_as(self.table.encoding)

    # ---------------------------------------------------------------- encoding

    def encode(self) -> Arrays:
        """Fit an encoding to these rows and apply it, for training."""
        columns = self._columns(range(self.width))
        for column in columns:
            warn_of_words(column)
        return self.encode_as(Encoding.fit(columns, self.table.named))

    def encode_as(self, encoding: Encoding) -> Arrays:
        """Apply the encoding of other rows."""
        order = _column_order(self.column_names, self.width, encoding)
        x = encoding.apply(self._columns(order))
        return replace(features(x, self.table.where, encoding.names), encoding=encoding)

    def _columns(self, order: Sequence[int]) -> list[Column]:
        rows = slice(None) if self.rows is None else self.rows
        return [self.table.columns[j].take(rows) for j in order]

    def needs(self) -> list[str]:
        """Return the columns that need encoding, with the reason."""
        return [reason for reason in map(_describe_need, self._columns(range(self.width))) if reason]

    def refuse(self, remedy: str = ENCODING_OFF) -> None:
        """Raise an error that lists the columns that need encoding."""
        needs = self.needs()
        raise DataError(
            f"{self.table.where}: columns that are not numbers, or have missing values: {len(needs)}"
            + listing(needs, len(needs))
            + f"\n{remedy}"
        )


def _describe_need(column: Column) -> str:
    reasons: list[str] = [column.kind] if column.kind != "number" else []
    count = int(column.missing.sum())
    reasons += [f"{count} missing"] if count else []
    return f"{column.name!r}: {', '.join(reasons)}" if reasons else ""


def _column_order(names: Names | None, width: int, encoding: Encoding) -> Sequence[int]:
    """Return the positions of the columns of training; matched by position if either side has no names."""
    if names is None or not encoding.named:
        if width != len(encoding.columns):
            raise DataError(f"X has {width} columns; the model was trained on {len(encoding.columns)}.")
        return range(width)
    order: Sequence[int] = match_features(encoding.column_names, names).tolist()
    return order


def encode_as(items: Arrays | TableRows, encoding: Encoding) -> Arrays:
    """Encode features or rows of a table like those of training; features that are already encoded stay."""
    if isinstance(items, TableRows):
        return items.encode_as(encoding)
    return (
        items if items.encoding is not None else number_rows(items.exact, items.names, items.where).encode_as(encoding)
    )


# ---------------------------------------------------------------- constructors


def number_rows(x: npt.NDArray[Any], names: Names | None = None, where: str = "X") -> TableRows:
    """Wrap a matrix of numbers, NaN where they are missing."""
    column_names = names or tuple(f"feature {j}" for j in range(x.shape[1]))
    columns = tuple(Column(name, "number", x[:, j].astype(np.float64)) for j, name in enumerate(column_names))
    return table_rows(columns, where, names is not None)


def matrix_rows(
    x: npt.NDArray[Any], where: str = "X", names: Names | None = None, place: Place | None = None
) -> Arrays | TableRows:
    """Wrap a matrix of numbers as features, or as rows of a table if some are missing."""
    if x.ndim == 2 and has_gaps(x):
        refuse_infinite(x, where, names, place)
        return number_rows(x, names, where)
    return features(x, where, names, place)


def has_gaps(x: npt.NDArray[Any]) -> bool:
    """Return whether some numbers are NaN."""
    return bool(x.dtype.kind == "f" and x.size and math.isnan(float(x.min())))  # one NaN makes the minimum NaN


def table_rows(columns: Sequence[Column], where: str = "X", named: bool = True) -> TableRows:
    """Wrap columns of equal length."""
    return TableRows(Table(tuple(columns), named, where))


def frame_rows(table: Any, where: str = "X") -> TableRows:
    """Wrap a pandas frame."""
    columns, wrong = [], []
    for j, name in enumerate(table.columns):
        try:
            values = pa.Array.from_pandas(table.iloc[:, j])
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            columns.append(parse_column(str(name), values))
        except (pa.ArrowException, DataError) as error:
            wrong.append(str(error) if isinstance(error, DataError) else f"{name!r}: {str(error).splitlines()[0]}")
    if wrong:
        raise DataError(
            f"{where}: columns that cannot be encoded: {len(wrong)}{listing(wrong, len(wrong))}\n"
            "Leave them out, or convert them to numbers or categories."
        )
    named = all(isinstance(name, str) for name in table.columns)
    return table_rows(columns, where, named)


def parse_column(name: str, values: Any, missing: Sequence[str] = (), decimal_comma: bool = False) -> Column:
    """Turn an Arrow array into a column; its type, or the cells of a text column, decide the kind.

    missing : further text cells that mean missing.
    decimal_comma : read 1,5 as a number.
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _categories(name, values.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        values = _blank_missing(values.cast(pa.string()), missing)
        return _parse_text(name, _replace_decimal_commas(values) if decimal_comma else values)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return Column(name, "date", _days_of(values.cast(pa.timestamp("us"), safe=False)))
    if pa.types.is_duration(kind):
        return Column(name, "duration", _days_of(values.cast(pa.duration("us"), safe=False)))
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind) or _is_number(kind):
        return Column(name, "number", _floats(values))
    raise DataError(f"{name!r}: cells of the type {kind}")


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _floats(values: Any) -> npt.NDArray[np.float64]:
    """Convert to float64, null to NaN."""
    numbers: npt.NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _days_of(microseconds: Any) -> npt.NDArray[np.float64]:
    return _floats(microseconds.cast(pa.int64())) / MICROSECONDS_PER_SECOND / SECONDS_PER_DAY


def _categories(name: str, values: Any) -> Column:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        values = values.cast(pa.string())
    return Column(name, "category", np.array(values.to_pylist(), object))


def _blank_missing(values: Any, missing: Sequence[str]) -> Any:
    cells = pc.utf8_lower(pc.utf8_trim_whitespace(values))
    spellings = pa.array([*MISSING_CELLS, *(word.strip().lower() for word in missing)])
    return pc.if_else(pc.is_in(cells, spellings), None, values)


def _replace_decimal_commas(values: Any) -> Any:
    """Replace decimal commas by points if all cells are then numbers."""
    points = pc.replace_substring(values, ",", ".")
    numbers = all(not math.isnan(_parse_number(word)) for word in pc.unique(points.drop_null()).to_pylist())
    return points if numbers else values


def _parse_text(name: str, values: Any) -> Column:
    """Parse text cells as numbers, true and false, ISO dates or durations if every cell is one; else as categories."""
    present = values.drop_null()
    counts = {pair["values"]: pair["counts"] for pair in pc.value_counts(present).to_pylist()}
    not_numbers = [word for word in counts if math.isnan(_parse_number(word))]
    if not not_numbers:
        return Column(name, "number", _floats(pc.utf8_trim_whitespace(values)))
    if {word.lower() for word in counts} <= BOOLEAN_CELLS.keys():
        flags = [math.nan if word is None else BOOLEAN_CELLS[word.lower()] for word in values.to_pylist()]
        return Column(name, "number", np.array(flags))
    try:
        return parse_column(name, values.cast(pa.timestamp("us")))
    except pa.ArrowException:
        pass
    durations = {word: _parse_duration(word) for word in counts}
    if not any(math.isnan(days) for days in durations.values()):
        return Column(name, "duration", np.array([durations.get(word, math.nan) for word in values.to_pylist()]))
    if sum(counts[word] for word in not_numbers) < len(present) / 2:
        raise DataError(f"{name!r}: most cells are numbers, but not {not_numbers[0]!r}; leave such cells blank")
    return _categories(name, values)


def _parse_duration(word: str) -> float:
    """Parse a duration as pandas and Python write it ('1 days 02:03:04.5', '2:03:04'); NaN for anything else.

    In '-1 days +23:00:00' only the days are negative.
    """
    match = DURATION.fullmatch(word.strip())
    if match is None:
        return math.nan
    days, hours, minutes, seconds = (float(match[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
    return days + (hours * 3600 + minutes * 60 + seconds) / SECONDS_PER_DAY


def _parse_number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
