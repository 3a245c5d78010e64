"""Parse arrays, sparse matrices, tables and lists of entries into ternary matrices; refuse anything ambiguous."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.errors import LabelError, listing
from partly.labels.matrix import Codes, Matrix, Ternary, gather_entries, scatter
from partly.labels.names import Names, check_ids, check_names, is_missing
from partly.labels.spellings import SPELLINGS, parse_spelling

Encoding = Mapping[int, int]  # the caller's number -> +1 yes, -1 no, 0 unknown

CONSTRUCTORS = (
    "Say what the numbers mean by the constructor: Labels.from_nan (1 yes, 0 no, NaN unknown), "
    "Labels.from_ternary (+1 yes, -1 no, 0 unknown), Labels.from_positives (1 yes, 0 unknown), "
    "Labels.from_full (1 yes, 0 no, nothing unknown), Labels.from_entries (long form) or Labels.from_tags (lists of "
    "label names)."
)


def read(
    a: Any,
    encoding: Encoding,
    where: str,
    names: Iterable[object] | None,
    ids: Iterable[object] | None,
    missing: bool = False,
    spellings: Iterable[object] = (),
) -> tuple[Matrix, Names, Names | None]:
    """Return the ternary matrix, names and ids of the input.

    missing : NaN, None, NA and the caller's `spellings` are unknown.
    """
    values, shape, input_names, input_ids = _open(a, where)
    if spellings:
        values = _blank_spellings(values, list(spellings), where)
    names, ids = input_names if names is None else names, input_ids if ids is None else ids
    names = check_names(range(shape[1]) if names is None else names, shape[1])
    ids = None if ids is None else check_ids(ids, shape[0])
    z, wrong = _parse_values(values, shape, encoding, missing, where, names)
    if len(wrong) == 0:
        return z, names, ids
    answers = {1: "yes", -1: "no", 0: "unknown"}
    takes = ", ".join(f"{number} {answers[entry]}" for number, entry in encoding.items())
    columns = isinstance(values, list)
    wrong_values = [array(values[j], where)[i] if columns else values[i, j] for i, j in wrong]
    places = (
        f"{_place(i, j, names, ids)}: {_format_value(value)}" for (i, j), value in zip(wrong, wrong_values, strict=True)
    )
    raise LabelError(
        f"{where} takes {takes}{', NaN unknown' if missing else ''}; {len(wrong)} entries are something else"
        + listing(places, len(wrong))
        + f"\n{_explain(wrong_values) if missing else ''}{CONSTRUCTORS}"
    )


def one_label(y: Any) -> Any:
    """Turn a vector into a matrix with one column; return anything else unchanged."""
    if hasattr(y, "to_frame"):
        return y.to_frame()
    if isinstance(y, list | tuple) and y and all(np.ndim(value) == 0 for value in y):
        return [[value] for value in y]
    return y.reshape(-1, 1) if getattr(y, "ndim", 2) == 1 and hasattr(y, "reshape") else y


def _explain(wrong: list[Any]) -> str:
    """Explain wrong values that are all of one kind, and suggest what to do."""
    if all(isinstance(value, str) for value in wrong):
        return f"Texts may be {SPELLINGS}. Others that mean unknown: Labels.from_nan(..., missing=[{wrong[0]!r}]). "
    plain = [float(value) if isinstance(value, int | float | np.number) else np.inf for value in wrong]
    if all(0 < value < 1 for value in plain):
        return (
            "Numbers p between 0 and 1 are soft labels. Say what is nearer, and how much it counts: "
            "fit(X, numpy.where(p > 0.5, 1, numpy.where(p < 0.5, 0, numpy.nan)), "
            "sample_weight=numpy.nan_to_num(abs(2 * p - 1))); "
            "or PerLabel(...).fit(X, Y, pseudo_labels=p), which takes 0.7 for 0.7 of a yes and 0.3 of a no. "
        )
    if all(value >= 2 and (value.is_integer() or value == np.inf) for value in plain):
        return (
            "Only binary classification is supported, label by label: make a column of each class. (2 may come from "
            "scikit-learn's cross_val_predict, which numbers unknown entries as a class: take that of "
            "partly.model_selection.) "
        )
    if not all(value.is_integer() or value == np.inf for value in plain):
        return "This looks like a continuous target, and labels are yes or no. "
    return ""


def _parse_values(
    values: Any, shape: tuple[int, int], encoding: Encoding, missing: bool, where: str, names: Names
) -> tuple[Matrix, npt.NDArray[Any]]:
    """Return the ternary matrix, and the places [K, 2] of invalid values."""
    if isinstance(values, sp.csr_array):
        data, bad = ternary(values.data, encoding, missing)
        at = np.flatnonzero(bad)
        rows = np.searchsorted(values.indptr, at, side="right") - 1
        return scatter(values, data, encoding[0]), np.column_stack([rows, values.indices[at]])
    if not isinstance(values, list):
        z, bad = ternary(values, encoding, missing)
        return z, np.argwhere(bad)
    z = np.empty(shape, np.int8)
    wrong = [np.empty((0, 2), np.int64)]
    for j, column in enumerate(values):
        z[:, j], bad = ternary(array(column, f"{where}, label {names[j]!r}"), encoding, missing)
        rows = np.flatnonzero(bad)
        wrong.append(np.column_stack([rows, np.full_like(rows, j)]))
    return z, np.concatenate(wrong)


def read_entries(
    rows: Codes,
    columns: Codes,
    values: Any,
    shape: tuple[int, int],
    names: Names,
    ids: Names | None,
) -> Matrix:
    """Return the ternary matrix of entries, 1 yes and 0 no; dense if that is small or takes no more memory."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise LabelError(
            f"Labels.from_entries: values must be a list with 1 (yes) or 0 (no) for each entry; got {values!r:.60}. "
            "If all entries are yes: values=[1] * len(items)."
        )
    values = array(values if hasattr(values, "__len__") else list(values), "Labels.from_entries")
    if not values.shape == rows.shape == columns.shape:
        raise LabelError(
            f"Labels.from_entries: {len(rows)} items, {len(columns)} labels and {len(values)} values; "
            "all three must be equally long."
        )
    z, bad = ternary(values, {1: 1, 0: -1}, missing=False)
    wrong = np.flatnonzero(bad)
    if len(wrong):
        places = (f"entry {k} ({_place(rows[k], columns[k], names, ids)}): {_format_value(values[k])}" for k in wrong)
        raise LabelError(
            f"Labels.from_entries: {len(wrong)} values are neither 1 (yes) nor 0 (no)"
            + listing(places, len(wrong))
            + "\nLeave out the entries that nobody checked: what is not listed is unknown."
        )
    matrix, clash = gather_entries(z, rows, columns, shape)
    if len(clash[0]):
        raise LabelError(
            f"Labels.from_entries: {len(clash[0])} entries are said to be both yes and no"
            + listing(map(_place, *clash, repeat(names), repeat(ids)), len(clash[0]))
        )
    return matrix


