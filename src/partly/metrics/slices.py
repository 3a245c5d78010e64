"""Parts of an evaluation: labels by their frequency or number of known entries, items by a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import DataError
from partly.labels import Labels
from partly.labels.scored import KnownScores, is_sparse
from partly.metrics.evaluation import measure
from partly.metrics.measurement import Measurement
from partly.metrics.validation import Threshold
from partly.model_choice.missingness import Missingness

LABEL_SLICES = {"frequency": "known yes", "known": "known entries"}
PARTS = 3  # of the labels, as equal as possible
MAX_GROUPS = 50  # of the items
Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Slice:
    """Some of the items or of the labels; None: all."""

    title: str
    rows: Index | None = None
    columns: Index | None = None


def slice_labels(labels: Labels, by: str, parts: int = PARTS) -> list[Slice]:
    """Divide the labels into equal parts by `frequency` (number of known yes) or `known` (of known entries)."""
    yes, no = labels.counts()
    counts = yes if by == "frequency" else yes + no
    slices = []
    for columns in np.array_split(np.argsort(counts, kind="stable"), min(parts, len(counts))):
        low, high = int(counts[columns[0]]), int(counts[columns[-1]])
        extent = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        slices.append(Slice(f"labels with {extent} {LABEL_SLICES[by]}", columns=np.sort(columns)))
    return slices


def slice_items(labels: Labels, groups: Mapping[str, str] | Sequence[Any], by: str) -> list[Slice]:
    """Divide the items by a group of each: a mapping from ids, or a sequence in the order of the items."""
    if isinstance(groups, Mapping):
        missing = [name for name in labels.ids if name not in groups]
        if missing:
            raise DataError(
                f"{by}: {len(missing)} of the {len(labels)} items have no group; the first is {missing[0]!r}."
            )
        groups = [groups[name] for name in labels.ids]
    values = np.array([str(group) for group in groups])
    if len(values) != len(labels):
        raise DataError(f"{by}: {len(values)} groups for {len(labels)} items; one for each item is needed.")
    names = np.unique(values)
    if len(names) > MAX_GROUPS:
        raise DataError(f"{by}: {len(names)} groups of items; {MAX_GROUPS} at most. Choose a column with fewer values.")
    return [Slice(f"{by} {name}".strip(), rows=np.flatnonzero(values == name)) for name in names]


def measure_slice(
    part: Slice,
    scores: KnownScores,
    labels: Labels,
    threshold: Threshold = 0.5,
    missing: Missingness | None = None,
) -> Measurement:
    """Return all metrics of one part, with influences."""
    if part.rows is not None:
        scores, labels = scores[part.rows], labels[part.rows]
    columns = part.columns
    if columns is not None:
        z = labels.ternary()[:, columns]
        scores = scores[:, columns]
        if is_sparse(scores):
            scores = scores.tocsr()
            scores.sort_indices()
        labels = Labels.from_ternary(z, names=[labels.names[j] for j in columns])
        threshold = threshold if np.ndim(threshold) == 0 else np.asarray(threshold)[columns]
        missing = _of_labels(missing, columns)
    return measure(scores, labels, threshold, missing, influence=True)


def _of_labels(missing: Missingness | None, columns: Index) -> Missingness | None:
    """Return the result of the test with the weights of some labels."""
    if missing is None or missing.yes_weight is None or missing.no_weight is None:
        return missing
    return replace(missing, yes_weight=missing.yes_weight[columns], no_weight=missing.no_weight[columns])
