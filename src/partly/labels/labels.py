"""Labels: an immutable matrix of items x labels whose entries are yes, no or unknown.

It is stored as int8, +1 yes, -1 no, 0 unknown, dense or sparse (CSR). The constructor defines the meaning of the
caller's numbers; nothing is guessed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.errors import LabelError
from partly.labels import parsing, tag_rows
from partly.labels.matrix import Matrix, Ternary, blocks, dense_rows, freeze, map_blocks, replace_entries, resolve_index
from partly.labels.names import Names, check_ids, check_names, encode_words
from partly.labels.parsing import CONSTRUCTORS

if TYPE_CHECKING:
    from partly.labels.column import Column

Index = npt.ArrayLike | slice
Words = Iterable[object]  # names or ids of the caller


class Labels:
    """Three-valued labels of N items x L labels, with the items' ids and the labels' names.

    Use one of the constructors, with a NumPy array (or lists, a masked array, a torch tensor), a SciPy sparse matrix,
    or a pandas or Arrow table. Labels are immutable. Without `names` and `ids`, those of the table are used, or
    positions. A sparse matrix stays sparse if 0 means unknown to the constructor.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> labels = partly.Labels.from_nan([[1, 0, np.nan], [np.nan, 1, 0]], names=["cat", "dog", "boat"])
    >>> labels
    Labels(2 items x 3 labels: 2 yes, 2 no, 33.3% unknown)
    >>> labels.ternary()
    array([[ 1, -1,  0],
           [ 0,  1, -1]], dtype=int8)
    >>> labels.summary()["unknown"]
    2
    """

    __slots__ = ("_ids", "_z", "names")

    names: Names
    _z: Matrix
    _ids: Names | None

    def __init__(self, *_: object, **__: object) -> None:
        raise LabelError(f"Labels(...) would have to guess what 0 and -1 mean. {CONSTRUCTORS}")

    # ---------------------------------------------------------------- constructors

    @classmethod
    def from_nan(
        cls, a: Any, *, names: Words | None = None, ids: Words | None = None, missing: Iterable[object] = ()
    ) -> Labels:
        """Build labels from 1 (yes), 0 (no) and NaN, None, NA, null or masked (unknown).

        Texts are read as in files: "1", "yes", "y", "true"; "0", "no", "n", "false"; and "", "NA", "?" for unknown, in
        any case. Other texts are refused.

        Parameters
        ----------
        a : array or table of [N, L]
            1, 0 or NaN.
        names : sequence, optional
            Names of the labels.
        ids : sequence, optional
            Ids of the items.
        missing : sequence, optional
            Further values that mean unknown, such as [-1] or ["not checked"].

        Returns
        -------
        Labels
            Dense, or sparse where the input is and its 0 is unknown.

        Examples
        --------
        >>> import partly
        >>> partly.Labels.from_nan([[1, None], [0, 1]]).ternary()
        array([[ 1,  0],
               [-1,  1]], dtype=int8)
        """
        if isinstance(missing, str | bytes):
            missing = [missing]
        return cls._of(*parsing.read(a, {1: 1, 0: -1}, "Labels.from_nan", names, ids, True, list(missing)))

    @classmethod
    def from_ternary(cls, a: Any, *, names: Words | None = None, ids: Words | None = None) -> Labels:
        """Build labels from +1 (yes), -1 (no) and 0 (unknown).

        Parameters
        ----------
        a : array or table of [N, L]
            +1, -1 or 0.
        names : sequence, optional
            Names of the labels.
        ids : sequence, optional
            Ids of the items.

        Returns
        -------
        Labels
            Dense, or sparse where the input is and its 0 is unknown.

        Examples
        --------
        >>> import partly
        >>> partly.Labels.from_ternary([[1, 0], [-1, 1]]).ternary()
        array([[ 1,  0],
               [-1,  1]], dtype=int8)
        """
        return cls._of(*parsing.read(a, {1: 1, -1: -1, 0: 0}, "Labels.from_ternary", names, ids))

    @classmethod
    def from_positives(cls, a: Any, *, names: Words | None = None, ids: Words | None = None) -> Labels:
        """Build labels from 1 (yes) and 0 (unknown).

        Parameters
        ----------
        a : array or table of [N, L]
            1 or 0.
        names : sequence, optional
            Names of the labels.
        ids : sequence, optional
            Ids of the items.

        Returns
        -------
        Labels
            Dense, or sparse where the input is and its 0 is unknown.

        Examples
        --------
        >>> import partly
        >>> partly.Labels.from_positives([[1, 0], [0, 1]]).ternary()
        array([[1, 0],
               [0, 1]], dtype=int8)
        """
        return cls._of(*parsing.read(a, {1: 1, 0: 0}, "Labels.from_positives", names, ids))

    @classmethod
    def from_full(cls, a: Any, *, names: Words | None = None, ids: Words | None = None) -> Labels:
        """Build completely known labels from 1 (yes) and 0 (no).

        Parameters
        ----------
        a : array or table of [N, L]
            1 or 0.
        names : sequence, optional
            Names of the labels.
        ids : sequence, optional
            Ids of the items.

        Returns
        -------
        Labels
            Dense, or sparse where the input is and its 0 is unknown.

        Examples
        --------
        >>> import partly
        >>> partly.Labels.from_full([[1, 0], [0, 1]]).ternary()
        array([[ 1, -1],
               [-1,  1]], dtype=int8)
        """
        return cls._of(*parsing.read(a, {1: 1, 0: -1}, "Labels.from_full", names, ids))

    @classmethod
    def from_entries(
        cls, items: Words, labels: Words, values: Any, *, names: Words | None = None, ids: Words | None = None
    ) -> Labels:
        """Build labels from known entries (item, label, 1 or 0); all other entries are unknown.

        Each argument is a list, a NumPy array, or a column of pandas or Arrow. `names` and `ids` fix the order and may
        include labels and items without entries; without them the order is that of first appearance. Repeated entries
        are allowed, contradictions are refused.

        Parameters
        ----------
        items, labels : sequences
            Ids and names, of the same length.
        values : sequence
            1 yes, 0 no.
        names : sequence, optional
            Names of the labels.
        ids : sequence, optional
            Ids of the items.

        Returns
        -------
        Labels
            Sparse.

        Examples
        --------
        >>> import partly
        >>> partly.Labels.from_entries(["a.jpg", "b.jpg"], ["cat", "dog"], [1, 0])
        Labels(2 items x 2 labels: 1 yes, 1 no, 50.0% unknown)
        """
        for what, values_of in (("items", items), ("labels", labels)):
            if not isinstance(values_of, Iterable) or isinstance(values_of, str | bytes):
                raise LabelError(
                    f"Labels.from_entries: {what} must be a list, one for each entry; got {values_of!r:.60}."
                )
        item_ids, rows = encode_words(items, None if ids is None else check_ids(ids), "item")
        label_names, columns = encode_words(labels, None if names is None else check_names(names), "label")
        return cls.from_codes(rows, columns, values, label_names, item_ids)

    @classmethod
    def from_tags(
        cls,
        rows: Iterable[Any],
        *,
        absent: str | None = None,
        names: Words | None = None,
        ids: Words | None = None,
        separator: str | None = None,
    ) -> Labels:
        """Build labels from the tags of each item: a list or set of label names, or a text such as "cat;dog".

        A tag means yes. You must choose whether other labels are unknown or no. A row that is None, NaN or blank means
        that nothing is known about the item, whatever `absent` is; an empty list means that it has no tags.

        Parameters
        ----------
        rows : sequence, or a column of a table
            The tags of each item.
        absent : "unknown" or "no"
            Value of labels that the tags of an item do not name.
        names : sequence, optional
            All labels, in order. Without it, the labels are the tags, in the order of first appearance.
        ids : sequence, optional
            Ids of the items; by default the index of a pandas column.
        separator : str, optional
            Separator of the tags in a text. By default the only one of ";", "|" and "," that occurs.

        Returns
        -------
        Labels
            Yes for every tag.

        Examples
        --------
        >>> import partly
        >>> partly.Labels.from_tags([["cat", "dog"], ["dog"], None], absent="no").ternary()
        array([[ 1,  1],
               [-1,  1],
               [ 0,  0]], dtype=int8)
        """
        where = "Labels.from_tags"
        if absent not in ("unknown", "no"):
            raise LabelError(
                f"{where}: absent = {absent!r}. Say what a label is that an item's tags do not name: "
                "absent='unknown' (nobody may have looked) or absent='no' (the tags are complete)."
            )
        items, tags, unseen, count = tag_rows.read_tags(rows, separator, where)
        label_names = check_names(dict.fromkeys(tags) if names is None else names)
        columns = np.array(tag_rows.positions_of(tags, label_names, items, where), np.int64)
        item_ids = parsing.index_of(rows) if ids is None else ids
        item_ids = None if item_ids is None else check_ids(item_ids, count)
        labels = cls.from_codes(
            np.array(items, np.int64), columns, np.ones(len(tags), np.int8), label_names, item_ids, count
        )
        if absent == "unknown":
            return labels
        tagged = np.setdiff1d(np.arange(count), unseen)
        z = labels.rows(slice(None)).copy()
        z[tagged] = np.where(z[tagged] == 1, 1, -1)
        return cls._of(z, label_names, labels.given_ids)

    @classmethod
    def from_codes(
        cls,
        rows: npt.NDArray[Any],
        columns: npt.NDArray[Any],
        values: Any,
        names: Words,
        ids: Words | None,
        items: int | None = None,
    ) -> Labels:
        """Build labels from entries whose items and labels are positions; `items`: their number, without ids."""
        names, ids = check_names(names), None if ids is None else check_ids(ids)
        shape = (int(items or 0) if ids is None else len(ids), len(names))
        return cls._of(parsing.read_entries(rows, columns, values, shape, names, ids), names, ids)

    @classmethod
    def _of(cls, z: Matrix, names: Names, ids: Names | None) -> Labels:
        """Wrap a ternary matrix that is not shared, with checked names and ids."""
        if ids is not None and all(text == str(i) for i, text in enumerate(ids)):
            ids = None  # positions: equal to labels without ids
        return cls._wrap(z, names, ids)

    @classmethod
    def _wrap(cls, z: Matrix, names: Names, ids: Names | None) -> Labels:
        self = object.__new__(cls)
        object.__setattr__(self, "_z", freeze(z))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_ids", ids)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Labels are immutable; make new ones instead of setting {name!r}.")

    def __reduce__(self) -> tuple[Any, ...]:
        """Support copies and pickling."""
        return Labels._wrap, (self._z, self.names, self._ids)

    # ---------------------------------------------------------------- contents

    @property
    def shape(self) -> tuple[int, int]:
        return (int(self._z.shape[0]), int(self._z.shape[1]))

    @property
    def ids(self) -> Names:
        """Ids of the items; their positions as text if none were given."""
        return self._ids if self._ids is not None else tuple(map(str, range(self.shape[0])))

    @property
    def given_ids(self) -> Names | None:
        """Ids of the items; None if none were given."""
        return self._ids

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
        """Return the read-only int8 matrix: an array, or a CSR array if the labels are sparse."""
        return sp.csr_array(self._z) if self.sparse else self._z  # its own CSR object, around the same memory

    def rows(self, index: Index) -> Ternary:
        """Return some items as a dense array [len(index), L]."""
        return dense_rows(self._z, resolve_index(index, len(self)))

    def to_nan(self) -> npt.NDArray[np.float32]:
        """Return a dense array: 1 yes, 0 no, NaN unknown."""
        z = self.rows(slice(None))
        return np.where(z == 0, np.float32("nan"), (z == 1).astype(np.float32))

    def to_pandas(self) -> Any:
        """Return a pandas table: 1 yes, 0 no, NaN unknown; the ids are its index, the names its columns.

        `Labels.from_nan` reads it back.

        Examples
        --------
        >>> import partly
        >>> labels = partly.Labels.from_ternary([[1, -1, 0]], names=["cat", "dog", "boat"], ids=["a.jpg"])
        >>> print(labels.to_pandas().to_csv().strip())
        item,cat,dog,boat
        a.jpg,1.0,0.0,
        """
        try:
            import pandas as pd
        except ImportError:
            raise LabelError(
                "Labels.to_pandas needs pandas: pip install pandas. Labels.to_nan gives an array."
            ) from None
        index = pd.RangeIndex(len(self)) if self._ids is None else pd.Index(self._ids, name="item")
        return pd.DataFrame(self.to_nan(), index=index, columns=list(self.names))

    def column(self) -> Column:
        """Return a torch data set of z [L], an int8 tensor per item, for `partly.losses`."""
        from partly.labels.column import Column

        return Column(self.rows, len(self))

    def entries(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int8]]:
        """Return the known entries in row order: rows, columns and values (1 yes, 0 no)."""
        row, column = self._z.nonzero()  # in reading order, because the indices of a CSR array are kept sorted
        data = self._z.data if self.sparse else self._z[row, column]
        return row.astype(np.int64, copy=False), column.astype(np.int64, copy=False), (data == 1).astype(np.int8)

    def counts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the number of known yes and of known no of each label: two arrays [L]."""
        if self.sparse:
            known, yes = (np.bincount(part, minlength=self.shape[1]) for part in self._columns())
            return yes, known - yes
        yes, no = (np.asarray(part.sum(axis=0, dtype=np.int64)).ravel() for part in (self.positive, self.negative))
        return yes, no

    def _columns(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the columns of all known entries and of all yes of sparse labels."""
        return self._z.indices, self._z.indices[self._z.data == 1]

    def known_per_item(self) -> npt.NDArray[np.int64]:
        """Return the number of known labels of each item, [N]."""
        if self.sparse:  # stored entries are known
            return np.asarray(np.diff(self._z.indptr), np.int64)
        return np.asarray(self.known.sum(axis=1, dtype=np.int64)).ravel()

    def summary(self) -> dict[str, Any]:
        """Return counts of known and unknown entries, and the labels without a known yes or no."""
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
        """Return the SHA-256 of entries, names and ids; the same for dense and sparse labels."""
        sha = hashlib.sha256(f"{self.shape}".encode())
        for text in (*self.names, *(self._ids or ())):
            sha.update(f"{len(text)}:{text}".encode(errors="surrogatepass"))
        for block in blocks(self.shape):
            sha.update(self.rows(block).tobytes())
        return sha.hexdigest()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Index) -> Labels:
        """Return the labels of some items: a slice, positions or a boolean mask."""
        chosen = resolve_index(index, len(self))
        ids = None if self._ids is None else check_ids(self._ids[i] for i in np.arange(len(self))[chosen])
        return Labels._of(self._z[chosen].copy(), self.names, ids)

    def mapped(self, rule: Callable[[Ternary, slice], Ternary], names: Names | None = None) -> Labels:
        """Apply rule(z [B, L], rows) -> [B, len(names)] to blocks of items."""
        names = self.names if names is None else names
        return Labels._wrap(map_blocks(self._z, rule, len(names)), names, self._ids)

    def with_ids(self, ids: Words) -> Labels:
        """Return the labels with other ids."""
        return Labels._of(self._z, self.names, check_ids(ids, len(self)))

    def id_at(self, item: int) -> str:
        """Return the id of one item without building all ids."""
        return str(item) if self._ids is None else self._ids[item]

    def with_entries(self, rows: npt.ArrayLike, columns: npt.ArrayLike, z: npt.ArrayLike) -> Labels:
        """Return labels with some entries changed: z [K] (+1 yes, -1 no, 0 unknown) at rows and columns [K].

        The cost is one copy plus work in proportion to the number of changed entries.

        Parameters
        ----------
        rows, columns : array of [K]
            Positions of the entries.
        z : array of [K]
            +1 yes, -1 no, 0 unknown.

        Returns
        -------
        Labels
            New labels; the original is unchanged.

        Examples
        --------
        >>> import partly
        >>> partly.Labels.from_positives([[1, 0], [0, 1]]).with_entries([0], [1], [-1]).ternary()
        array([[ 1, -1],
               [ 0,  1]], dtype=int8)
        """
        where = parsing.read_changes(rows, columns, z, self.shape)
        return Labels._wrap(replace_entries(self._z, *where), self.names, self._ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        same_words = self.names == other.names and self.shape == other.shape and self._ids == other._ids
        return same_words and all(np.array_equal(self.rows(b), other.rows(b)) for b in blocks(self.shape))

    def __hash__(self) -> int:
        return int(self.digest()[:15], 16)

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise LabelError(
            "Labels have three values: ask for labels.to_nan() or labels.ternary() to get an array. To cross-validate, "
            "give scikit-learn cv=partly.model_selection.YesStratifiedKFold(5) in the place of a number, and take "
            "partly.model_selection.cross_val_predict for scores."
        )

    def __repr__(self) -> str:
        s = self.summary()
        return (
            f"Labels({s['items']} items x {s['labels']} labels: {s['yes']} yes, {s['no']} no, "
            f"{1 - s['known_share']:.1%} unknown{', sparse' if self.sparse else ''})"
        )


def as_labels(y: Any, where: str = "y") -> Labels:
    """Convert the argument of `fit` and of the metrics to Labels: Labels, or an array of 1 yes, 0 no and NaN unknown.

    One dimension is one label. Anything else is refused, -1 and -100 in particular.
    """
    if isinstance(y, Labels):
        return y
    if tag_rows.look_like_tags(y):
        raise LabelError(
            f"{where} holds tags, names of labels for each item. Say what a label is that they do not name: "
            "Labels.from_tags(..., absent='unknown') (nobody may have looked) or absent='no' (the tags are complete)."
        )
    return Labels._of(*parsing.read(parsing.one_label(y), {1: 1, 0: -1}, where, None, None, missing=True))
