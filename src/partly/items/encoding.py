"""Encode columns of a table as numbers: fill in missing values, one-hot encode categories, turn dates into days.

| column | encoded as |
|---|---|
| number, boolean | itself (true is 1); missing: the median of training |
| date or time | days since the earliest one in training; missing: the median |
| duration | days; missing: the median |
| category, text | a column of 0 and 1 for each of the 30 most frequent values, and one, `=other`, for the rest |

If values were missing in training, a further column of 0 and 1 marks them (`=missing`). A value that did not occur in
training is `=other` if there is such a column, and 0 in all columns otherwise.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from partly.errors import DataError, listing
from partly.labels.names import Names

ColumnKind = Literal["number", "date", "duration", "category"]
Values = npt.NDArray[Any]  # float64 with NaN where missing; of categories text, None where missing
Floats = npt.NDArray[np.float64]
MAX_CATEGORIES = 30  # one-hot columns of one category
MAX_DISTINCT_SHARE = 0.5  # distinct values per item, above which a text column looks like ids or free text


@dataclass(frozen=True)
class Column:
    """One column of a table before encoding: dates are days since 1970, durations are days."""

    name: str
    kind: ColumnKind
    values: Values

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        if self.kind == "category":
            return np.array([value is None for value in self.values], bool)
        gaps: npt.NDArray[np.bool_] = np.isnan(self.values)
        return gaps

    def take(self, rows: Any) -> Column:
        return Column(self.name, self.kind, self.values[rows])


@dataclass(frozen=True)
class ColumnEncoding:
    """Encoding of one column."""

    name: str
    kind: ColumnKind
    missing: bool  # has a column that marks missing values
    fill: float = 0.0  # replaces missing numbers
    start: float = 0.0  # subtracted from dates
    categories: tuple[str, ...] = ()
    other: bool = False  # has a column for all other categories of training

    @classmethod
    def fit(cls, column: Column) -> Self:
        """Choose the encoding from the values of training items."""
        gaps = column.missing
        missing = bool(gaps.any())
        present = column.values[~gaps]
        if column.kind == "category":
            counts = Counter(present.tolist())
            frequent = sorted(counts, key=lambda word: (-counts[word], word))[:MAX_CATEGORIES]
            return cls(
                column.name, "category", missing, categories=tuple(sorted(frequent)), other=len(counts) > len(frequent)
            )
        start = float(present.min()) if column.kind == "date" and len(present) else 0.0
        fill = float(np.median(present)) if len(present) else 0.0
        return cls(column.name, column.kind, missing, fill, start)

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns."""
        encoded = [self.name] if self.kind != "category" else [f"{self.name}={word}" for word in self.categories]
        encoded += [f"{self.name}=other"] if self.other else []
        return encoded + ([f"{self.name}=missing"] if self.missing else [])

    def apply(self, column: Column) -> list[Floats]:
        """Encode a column of the same kind: [N] for each name."""
        gaps = column.missing
        if self.kind == "category":
            encoded = [(column.values == word).astype(np.float64) for word in self.categories]
            if self.other:
                known = np.sum(encoded, axis=0, dtype=np.float64)
                encoded.append(np.where(gaps, 0.0, 1.0 - known))
        else:
            encoded = [np.where(gaps, self.fill, column.values.astype(np.float64)) - self.start]
        return encoded + ([gaps.astype(np.float64)] if self.missing else [])


def warn_of_words(column: Column) -> None:
    """Warn of a text column that looks like ids or free text."""
    if column.kind != "category":
        return
    present = column.values[~column.missing].tolist()
    name, different, count = column.name, len(set(present)), len(present)
    if different > MAX_CATEGORIES and different > MAX_DISTINCT_SHARE * count:
        warnings.warn(
            f"Column {name!r} has {different} different values in {count} items, which looks like ids or free text. "
            f"The {MAX_CATEGORIES} most frequent ones become columns, the rest shares one. Leave it out if it is not "
            "a category.",
            stacklevel=3,
        )


@dataclass(frozen=True)
class Encoding:
    """Encoding of all columns of a table: fitted to training items, then applied to others."""

    columns: tuple[ColumnEncoding, ...]
    named: bool = True  # columns are matched by name, otherwise by position

    @classmethod
    def fit(cls, columns: Sequence[Column], named: bool = True) -> Self:
        """Choose the encoding from the values of training items."""
        encoding = cls(tuple(map(ColumnEncoding.fit, columns)), named)
        twice = [repr(name) for name, count in Counter(encoding.names).items() if count > 1]
        if twice:
            raise DataError(
                f"X: columns would have the same name once encoded:{listing(twice, len(twice))}\nRename one."
            )
        return encoding

    @cached_property
    def names(self) -> Names:
        """Names of the features."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def column_names(self) -> Names:
        """Names of the columns before encoding."""
        return tuple(column.name for column in self.columns)

    def apply(self, columns: Sequence[Column]) -> Floats:
        """Encode columns in the order of training: features [N, D]."""
        encoded = [
            part
            for encoding, column in zip(self.columns, self._match_kinds(columns), strict=True)
            for part in encoding.apply(column)
        ]
        return np.stack(encoded, axis=1) if encoded else np.empty((0, 0))

    def _match_kinds(self, columns: Sequence[Column]) -> list[Column]:
        """Convert columns to the kinds of training; refuse by name those that cannot be."""
        matching, wrong = [], []
        for encoding, column in zip(self.columns, columns, strict=True):
            converted = _convert_kind(column, encoding.kind)
            if converted is None:
                wrong.append(f"{encoding.name!r}: {column.kind} here, {encoding.kind} in training")
            else:
                matching.append(converted)
        if wrong:
            raise DataError(
                f"X: columns of another kind than in training: {len(wrong)}{listing(wrong, len(wrong))}\n"
                "Give them as in training, or train again."
            )
        return matching

    # ---------------------------------------------------------------- as JSON

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned."""
        columns = (
            ColumnEncoding(**{**column, "categories": tuple(column["categories"])}) for column in values["columns"]
        )
        return cls(tuple(columns), bool(values["named"]))

    def digest(self) -> str:
        """Return the SHA-256 of the encoding."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()


def is_encoding(value: Any, width: int) -> bool:
    """Return whether a JSON value is what `Encoding.to_json` returns for `width` features."""
    try:
        encoding = Encoding.from_json(value)
        plain = encoding.to_json() == value and len(encoding.names) == width == len(set(encoding.names))
        types = all(
            type(column.name) is str
            and column.kind in get_args(ColumnKind)
            and type(column.missing) is type(column.other) is bool
            and all(type(number) in (int, float) and abs(number) < np.inf for number in (column.fill, column.start))
            and all(type(word) is str for word in column.categories)
            for column in encoding.columns
        )
    except (TypeError, KeyError, ValueError, AttributeError):
        return False
    return plain and types


def _convert_kind(column: Column, kind: ColumnKind) -> Column | None:
    """Convert a column to another kind without guessing: blank columns fit any kind, numbers can be categories."""
    if column.kind == kind:
        return column
    gaps = column.missing
    if gaps.all():
        blank: Values = np.full(len(gaps), None, object) if kind == "category" else np.full(len(gaps), np.nan)
        return Column(column.name, kind, blank)
    if kind == "category" and column.kind == "number":
        categories = [None if gap else f"{value:.15g}" for gap, value in zip(gaps, column.values, strict=True)]
        return Column(column.name, kind, np.array(categories, object))
    return None