def read_changes(
    rows: npt.ArrayLike, columns: npt.ArrayLike, z: npt.ArrayLike, shape: tuple[int, int]
) -> tuple[Codes, Codes, Ternary]:
    """Return rows, columns and new values [K] of the entries to change, each once."""
    where = [np.atleast_1d(np.asarray(part)) for part in (rows, columns, z)]
    if (
        len({part.shape for part in where}) > 1
        or where[0].ndim > 1
        or any(p.dtype.kind not in "iu" for p in where if p.size)
    ):
        raise LabelError(
            "Labels.with_entries takes rows, columns and z as whole numbers, equally many of each; got "
            + ", ".join(f"{part.dtype} {list(part.shape)}" for part in where)
        )
    row, column, value = (part.astype(np.int64, copy=False) for part in where)
    for what, part, minimum, end in (("row", row, 0, shape[0]), ("column", column, 0, shape[1]), ("z", value, -1, 2)):
        wrong = np.flatnonzero((part < minimum) | (part >= end))
        if len(wrong):
            places = (f"entry {k}: {what} {part[k]}" for k in wrong)
            raise LabelError(
                f"Labels.with_entries: {len(wrong)} of the {what}s are not from {minimum} to {end - 1}"
                + listing(places, len(wrong))
            )
    flat, first = np.unique(row * shape[1] + column, return_index=True)
    if len(flat) < len(row):
        clash = np.flatnonzero(value != value[first[np.searchsorted(flat, row * shape[1] + column)]])
        if len(clash):
            places = (f"row {row[k]}, column {column[k]}" for k in clash)
            raise LabelError(
                f"Labels.with_entries: {len(clash)} entries are given two values" + listing(places, len(clash))
            )
    return row[first], column[first], value[first].astype(np.int8)


def ternary(values: npt.NDArray[Any], encoding: Encoding, missing: bool) -> tuple[Ternary, npt.NDArray[np.bool_]]:
    """Return the ternary values and a mask of invalid ones, both of the shape of `values`."""
    if values.dtype.kind == "O":
        number_of: dict[int, float] = {entry: number for number, entry in encoding.items() if entry}
        number_of |= {0: np.nan} if missing else {}
        values = np.array([_number(value, number_of) for value in values.flat], float).reshape(values.shape)
    z = np.zeros(values.shape, np.int8)
    bad = ~np.isnan(values) if missing and values.dtype.kind == "f" else np.ones(values.shape, bool)
    for number, entry in encoding.items():
        matches = values == number
        z[matches] = entry
        bad &= ~matches
    return z, bad


