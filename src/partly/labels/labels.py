"""Labels: an immutable matrix, items x labels, in which every entry is yes, no or unknown.

Inside it is int8, +1 yes, -1 no, 0 unknown, dense or sparse (CSR). What the numbers of the caller mean is
never guessed: the constructor says it.
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
Words = Iterable[object]  # names or ids as the caller has them


class Labels:
    """Three-valued labels of N items x L labels, with the items' ids and the labels' names.

    Made by one of the constructors below, from a NumPy array (or lists, a masked array, a torch tensor), a SciPy
    sparse matrix, a pandas or an Arrow table; never changed afterwards. Names and ids that nobody gives are
    those of the table, or else positions. What a sparse matrix does not store is a 0 and means what 0 means to the
    constructor: where that is unknown, the labels stay sparse; where it is no, all is known and they are dense.

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
        """1 yes, 0 no, NaN (or None, NA, null, masked) unknown.

        Texts are read as in files: "1", "yes", "y" and "true", "0", "no", "n" and "false", and "", "NA" and "?" for
        unknown, in capitals too. Other texts are refused.

        Parameters
        ----------
        a : array or table of [N, L]
            1, 0 or NaN.
        names : sequence, optional
            Of the labels.
        ids : sequence, optional
            Of the items.
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
        """+1 yes, -1 no, 0 unknown.

        Parameters
        ----------
        a : array or table of [N, L]
            +1, -1 or 0.
        names : sequence, optional
            Of the labels.
        ids : sequence, optional
            Of the items.

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
        """1 yes, 0 unknown.

        Parameters
        ----------
        a : array or table of [N, L]
            1 or 0.
        names : sequence, optional
            Of the labels.
        ids : sequence, optional
            Of the items.

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
        """1 yes, 0 no, nothing unknown.

        Parameters
        ----------
        a : array or table of [N, L]
            1 or 0.
        names : sequence, optional
            Of the labels.
        ids : sequence, optional
            Of the items.

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
        """Long form: one (item, label, 1 or 0) each; what is not listed is unknown.

        Each of the three is a list, a NumPy array, or a column of pandas or Arrow. `names` and `ids` fix the order
        and may hold labels and items of which nothing is known; without them the order is that of first
        appearance. Saying the same twice is allowed, a contradiction not.

        Parameters
        ----------
        items, labels : sequences
            Of ids and of names, of the same length.
        values : sequence
            1 yes, 0 no.
        names : sequence, optional
            Of the labels.
        ids : sequence, optional
            Of the items.

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
        for what, given in (("items", items), ("labels", labels)):
            if not isinstance(given, Iterable) or isinstance(given, str | bytes):
                raise LabelError(f"Labels.from_entries: {what} must be a list, one for each entry; got {given!r:.60}.")
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
        """Tags of each item: a list or a set of label names, or one text such as "cat;dog".

        A tag means yes. What an item's tags do not name is unknown or no: you must say which. A row that is None, NaN
        or blank means that nothing is known about the item, whatever `absent` says; an empty list means that somebody
        looked and found nothing.

        Parameters
        ----------
        rows : sequence, or a column of a table
            The tags of each item.
        absent : "unknown" or "no"
            What a label is that an item's tags do not name.
        names : sequence, optional
            All labels, in order. Without it, the labels are the tags, in the order of first appearance.
        ids : sequence, optional
            Of the items; those of the index, where rows are a column of pandas.
        separator : str, optional
            What separates the tags of a text. Without it, the only one of ";", "|" and "," that occurs.

        Returns
        -------
        Labels
            Yes where there is a tag.

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
        words = check_names(dict.fromkeys(tags) if names is None else names)
        columns = np.array(tag_rows.positions_of(tags, words, items, where), np.int64)
        item_ids = parsing.index_of(rows) if ids is None else ids
        item_ids = None if item_ids is None else check_ids(item_ids, count)
        said = cls.from_codes(np.array(items, np.int64), columns, np.ones(len(tags), np.int8), words, item_ids, count)
        if absent == "unknown":
            return said
        seen = np.setdiff1d(np.arange(count), unseen)
        z = said.rows(slice(None)).copy()
        z[seen] = np.where(z[seen] == 1, 1, -1)
        return cls._of(z, words, said.given_ids)

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
        """Long form whose items and labels are already numbers; `items`: how many there are, without ids."""
        names, ids = check_names(names), None if ids is None else check_ids(ids)
        shape = (int(items or 0) if ids is None else len(ids), len(names))
        return cls._of(parsing.read_entries(rows, columns, values, shape, names, ids), names, ids)

    @classmethod
    def _of(cls, z: Matrix, names: Names, ids: Names | None) -> Labels:
        """Wrap a ternary matrix that nobody else holds, with names and ids that are already checked."""
        if ids is not None and all(text == str(i) for i, text in enumerate(ids)):
            ids = None  # just the positions, and then equal to labels without ids
        return cls._made(z, names, ids)

    @classmethod
    def _made(cls, z: Matrix, names: Names, ids: Names | None) -> Labels:
        self = object.__new__(cls)
        object.__setattr__(self, "_z", freeze(z))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_ids", ids)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Labels are immutable; make new ones instead of setting {name!r}.")

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies, and for the workers of joblib."""
        return Labels._made, (self._z, self.names, self._ids)

    # ---------------------------------------------------------------- what is there

    @property
    def shape(self) -> tuple[int, int]:
        return (int(self._z.shape[0]), int(self._z.shape[1]))

    @property
    def ids(self) -> Names:
        """The items' ids; their positions, as text, where none were given."""
        return self._ids if self._ids is not None else tuple(map(str, range(self.shape[0])))

    @property
    def given_ids(self) -> Names | None:
        """The items' ids, or None where none were given."""
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
        """The int8 matrix, read-only: an array, or a CSR array where the labels are sparse."""
        return sp.csr_array(self._z) if self.sparse else self._z  # its own CSR object, around the same memory

    def rows(self, index: Index) -> Ternary:
        """Some items, dense: [len(index), L]."""
        return dense_rows(self._z, resolve_index(index, len(self)))

    def to_nan(self) -> npt.NDArray[np.float32]:
        """1 yes, 0 no, NaN unknown; always dense."""
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
        """For a torch data set: z [L] of each item as an int8 tensor, as `partly.losses` take it."""
        from partly.labels.column import Column

        return Column(self.rows, len(self))

    def entries(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int8]]:
        """What is known, in reading order: row, column, 1 or 0."""
        row, column = self._z.nonzero()  # in reading order, because the indices of a CSR array are kept sorted
        data = self._z.data if self.sparse else self._z[row, column]
        return row.astype(np.int64, copy=False), column.astype(np.int64, copy=False), (data == 1).astype(np.int8)

    def counts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Known yes and known no of each label: two arrays [L]."""
        if self.sparse:
            known, yes = (np.bincount(part, minlength=self.shape[1]) for part in self._columns())
            return yes, known - yes
        yes, no = (np.asarray(part.sum(axis=0, dtype=np.int64)).ravel() for part in (self.positive, self.negative))
        return yes, no

    def _columns(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Of sparse labels: the column of every known entry, and of every yes."""
        return self._z.indices, self._z.indices[self._z.data == 1]

    def known_per_item(self) -> npt.NDArray[np.int64]:
        """How many labels of each item are known: [N]."""
        if self.sparse:  # what is stored is known
            return np.asarray(np.diff(self._z.indptr), np.int64)
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
        sha = hashlib.sha256(f"{self.shape}".encode())
        for text in (*self.names, *(self._ids or ())):
            sha.update(f"{len(text)}:{text}".encode(errors="surrogatepass"))
        for block in blocks(self.shape):
            sha.update(self.rows(block).tobytes())
        return sha.hexdigest()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Index) -> Labels:
        """Some items: a slice, positions or a boolean mask."""
        chosen = resolve_index(index, len(self))
        ids = None if self._ids is None else check_ids(self._ids[i] for i in np.arange(len(self))[chosen])
        return Labels._of(self._z[chosen].copy(), self.names, ids)

    def mapped(self, rule: Callable[[Ternary, slice], Ternary], names: Names | None = None) -> Labels:
        """Labels of the same items by rule(z [B, L], rows) -> [B, len(names)], on block after block of them."""
        names = self.names if names is None else names
        return Labels._made(map_blocks(self._z, rule, len(names)), names, self._ids)

    def with_ids(self, ids: Words) -> Labels:
        """The same labels under other ids."""
        return Labels._of(self._z, self.names, check_ids(ids, len(self)))

    def id_at(self, item: int) -> str:
        """The id of one item: that of a million others need not be made for it."""
        return str(item) if self._ids is None else self._ids[item]

    def with_entries(self, rows: npt.ArrayLike, columns: npt.ArrayLike, z: npt.ArrayLike) -> Labels:
        """These labels with some entries changed: z [K] (+1 yes, -1 no, 0 unknown) at rows and columns [K].

        The work is by the number of entries changed; of all that is known it takes one plain copy.

        Parameters
        ----------
        rows, columns : array of [K]
            Positions.
        z : array of [K]
            +1 yes, -1 no, 0 unknown.

        Returns
        -------
        Labels
            New ones.

        Examples
        --------
        >>> import partly
        >>> partly.Labels.from_positives([[1, 0], [0, 1]]).with_entries([0], [1], [-1]).ternary()
        array([[ 1, -1],
               [ 0,  1]], dtype=int8)
        """
        where = parsing.read_changes(rows, columns, z, self.shape)
        return Labels._made(replace_entries(self._z, *where), self.names, self._ids)

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
    """The door of `fit` and of the metrics: Labels as they are, or an array in scikit-learn's own sense.

    That is 1 yes, 0 no, and NaN unknown; of one dimension, it is one label. Anything else is refused, -1 and -100 above
    all.
    """
    if isinstance(y, Labels):
        return y
    if tag_rows.look_like_tags(y):
        raise LabelError(
            f"{where} holds tags, names of labels for each item. Say what a label is that they do not name: "
            "Labels.from_tags(..., absent='unknown') (nobody may have looked) or absent='no' (the tags are complete)."
        )
    return Labels._of(*parsing.read(parsing.one_label(y), {1: 1, 0: -1}, where, None, None, missing=True))
