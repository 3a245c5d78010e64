"""Training entries of one label: rows, targets and weights.

Known entries have weight 1. Unknown entries are ignored, count as negatives, or have a pseudo-label from another model,
with a weight of their own. Known entries never change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from partly.labels import Labels

Rule = Literal["auto", "ignore", "no"]
RULES: tuple[str, ...] = get_args(Rule)
Floats = npt.NDArray[np.floating[Any]]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Entries:
    """Rows of items [M] (one occurs twice with a soft pseudo-label), whether each is yes, its weight, and whether it is
    an assumed negative."""

    rows: Positions
    yes: npt.NDArray[np.bool_]
    weights: npt.NDArray[np.float64]
    assumed: npt.NDArray[np.bool_]

    @property
    def has_both_classes(self) -> bool:
        """Tell whether there are positives and negatives."""
        return bool(self.yes.any() and not self.yes.all())

    @property
    def prior(self) -> float:
        """Return the weighted share of positives with one pseudo-count per class; 1/2 without known entries."""
        return float((self.weights[self.yes].sum() + 1.0) / (self.weights.sum() + 2.0))

    def select(self, chosen: npt.NDArray[Any]) -> Entries:
        return Entries(self.rows[chosen], self.yes[chosen], self.weights[chosen], self.assumed[chosen])

    def reweight(self, weights: Floats | None) -> Entries:
        """Multiply by weights of items [N]; entries of weight 0 are dropped."""
        if weights is None:
            return self
        counted = Entries(self.rows, self.yes, self.weights * weights[self.rows], self.assumed)
        return counted.select(counted.weights > 0)

    def bag(self, rng: np.random.Generator) -> Entries:
        """Keep all but the assumed negatives, and sample as many of these as there are positives."""
        assumed = np.flatnonzero(self.assumed)
        drawn = rng.choice(assumed, min(len(assumed), int(self.yes.sum())), replace=False)
        return self.select(np.sort(np.concatenate([np.flatnonzero(~self.assumed), drawn])))


def collect_entries(
    z: npt.NDArray[np.int8], unknown: str, weight: float | Floats = 1.0, pseudo: Floats | None = None
) -> Entries:
    """Return the entries of a label with z [N] (+1 yes, -1 no, 0 unknown).

    unknown: see `resolve_rule`. weight: of unknown entries, a number or [N]. pseudo: pseudo-labels of unknown entries,
    [N] in [0, 1] or NaN; 0.7 becomes a yes of weight 0.7 and a no of weight 0.3. Entries of weight 0 are dropped.
    """
    weights = np.where(z == 0, weight, 1.0)
    has_pseudo = np.zeros(len(z), bool) if pseudo is None else (z == 0) & ~np.isnan(pseudo)
    silent = (z == 0) & ~has_pseudo
    counts = (z != 0) | (silent if resolve_rule(z, unknown) == "no" else np.zeros(len(z), bool))
    plain = np.flatnonzero(counts)
    blocks = [(plain, z[plain] == 1, weights[plain], silent[plain])]
    if pseudo is not None:
        soft = np.flatnonzero(has_pseudo)
        for yes, share in ((True, pseudo[soft]), (False, 1.0 - pseudo[soft])):
            blocks.append((soft, np.full(len(soft), yes), weights[soft] * share, np.zeros(len(soft), bool)))
    whole = Entries(*(np.concatenate(column) for column in zip(*blocks, strict=True)))
    return whole.select(whole.weights > 0)


def resolve_rule(z: npt.NDArray[np.int8], unknown: str) -> str:
    """Return what happens to the unknown entries of a label: "ignore" or "no". "auto" ignores them, except for labels
    with known positives but no known negatives."""
    if unknown != "auto":
        return unknown
    return "no" if (z == 1).any() and not (z == -1).any() else "ignore"


def label_columns(labels: Labels) -> Callable[[int], npt.NDArray[np.int8]]:
    """Return a function from a label's position to its z [N]. Sparse labels are transposed once and stay sparse."""
    z: Any = labels.ternary()
    return partial(_column, z.tocsc() if labels.sparse else z)


def _column(z: Any, label: int) -> npt.NDArray[np.int8]:
    return np.asarray(z[:, label] if isinstance(z, np.ndarray) else z[:, [label]].toarray().ravel())
