"""From columns of a table to numbers: missing values are filled in, categories become columns of 0 and 1, dates and
durations become days.

| column | encoded as |
|---|---|
| number, boolean | itself (true is 1); missing: the median of training |
| date or time | days since the earliest one of training; missing: the median |
| duration | days; missing: the median |
| category, text | a column of 0 and 1 for each of the 30 most frequent values, and one, `=other`, for the rest |

Where values were missing in training, a further column of 0 and 1 says where (`=missing`). A value that training did
not have is `=other` where there is such a column, else 0 in all of them.
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
MAX_CATEGORIES = 30  # columns that one category becomes
MOSTLY_DIFFERENT = 0.5  # distinct values per item, from which on a column of words looks like text or ids


@dataclass(frozen=True)
class Column:
    """One column of a table, as it was read: days since 1970 of dates, days of durations."""

    name: str
    kind: ColumnKind
    values: Values

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        if self.kind == "category":
            return np.array([value is None for value in self.values], bool)
        found: npt.NDArray[np.bool_] = np.isnan(self.values)
        return found

    def taken(self, rows: Any) -> Column:
        return Column(self.name, self.kind, self.values[rows])


@dataclass(frozen=True)
class ColumnEncoding:
    """What becomes of one column."""

    name: str
    kind: ColumnKind
    missing: bool  # whether a column says where values were missing
    fill: float = 0.0  # in the place of a missing number
    start: float = 0.0  # subtracted from dates
    categories: tuple[str, ...] = ()
    other: bool = False  # whether a column stands for all other categories of training

    @classmethod
    def fit(cls, column: Column) -> Self:
        """Choose how to encode a column from the values of training items."""
        gaps = column.missing
        missing = bool(gaps.any())
        present = column.values[~gaps]
        if column.kind == "category":
            counts = Counter(present.tolist())
            kept = sorted(counts, key=lambda word: (-counts[word], word))[:MAX_CATEGORIES]
            return cls(column.name, "category", missing, categories=tuple(sorted(kept)), other=len(counts) > len(kept))
        start = float(present.min()) if column.kind == "date" and len(present) else 0.0
        fill = float(np.median(present)) if len(present) else 0.0
        return cls(column.name, column.kind, missing, fill, start)

    @property
    def names(self) -> list[str]:
        """The names of what it becomes."""
        own = [self.name] if self.kind != "category" else [f"{self.name}={word}" for word in self.categories]
        own += [f"{self.name}=other"] if self.other else []
        return own + ([f"{self.name}=missing"] if self.missing else [])

    def apply(self, column: Column) -> list[Floats]:
        """Encode a column of the same kind, [N] for each name."""
        gaps = column.missing
        if self.kind == "category":
            found = [(column.values == word).astype(np.float64) for word in self.categories]
            if self.other:
                known = np.sum(found, axis=0, dtype=np.float64)
                found.append(np.where(gaps, 0.0, 1.0 - known))
        else:
            found = [np.where(gaps, self.fill, column.values.astype(np.float64)) - self.start]
        return found + ([gaps.astype(np.float64)] if self.missing else [])


def warn_of_words(column: Column) -> None:
    """Warn of a column of words that looks like ids or free text."""
    if column.kind != "category":
        return
    present = column.values[~column.missing].tolist()
    name, different, count = column.name, len(set(present)), len(present)
    if different > MAX_CATEGORIES and different > MOSTLY_DIFFERENT * count:
        warnings.warn(
            f"Column {name!r} has {different} different values in {count} items, which looks like ids or free text. "
            f"The {MAX_CATEGORIES} most frequent ones become columns, the rest shares one. Leave it out if it is no "
            "category.",
            stacklevel=3,
        )


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become features; fitted to training items, and applied to all others."""

    columns: tuple[ColumnEncoding, ...]
    named: bool = True  # whether the columns had names; else they are matched by position

    @classmethod
    def fit(cls, columns: Sequence[Column], named: bool = True) -> Self:
        """Choose from the values of training items."""
        found = cls(tuple(map(ColumnEncoding.fit, columns)), named)
        twice = [repr(name) for name, count in Counter(found.names).items() if count > 1]
        if twice:
            raise DataError(
                f"X: columns would have the same name once encoded:{listing(twice, len(twice))}\nRename one."
            )
        return found

    @cached_property
    def names(self) -> Names:
        """The names of the features."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def column_names(self) -> Names:
        """The names of the columns that are encoded."""
        return tuple(column.name for column in self.columns)

    def apply(self, columns: Sequence[Column]) -> Floats:
        """Encode columns in the order of training: features [N, D]."""
        parts = [
            part for own, column in zip(self.columns, self._matched(columns), strict=True) for part in own.apply(column)
        ]
        return np.stack(parts, axis=1) if parts else np.empty((0, 0))

    def _matched(self, columns: Sequence[Column]) -> list[Column]:
        """Columns as the kinds of training; those that are not are refused by name."""
        found, wrong = [], []
        for own, column in zip(self.columns, columns, strict=True):
            taken = _as_kind(column, own.kind)
            if taken is None:
                wrong.append(f"{own.name!r}: {column.kind} here, {own.kind} in training")
            else:
                found.append(taken)
        if wrong:
            raise DataError(
                f"X: columns of another kind than in training: {len(wrong)}{listing(wrong, len(wrong))}\n"
                "Give them as in training, or train anew."
            )
        return found

    # ---------------------------------------------------------------- as JSON

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned."""
        columns = (ColumnEncoding(**{**one, "categories": tuple(one["categories"])}) for one in said["columns"])
        return cls(tuple(columns), bool(said["named"]))

    def digest(self) -> str:
        """SHA-256 of all that it does."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()


def is_encoding(value: Any, width: int) -> bool:
    """Tell whether a JSON value is what `Encoding.to_json` returns for `width` features."""
    try:
        made = Encoding.from_json(value)
        plain = made.to_json() == value and len(made.names) == width == len(set(made.names))
        types = all(
            type(one.name) is str
            and one.kind in get_args(ColumnKind)
            and type(one.missing) is type(one.other) is bool
            and all(type(number) in (int, float) and abs(number) < np.inf for number in (one.fill, one.start))
            and all(type(word) is str for word in one.categories)
            for one in made.columns
        )
    except (TypeError, KeyError, ValueError, AttributeError):
        return False
    return plain and types


def _as_kind(column: Column, kind: ColumnKind) -> Column | None:
    """A column as another kind, where that is no guess: blank columns are of any kind, whole numbers can be names."""
    if column.kind == kind:
        return column
    gaps = column.missing
    if gaps.all():
        blank: Values = np.full(len(gaps), None, object) if kind == "category" else np.full(len(gaps), np.nan)
        return Column(column.name, kind, blank)
    if kind == "category" and column.kind == "number":
        words = [None if gap else f"{value:.15g}" for gap, value in zip(gaps, column.values, strict=True)]
        return Column(column.name, kind, np.array(words, object))
    return None
