"""Labels: an immutable matrix, items x labels, in which every entry is yes, no or unknown.

Inside it is int8, +1 yes, -1 no, 0 unknown, dense or sparse (CSR). What the numbers of the caller mean is
never guessed: the constructor says it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.errors import LabelError, listing

Ternary = npt.NDArray[np.int8]
Matrix = Any  # a boolean or int8 matrix: an ndarray, or a CSR array where the labels are sparse

CONSTRUCTORS = (
    "Say what the numbers mean by the constructor: Labels.from_nan (1 yes, 0 no, NaN unknown), "
    "Labels.from_ternary (+1 yes, -1 no, 0 unknown), Labels.from_positives (1 yes, 0 unknown), "
    "Labels.from_full (1 yes, 0 no, nothing unknown) or Labels.from_entries (long form)."
)
DENSE_BYTES = 1 << 24  # from_entries: up to this size a dense matrix is simply faster


class Labels:
    """Three-valued labels of N items x L labels, with the items' ids and the labels' names.

    Made by one of the constructors `from_nan`, `from_ternary`, `from_positives`, `from_full`,
    `from_entries`; never changed afterwards.
    """

    __slots__ = ("_ids", "_z", "names")

    names: tuple[str, ...]
    _z: Matrix
    _ids: tuple[str, ...] | None

    def __init__(self, *_: object, **__: object) -> None:
        raise LabelError(f"Labels(...) would have to guess what 0 and -1 mean. {CONSTRUCTORS}")

    # ---------------------------------------------------------------- constructors

    @classmethod
    def from_nan(
        cls, a: Any, *, names: Iterable[object] | None = None, ids: Iterable[object] | None = None
    ) -> Labels:
        """1 yes, 0 no, NaN (or None, masked, NA, null) unknown."""
        return cls._from_values(a, {1: 1, 0: -1}, "from_nan", names, ids, nan_is_unknown=True)

    @classmethod
    def from_ternary(
        cls, a: Any, *, names: Iterable[object] | None = None, ids: Iterable[object] | None = None
    ) -> Labels:
        """+1 yes, -1 no, 0 unknown. A SciPy sparse matrix stays sparse."""
        return cls._from_values(a, {1: 1, -1: -1, 0: 0}, "from_ternary", names, ids)

    @classmethod
    def from_positives(
        cls, a: Any, *, names: Iterable[object] | None = None, ids: Iterable[object] | None = None
    ) -> Labels:
        """1 yes, 0 unknown. A SciPy sparse matrix stays sparse."""
        return cls._from_values(a, {1: 1, 0: 0}, "from_positives", names, ids)

    @classmethod
    def from_full(
        cls, a: Any, *, names: Iterable[object] | None = None, ids: Iterable[object] | None = None
    ) -> Labels:
        """1 yes, 0 no, nothing unknown."""
        return cls._from_values(a, {1: 1, 0: -1}, "from_full", names, ids)

    @classmethod
    def from_entries(
        cls,
        items: Iterable[object],
        labels: Iterable[object],
        values: Iterable[object],
        *,
        names: Iterable[object] | None = None,
        ids: Iterable[object] | None = None,
    ) -> Labels:
        """Long form: one (item, label, 1 or 0) each; what is not listed is unknown.

        `names` and `ids` fix the order and may hold labels and items of which nothing is known; without
        them the order is that of first appearance. Saying the same twice is allowed, a contradiction not.
        """
        row_names, rows = _coded(items, ids)
        column_names, columns = _coded(labels, names)
        said = np.asarray(list(values), dtype=float)
        if not len(rows) == len(columns) == len(said):
            raise LabelError(
                f"from_entries: {len(rows)} items, {len(columns)} labels and {len(said)} values; "
                "all three must be equally long."
            )
        for codes, what, known in ((rows, "item", row_names), (columns, "label", column_names)):
            if len(codes) and codes.min() < 0:
                lost = np.flatnonzero(codes < 0)
                raise LabelError(
                    f"from_entries: {len(lost)} entries name an {what} that is not among the {len(known)} given"
                    + listing((f"entry {i}" for i in lost), len(lost))
                )
        return cls._from_codes(rows, columns, said, column_names, row_names)

    @classmethod
    def _from_codes(
        cls,
        rows: npt.NDArray[Any],
        columns: npt.NDArray[Any],
        values: npt.NDArray[Any],
        names: Sequence[str],
        ids: Sequence[str] | None,
        items: int | None = None,
    ) -> Labels:
        """Long form whose items and labels are already numbers."""
        count = len(ids) if ids is not None else int(items or 0)

        def place(i: int) -> str:
            item = ids[rows[i]] if ids is not None else str(rows[i])
            return f"entry {i} (item {item!r}, label {names[columns[i]]!r}): {values[i]:g}"

        bad = np.flatnonzero((values != 1) & (values != 0))
        if len(bad):
            raise LabelError(
                f"from_entries: {len(bad)} values are neither 1 (yes) nor 0 (no)"
                + listing((place(i) for i in bad), len(bad))
                + "\nLeave out the entries that nobody checked: what is not listed is unknown."
            )
        z = np.where(values == 1, 1, -1).astype(np.int8)
        order = np.lexsort((columns, rows))
        rows, columns, z = rows[order], columns[order], z[order]
        again = np.zeros(len(z), bool)
        again[1:] = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
        clash = np.flatnonzero(again[1:] & (z[1:] != z[:-1])) + 1 if len(z) else np.empty(0, int)
        if len(clash):
            values = (z == 1).astype(float)
            said_twice = (place(i).rsplit(": ", 1)[0].split(" ", 2)[2] for i in clash)
            raise LabelError(
                f"from_entries: {len(clash)} entries are said to be both yes and no"
                + listing(said_twice, len(clash))
            )
        rows, columns, z = rows[~again], columns[~again], z[~again]
        shape = (count, len(names))
        if shape[0] * shape[1] <= max(DENSE_BYTES, 5 * len(z)):
            dense = np.zeros(shape, np.int8)
            dense[rows, columns] = z
            return cls._of(dense, names, ids)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
        return cls._of(sp.csr_array((z, columns.astype(np.int32), indptr), shape=shape), names, ids)

    @classmethod
    def _from_values(
        cls,
        a: Any,
        meaning: dict[int, int],
        name: str,
        names: Iterable[object] | None,
        ids: Iterable[object] | None,
        nan_is_unknown: bool = False,
    ) -> Labels:
        values, table_names, table_ids = _opened(a, name)
        names = table_names if names is None else names
        ids = table_ids if ids is None else ids
        sparse = sp.issparse(values)
        if sparse and meaning[0] == 0:
            bad = ~np.isin(values.data, list(meaning))
            if not bad.any():
                z = sp.csr_array(values.astype(np.int8, copy=True))
                z.eliminate_zeros()
                return cls._of(z, names, ids)
            values = values.tocoo()
            wrong = [(values.coords[0][i], values.coords[1][i], values.data[i]) for i in np.flatnonzero(bad)]
        else:
            values = values.toarray() if sparse else values
            z = np.zeros(values.shape, np.int8)
            fine = np.isnan(values) if nan_is_unknown and values.dtype.kind == "f" else np.zeros(values.shape, bool)
            for number, entry in meaning.items():
                here = values == number
                z[here] = entry
                fine |= here
            if fine.all():
                return cls._of(z, names, ids)
            wrong = [(i, j, values[i, j]) for i, j in zip(*np.nonzero(~fine), strict=True)]
        raise LabelError(_wrong_values(wrong, name, meaning, nan_is_unknown, names, ids))

    @classmethod
    def _of(cls, z: Matrix, names: Iterable[object] | None, ids: Iterable[object] | None) -> Labels:
        """Wrap a ternary matrix that nobody else holds."""
        self = object.__new__(cls)
        object.__setattr__(self, "_z", _frozen(z))
        object.__setattr__(self, "names", _checked_names(names, z.shape[1]))
        object.__setattr__(self, "_ids", _checked_ids(ids, z.shape[0]))
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Labels are immutable; make new ones instead of setting {name!r}.")

    # ---------------------------------------------------------------- what is there

    @property
    def shape(self) -> tuple[int, int]:
        return (int(self._z.shape[0]), int(self._z.shape[1]))

    @property
    def ids(self) -> tuple[str, ...]:
        """The items' ids; their positions, as text, where none were given."""
        return self._ids if self._ids is not None else tuple(map(str, range(self.shape[0])))

    @property
    def sparse(self) -> bool:
        return bool(sp.issparse(self._z))

    @property
    def known(self) -> Matrix:
        return self._z != 0

    @property
    def positive(self) -> Matrix:
        return self._z == 1

    @property
    def negative(self) -> Matrix:
        return self._z == -1

    def ternary(self) -> Matrix:
        """The int8 matrix itself, read-only: an array, or a CSR array where the labels are sparse."""
        return self._z

    def rows(self, index: npt.ArrayLike | slice) -> Ternary:
        """Some items, dense: [len(index), L]."""
        part = self._z[index]
        return np.asarray(part.toarray() if self.sparse else part, dtype=np.int8)

    def to_nan(self) -> npt.NDArray[np.float32]:
        """1 yes, 0 no, NaN unknown; always dense."""
        z = self._z.toarray() if self.sparse else self._z
        return np.where(z == 0, np.float32("nan"), (z == 1).astype(np.float32))

    def entries(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int8]]:
        """What is known, in reading order: row, column, 1 or 0."""
        z = self._z.tocoo() if self.sparse else sp.coo_array(self._z)
        order = np.lexsort((z.coords[1], z.coords[0]))
        row, column = (z.coords[k][order].astype(np.int64) for k in (0, 1))
        return row, column, (z.data[order] == 1).astype(np.int8)

    def counts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Known yes and known no of each label: two arrays [L]."""
        yes, no = (np.asarray(part.sum(axis=0, dtype=np.int64)).ravel() for part in (self.positive, self.negative))
        return yes, no

    def known_per_item(self) -> npt.NDArray[np.int64]:
        return np.asarray(self.known.sum(axis=1, dtype=np.int64)).ravel()

    def summary(self) -> dict[str, Any]:
        """How much is known, and where nothing is."""
        yes, no = self.counts()
        per_item = self.known_per_item()
        size = self.shape[0] * self.shape[1]
        known = int(yes.sum() + no.sum())
        return {
            "items": self.shape[0],
            "labels": self.shape[1],
            "yes": int(yes.sum()),
            "no": int(no.sum()),
            "unknown": size - known,
            "known_share": known / size if size else 0.0,
            "items_with_nothing_known": int((per_item == 0).sum()),
            "items_wholly_known": int((per_item == self.shape[1]).sum()),
            "labels_without_yes": [self.names[j] for j in np.flatnonzero(yes == 0)],
            "labels_without_no": [self.names[j] for j in np.flatnonzero(no == 0)],
        }

    def digest(self) -> str:
        """SHA-256 of what is known of which item and label; the same for dense and sparse."""
        row, column, value = self.entries()
        sha = hashlib.sha256(f"{self.shape}".encode())
        for text in (*self.names, *(self._ids or ())):
            sha.update(f"{len(text)}:{text}".encode())
        for part, dtype in ((row, "<i8"), (column, "<i8"), (value, "i1")):
            sha.update(np.ascontiguousarray(part, dtype=dtype).tobytes())
        return sha.hexdigest()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: npt.ArrayLike | slice) -> Labels:
        """Some items: a slice, positions or a boolean mask."""
        if not isinstance(index, slice):
            index = np.asarray(index)
            index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64).ravel()
        ids = None if self._ids is None else [self._ids[i] for i in np.arange(len(self))[index]]
        return Labels._of(self._z[index].copy(), self.names, ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        same_words = self.names == other.names and self.shape == other.shape and self.ids == other.ids
        return same_words and all(map(np.array_equal, self.entries(), other.entries()))

    def __hash__(self) -> int:
        return int(self.digest()[:15], 16)

    def __repr__(self) -> str:
        s = self.summary()
        return (
            f"Labels({s['items']} items x {s['labels']} labels: {s['yes']} yes, {s['no']} no, "
            f"{1 - s['known_share']:.1%} unknown{', sparse' if self.sparse else ''})"
        )


def as_labels(y: Any) -> Labels:
    """The door of `fit` and of the metrics: Labels as they are, or an array in scikit-learn's own sense.

    That is 1 yes, 0 no, and NaN unknown. Anything else is refused, -1 and -100 above all.
    """
    if isinstance(y, Labels):
        return y
    values = _opened(y, "y")[0]
    found = np.unique(values.data if sp.issparse(values) else values)
    wrong = [v for v in found if not (v in (0, 1) or np.isnan(v))]
    if wrong:
        shown = ", ".join(f"{v:g}" for v in wrong[:5])
        raise LabelError(f"y holds {shown}. An array may hold 1 (yes), 0 (no) and NaN (unknown). {CONSTRUCTORS}")
    return Labels.from_nan(y)


# -------------------------------------------------------------------- checks at the door


def _opened(a: Any, where: str) -> tuple[Any, Iterable[object] | None, Iterable[object] | None]:
    """(values, names, ids) of an array, a sparse matrix, a pandas or an Arrow table."""
    names = ids = None
    if sp.issparse(a):
        values: Any = sp.csr_array(a)
    elif hasattr(a, "column_names") and hasattr(a, "to_pylist"):  # an Arrow table
        names = list(a.column_names)
        columns = [c.cast("float32").to_numpy() for c in a.columns]
        values = np.stack(columns, axis=1) if columns else np.empty((a.num_rows, 0))
    elif hasattr(a, "columns") and hasattr(a, "to_numpy"):  # a pandas table
        names = list(a.columns)
        ids = None if type(a.index).__name__ == "RangeIndex" else list(a.index)
        values = a.to_numpy(dtype=np.float64, na_value=np.nan)
    elif isinstance(a, np.ma.MaskedArray):
        values = a.astype(np.float64).filled(np.nan)
    else:
        values = np.asarray(a)
    if values.ndim != 2:
        raise LabelError(f"{where}: labels must be a matrix, items x labels; got {values.ndim} dimensions {values.shape}.")
    if values.dtype.kind not in "biuf":
        raise LabelError(
            f"{where}: labels must be numbers; got dtype {values.dtype}. "
            "For text or None first make 1, 0 and NaN of it, or use Labels.from_entries."
        )
    return values, names, ids


def _wrong_values(
    wrong: list[tuple[int, int, Any]],
    name: str,
    meaning: dict[int, int],
    nan_is_unknown: bool,
    names: Iterable[object] | None,
    ids: Iterable[object] | None,
) -> str:
    names, ids = (None if w is None else list(w) for w in (names, ids))
    words = {1: "yes", -1: "no", 0: "unknown"}
    takes = ", ".join(f"{number:g} {words[entry]}" for number, entry in meaning.items())
    takes += ", NaN unknown" if nan_is_unknown else ""
    places = (
        f"item {ids[i] if ids else i}, label {names[j] if names else j}: {float(v):g}" for i, j, v in wrong
    )
    return (
        f"Labels.{name} takes {takes}; {len(wrong)} entries are something else"
        + listing(places, len(wrong))
        + f"\n{CONSTRUCTORS}"
    )


def _checked_names(names: Iterable[object] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(map(str, range(count)))
    result = tuple(map(str, names))
    if len(result) != count:
        raise LabelError(f"{len(result)} names for {count} labels.")
    empty = [j for j, name in enumerate(result) if not name.strip()]
    if empty:
        raise LabelError(f"The name of label {empty[0]} is empty. Give every label a name.")
    folded = [unicodedata.normalize("NFKC", name).strip().casefold() for name in result]
    first = {key: j for j, key in reversed(list(enumerate(folded)))}
    twice = [(result[first[key]], result[j]) for j, key in enumerate(folded) if first[key] != j]
    if twice:
        pairs = (f"{a!r} and {b!r}" for a, b in twice)
        raise LabelError(
            "Label names must differ by more than case, spaces or Unicode form; these are the same"
            + listing(pairs, len(twice))
        )
    return result


def _checked_ids(ids: Iterable[object] | None, count: int) -> tuple[str, ...] | None:
    if ids is None:
        return None
    result = tuple(map(str, ids))
    if len(result) != count:
        raise LabelError(f"{len(result)} ids for {count} items.")
    if len(set(result)) != count:
        twice = [repr(key) for key, n in Counter(result).items() if n > 1]
        raise LabelError(f"{len(twice)} item ids occur more than once" + listing(twice, len(twice)))
    return result


def _coded(words: Iterable[object], order: Iterable[object] | None) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Words as positions in `order` (-1 where absent), or in order of first appearance."""
    positions: dict[str, int] = {} if order is None else {str(word): i for i, word in enumerate(order)}
    if order is None:
        codes = [positions.setdefault(str(word), len(positions)) for word in words]
    else:
        codes = [positions.get(str(word), -1) for word in words]
    return list(positions), np.asarray(codes, dtype=np.int64)


def _frozen(z: Matrix) -> Matrix:
    if sp.issparse(z):
        z.sort_indices()
        z.indices = z.indices.astype(np.int32, copy=False)  # half the memory; L never needs more
        z.indptr = z.indptr.astype(np.int32 if z.nnz < 2**31 else np.int64, copy=False)
    for part in (z.data, z.indices, z.indptr) if sp.issparse(z) else (z,):
        part.setflags(write=False)
    return z
