"""Items that are rows of a table whose columns are not all numbers, or have gaps: kept as they were read, until
training chooses how to encode them (`encoding`)."""

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
from partly.items.columns import places
from partly.items.contract import Index, Kind, Positions, Statistics, narrowed
from partly.items.encoding import Column, Encoding, warn_of_words
from partly.labels.names import Names

MISSING_WORDS = ("", "?", "na", "n/a", "nan", "null", "none")  # cells of text that say nothing, in any case
TRUTH_WORDS = {"true": 1.0, "false": 0.0}
DURATION = re.compile(r"(?:(?P<days>-?\d+) days?,? )?\+?(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d+)?)")
DAY = 86_400.0  # seconds
MICROSECONDS = 1e6
SWITCHED_OFF = (
    "Encode them yourself (pandas.get_dummies, scikit-learn), or let it be done: encode=True, without --no-encode."
)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length; `names` None where only their order is known."""

    columns: tuple[Column, ...]
    named: bool = True
    where: str = "X"

    @cached_property
    def encoding(self) -> Encoding:
        """Fitted to all rows, for uses that train nothing."""
        return Encoding.fit(self.columns, self.named)


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table, all or some. By itself it is encoded as all rows of the table suggest; training and prediction
    use `fitted` and `encoded`."""

    table: Table
    rows: Positions | None = None  # None: all
    kind: Kind = "features"

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
        """The names of the columns, before they are encoded."""
        return tuple(column.name for column in self.table.columns) if self.table.named else None

    @property
    def width(self) -> int:
        """The number of columns, before they are encoded."""
        return len(self.table.columns)

    def __getitem__(self, index: Index) -> TableRows:
        return replace(self, rows=narrowed(self.rows, index, len(self)))

    def take(self, index: Tensor | slice) -> Tensor:
        return self._plain.take(index)

    @property
    def statistics(self) -> Statistics:
        return self._plain.statistics

    def digest(self) -> str:
        return self._plain.digest()

    @cached_property
    def _plain(self) -> Arrays:
        return self.encoded(self.table.encoding)

    # ---------------------------------------------------------------- encoded

    def fitted(self) -> Arrays:
        """These rows, encoded as they suggest: for training."""
        columns = self._columns(range(self.width))
        for column in columns:
            warn_of_words(column)
        return self.encoded(Encoding.fit(columns, self.table.named))

    def encoded(self, encoding: Encoding) -> Arrays:
        """These rows, encoded as others were."""
        order = _column_order(self.column_names, self.width, encoding)
        x = encoding.apply(self._columns(order))
        return replace(features(x, self.table.where, encoding.names), encoding=encoding)

    def _columns(self, order: Sequence[int]) -> list[Column]:
        rows = slice(None) if self.rows is None else self.rows
        return [self.table.columns[j].taken(rows) for j in order]

    def needs(self) -> list[str]:
        """Which columns need encoding, and why."""
        return [why for why in map(_need, self._columns(range(self.width))) if why]

    def refuse(self, remedy: str = SWITCHED_OFF) -> None:
        """Raise an error that names the columns that need encoding."""
        needs = self.needs()
        raise DataError(
            f"{self.table.where}: columns that are not numbers, or have missing values: {len(needs)}"
            + listing(needs, len(needs))
            + f"\n{remedy}"
        )


def _need(column: Column) -> str:
    words: list[str] = [column.kind] if column.kind != "number" else []
    count = int(column.missing.sum())
    words += [f"{count} missing"] if count else []
    return f"{column.name!r}: {', '.join(words)}" if words else ""


def _column_order(names: Names | None, width: int, encoding: Encoding) -> Sequence[int]:
    """Where the columns of training are; by position where either side has no names."""
    if names is None or not encoding.named:
        if width != len(encoding.columns):
            raise DataError(f"X has {width} columns; the model was trained on {len(encoding.columns)}.")
        return range(width)
    order: Sequence[int] = places(encoding.column_names, names).tolist()
    return order


def encoded_as(items: Arrays | TableRows, encoding: Encoding) -> Arrays:
    """Features or rows of a table, encoded as those of training were; what is encoded already stays."""
    if isinstance(items, TableRows):
        return items.encoded(encoding)
    return items if items.encoding is not None else number_rows(items.exact, items.names, items.where).encoded(encoding)


# ---------------------------------------------------------------- the door


def number_rows(x: npt.NDArray[Any], names: Names | None = None, where: str = "X") -> TableRows:
    """A matrix of numbers, NaN where they are missing."""
    words = names or tuple(f"feature {j}" for j in range(x.shape[1]))
    columns = tuple(Column(word, "number", x[:, j].astype(np.float64)) for j, word in enumerate(words))
    return table_rows(columns, where, names is not None)


