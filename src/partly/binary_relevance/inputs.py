"""Validation of inputs: rows of anything that an estimator takes, and side inputs per entry."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.binary_relevance.binary import Take
from partly.binary_relevance.entries import RULES, Entries, Positions, collect_entries
from partly.errors import DataError, LabelError, SettingError, did_you_mean, listing
from partly.items import is_items
from partly.labels import Labels
from partly.labels.align import align_table_columns
from partly.labels.names import Names
from partly.labels.weights import Weights

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SideInputs:
    """Inputs besides the labels: the weight of unknown entries (a number or [N, L]), pseudo-labels [N, L], and scores
    of another model [N, L], or None."""

    weight: float | Floats = 1.0
    pseudo: Floats | None = None
    scores: Floats | None = None
    sample: Weights | None = None  # weights of items [N, 1] or entries [N, L]

    @classmethod
    def validate(
        cls, weight: Any, pseudo: Any, scores: Any, count: int, names: Names, sample: Weights | None = None
    ) -> SideInputs:
        return cls(
            float(weight)
            if np.ndim(weight) == 0
            else check_matrix(weight, count, names, "weight_unknown", 0.0, np.inf),
            None if pseudo is None else check_matrix(pseudo, count, names, "pseudo_labels", 0.0, 1.0, missing=True),
            None if scores is None else check_matrix(scores, count, names, "scores"),
            sample,
        )

    def entries(self, z: npt.NDArray[np.int8], label: int, unknown: str) -> Entries:
        """Return the training entries of a label, from its z [N]."""
        weight = self.weight if isinstance(self.weight, float) else self.weight[:, label]
        counts = None if self.sample is None else self.sample[:, label % self.sample.shape[1]]
        return collect_entries(z, unknown, weight, None if self.pseudo is None else self.pseudo[:, label]).reweight(
            counts
        )

    def take(self, x: Any, label: int) -> Take:
        """Return a function that selects items of x, with the scores of the other labels appended."""
        if self.scores is None:
            return lambda rows: select_rows(x, rows)
        others = np.delete(self.scores, label, axis=1)
        beside: Any = sp.hstack if sp.issparse(x) else np.hstack
        how = {"format": "csr"} if sp.issparse(x) else {}
        return lambda rows: beside([x[rows], others[rows]], **how)

    def refuse_single_class(self, labels: Labels, unknown: str) -> None:
        """Refuse labels if none has both positives and negatives."""
        yes, no = labels.counts()
        some_unknown = yes + no < len(labels)
        taken = some_unknown & (unknown != "ignore")  # as negatives
        if self.pseudo is not None or ((yes > 0) & ((no > 0) | taken)).any():
            return
        known = f"Y: of {labels.shape[0]} x {labels.shape[1]} entries {yes.sum()} are known to be yes, {no.sum()} no"
        if unknown == "ignore" and ((yes > 0) & some_unknown).any():
            raise LabelError(
                f"{known}: with unknown='ignore' there is nothing to tell yes from. unknown='no' takes what is unknown "
                "for no."
            )
        raise LabelError(f"{known}: every label has one class only, so there is nothing to learn.")


def check_matrix(
    values: Any,
    count: int,
    names: Names,
    what: str,
    low: float = -np.inf,
    high: float = np.inf,
    missing: bool = False,
) -> Floats:
    """Return numbers [N, L] from low to high, with columns matched by name; errors name the wrong places."""
    shape = (count, len(names))
    try:
        array = np.asarray(align_table_columns(values, names, what), np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}: should be numbers, items x labels ({error}).") from None
    if array.shape != shape:
        raise DataError(f"{what}: has shape {list(array.shape)}, and the labels have {list(shape)}.")
    wrong = ~((array >= low) & (array <= high) & np.isfinite(array))
    if missing:
        wrong &= ~np.isnan(array)
    if wrong.any():
        ends = "finite numbers" if low == -np.inf else f"{low:g} or more" if high == np.inf else f"{low:g} to {high:g}"
        places = (f"item {i}, label {j}: {array[i, j]}" for i, j in np.argwhere(wrong).tolist())
        rest = ", or NaN where nothing is said" if missing else ""
        raise DataError(f"{what}: should be {ends}{rest}" + listing(places, int(wrong.sum())))
    return array


def select_rows(x: Any, rows: Positions) -> Any:
    """Select rows of an array, a sparse matrix, a table or a list."""
    if hasattr(x, "iloc"):
        return x.iloc[rows]
    return [x[row] for row in rows.tolist()] if isinstance(x, list | tuple) else x[rows]


def count_rows(x: Any) -> int:
    """Return the number of rows; the shape of `partly.items` is that of one item."""
    return int(x.shape[0]) if hasattr(x, "shape") and not is_items(x) else len(x)


def expects_numbers(x: Any) -> bool:
    """Tell whether the input is a numeric matrix. Estimators read tables and texts themselves."""
    if hasattr(x, "iloc"):
        return False
    first = x[0] if isinstance(x, list | tuple) and len(x) else None
    return not isinstance(first, str) and not (isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "OUT")


def check_parameters(estimator: Any, unknown: Any, weight: Any, bags: Any, seed: Any) -> None:
    """Refuse invalid parameters of `PerLabel`."""
    from sklearn.base import is_classifier

    if isinstance(estimator, type) or not is_classifier(estimator):
        raise SettingError(f"estimator = {estimator!r} must be a scikit-learn classifier: an object, not a class.")
    if unknown not in RULES:
        raise SettingError(f"There is no unknown = {unknown!r}.{did_you_mean(str(unknown), RULES)}")
    for name, value, least in (("bags", bags, 0), ("seed", seed, -np.inf)):
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise SettingError(f"{name} = {value!r} must be a whole number{', 0 or more' if least == 0 else ''}.")
    if np.ndim(weight) == 0 and not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
        raise SettingError(f"weight_unknown = {weight!r} must be a number, 0 or more, or one for each entry [N, L].")
    if bags and unknown == "ignore":
        raise SettingError(f"bags = {bags} take unknown entries for no, but unknown='ignore'. Say unknown='no'.")