def array(a: Any, where: str) -> npt.NDArray[Any]:
    """Convert to a NumPy array of numbers with NaN for missing ones, or of objects if there are other values."""
    try:
        if isinstance(a, np.ma.MaskedArray):
            values = np.array(a.data, dtype=float if a.dtype.kind in "biuf" else object)
            values[np.ma.getmaskarray(a)] = np.nan
        elif hasattr(a, "iloc") and not isinstance(a.dtype, np.dtype) and a.dtype.kind in "biuf":
            values = a.to_numpy(dtype=float, na_value=np.nan)  # pandas' nullable numbers
        elif hasattr(a, "to_numpy") and hasattr(a, "type"):  # Arrow
            a = a.cast("int8") if str(a.type) == "bool" else a
            encoded = str(a.type).startswith("dictionary")  # `to_numpy` would turn its nulls into text
            values = np.array(a.to_pylist(), object) if encoded else a.to_numpy(zero_copy_only=False)
        else:
            values = np.asarray(a.detach().cpu() if hasattr(a, "detach") else a)
    except (TypeError, ValueError, RuntimeError) as error:
        raise LabelError(f"{where}: a {type(a).__name__} that cannot be read as numbers: {error}") from None
    if values.dtype.kind in "biufO":
        return values
    if values.dtype.kind in "UST":
        return values.astype(object)
    raise LabelError(f"{where}: labels must be numbers; got dtype {values.dtype}.")


def _place(i: int, j: int, names: Names, ids: Names | None) -> str:
    return f"item {repr(ids[i]) if ids else i}, label {names[j]!r}"


def _format_value(value: Any) -> str:
    if is_missing(value):
        return "NaN (missing)"
    return repr(value.item() if isinstance(value, np.generic) else value).removesuffix(".0")[:60]


def _open(a: Any, where: str) -> tuple[Any, tuple[int, int], Iterable[object] | None, Iterable[object] | None]:
    """Return values (an array, a CSR array, or a list of the columns of a table), shape, names and ids."""
    if sp.issparse(a):
        values: Any = _without_duplicates(a, where)
        return values, values.shape, None, None
    if hasattr(a, "iloc") and hasattr(a, "columns"):  # pandas
        columns = [a.iloc[:, j] for j in range(a.shape[1])]
        return columns, a.shape, list(a.columns), index_of(a)
    if hasattr(a, "__arrow_c_stream__") and hasattr(a, "columns"):  # Arrow, and what speaks its protocol
        import pyarrow as pa

        table = pa.table(a)
        return table.columns, table.shape, table.column_names, None
    values = array(a, where)
    if values.ndim != 2:
        raise LabelError(
            f"{where}: labels must be a matrix, items x labels; got {values.ndim} dimensions, shape {values.shape}."
        )
    return values, values.shape, None, None


def index_of(table: Any) -> list[object] | None:
    """Return the index of a pandas table or column; None if there is none or it is a plain range."""
    if not (hasattr(table, "iloc") and hasattr(table, "index")):
        return None
    index = table.index
    counted = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    return None if counted else list(index)


def _without_duplicates(a: Any, where: str) -> Any:
    """Return a CSR array; refuse duplicates, which SciPy would add up: a yes and a no would become unknown."""
    if a.ndim != 2 or a.dtype.kind not in "biuf":
        raise LabelError(
            f"{where}: labels must be a matrix of numbers, items x labels; "
            f"got a sparse one of shape {a.shape}, dtype {a.dtype}."
        )
    values = sp.csr_array(a)
    if not values.has_canonical_format:
        values = values.copy()  # it may share the caller's memory
        values.sum_duplicates()
    twice = a.nnz - values.nnz
    if twice > 0 and a.format in ("coo", "csr", "csc"):
        raise LabelError(
            f"{where}: the sparse matrix holds {twice} values for entries that have one already. "
            "Call its sum_duplicates() first if adding them up is right."
        )
    return values


def _blank_spellings(values: Any, spellings: list[object], where: str) -> Any:
    """Replace the caller's spellings of unknown by NaN."""
    texts = {str(spelling).strip().lower() for spelling in spellings}
    numbers_of = {float(word) for word in texts if _is_number(word)}

    def blank(part: Any) -> Any:
        cells = array(part, where)
        if cells.dtype.kind != "O":
            return np.where(np.isin(cells, list(numbers_of)), np.nan, cells)
        cells = cells.copy()
        cells[np.reshape([is_spelling(cell) for cell in cells.flat], cells.shape)] = np.nan
        return cells

    def is_spelling(cell: Any) -> bool:
        return str(cell).strip().lower() in texts or (_is_number(cell) and float(cell) in numbers_of)

    if isinstance(values, list):
        return [blank(column) for column in values]
    if isinstance(values, sp.csr_array):
        return sp.csr_array((blank(values.data), values.indices, values.indptr), shape=values.shape)
    return blank(values)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _number(value: Any, number_of: Mapping[int, float]) -> float:
    """Convert an object to a number: NaN if it is missing, infinity if it is invalid.

    Words such as yes and NA become the number with the same meaning for the constructor.
    """
    if is_missing(value):
        return np.nan
    if isinstance(value, str):
        word = value.strip()
        if word in ("1", "1.0", "0", "0.0", "-1", "-1.0"):
            return float(word)
        value_of_word = parse_spelling(word)
        return np.inf if value_of_word is None else float(number_of.get(value_of_word, np.inf))
    real = isinstance(value, numbers.Real | np.bool_)
    return float(value) if real and -1 <= value <= 1 else np.inf