def matrix_rows(
    x: npt.NDArray[Any], where: str = "X", names: Names | None = None, place: Place | None = None
) -> Arrays | TableRows:
    """A matrix of numbers as features, or as rows of a table where some of them are missing."""
    if x.ndim == 2 and has_gaps(x):
        refuse_infinite(x, where, names, place)
        return number_rows(x, names, where)
    return features(x, where, names, place)


def has_gaps(x: npt.NDArray[Any]) -> bool:
    """Tell whether some numbers are NaN."""
    return bool(x.dtype.kind == "f" and x.size and math.isnan(float(x.min())))  # a NaN makes the minimum one


def table_rows(columns: Sequence[Column], where: str = "X", named: bool = True) -> TableRows:
    """Rows of a table of such columns."""
    return TableRows(Table(tuple(columns), named, where))


def frame_rows(table: Any, where: str = "X") -> TableRows:
    """Rows of a pandas frame."""
    columns, wrong = [], []
    for j, name in enumerate(table.columns):
        try:
            values = pa.Array.from_pandas(table.iloc[:, j])
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            columns.append(typed_column(str(name), values))
        except (pa.ArrowException, DataError) as error:
            wrong.append(str(error) if isinstance(error, DataError) else f"{name!r}: {str(error).splitlines()[0]}")
    if wrong:
        raise DataError(
            f"{where}: columns that cannot be encoded: {len(wrong)}{listing(wrong, len(wrong))}\n"
            "Leave them out, or make numbers or categories of them."
        )
    named = all(isinstance(name, str) for name in table.columns)
    return table_rows(columns, where, named)


def typed_column(name: str, values: Any, missing: Sequence[str] = (), decimal_comma: bool = False) -> Column:
    """An Arrow array as a column of the kind that its type, or its cells, say. Of text: missing, further cells that say
    nothing; decimal_comma, 1,5 is a number."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _categories(name, values.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        values = _without_missing(values.cast(pa.string()), missing)
        return _from_text(name, _with_points(values) if decimal_comma else values)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return Column(name, "date", _microseconds(values.cast(pa.timestamp("us"), safe=False)) / MICROSECONDS / DAY)
    if pa.types.is_duration(kind):
        return Column(name, "duration", _microseconds(values.cast(pa.duration("us"), safe=False)) / MICROSECONDS / DAY)
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind) or _is_number(kind):
        return Column(name, "number", _floats(values))
    raise DataError(f"{name!r}: cells of the type {kind}")


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _floats(values: Any) -> npt.NDArray[np.float64]:
    """NaN where a cell is null."""
    numbers: npt.NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _microseconds(values: Any) -> npt.NDArray[np.float64]:
    return _floats(values.cast(pa.int64()))


def _categories(name: str, values: Any) -> Column:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        values = values.cast(pa.string())
    return Column(name, "category", np.array(values.to_pylist(), object))


def _without_missing(values: Any, missing: Sequence[str]) -> Any:
    words = pc.utf8_lower(pc.utf8_trim_whitespace(values))
    spellings = pa.array([*MISSING_WORDS, *(word.strip().lower() for word in missing)])
    return pc.if_else(pc.is_in(words, spellings), None, values)


def _with_points(values: Any) -> Any:
    """Cells with a decimal point, where all of them are numbers with a comma."""
    points = pc.replace_substring(values, ",", ".")
    numbers = all(not math.isnan(_number(word)) for word in pc.unique(points.drop_null()).to_pylist())
    return points if numbers else values


def _from_text(name: str, values: Any) -> Column:
    """Cells of text: numbers, true and false, or ISO dates where all of them are; else categories."""
    present = values.drop_null()
    counts = {one["values"]: one["counts"] for one in pc.value_counts(present).to_pylist()}
    strange = [word for word in counts if math.isnan(_number(word))]
    if not strange:
        return Column(name, "number", _floats(pc.utf8_trim_whitespace(values)))
    if {word.lower() for word in counts} <= TRUTH_WORDS.keys():
        truth = [math.nan if word is None else TRUTH_WORDS[word.lower()] for word in values.to_pylist()]
        return Column(name, "number", np.array(truth))
    try:
        return typed_column(name, values.cast(pa.timestamp("us")))
    except pa.ArrowException:
        pass
    durations = {word: _days(word) for word in counts}
    if not any(math.isnan(days) for days in durations.values()):
        return Column(name, "duration", np.array([durations.get(word, math.nan) for word in values.to_pylist()]))
    if sum(counts[word] for word in strange) < len(present) / 2:
        raise DataError(f"{name!r}: most cells are numbers, but not {strange[0]!r}; leave such cells blank")
    return _categories(name, values)


def _days(word: str) -> float:
    """A duration as pandas and Python write it ('1 days 02:03:04.5', '2:03:04'); NaN where it is none. In
    '-1 days +23:00:00' only the days are negative."""
    found = DURATION.fullmatch(word.strip())
    if found is None:
        return math.nan
    days, hours, minutes, seconds = (float(found[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
    return days + (hours * 3600 + minutes * 60 + seconds) / DAY


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
