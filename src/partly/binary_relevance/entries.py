"""What one label is learned from: which items, called yes or no, with which weight.

What is known counts as it is, with weight 1. What is unknown may be left out, be taken for no, or be said by another
model (a pseudo-label), and then counts by a weight of its own. Nothing that is said of a known entry changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    """Rows of items [M] (one may come twice: half yes, half no), whether each is yes, its weight, and whether it is no
    only because nobody said anything."""

    rows: Positions
    yes: npt.NDArray[np.bool_]
    weights: npt.NDArray[np.float64]
    assumed: npt.NDArray[np.bool_]

    @property
    def both(self) -> bool:
        """Whether there is a yes and a no to tell apart."""
        return bool(self.yes.any() and not self.yes.all())

    @property
    def prior(self) -> float:
        """Share of yes by weight, as if there were one more of each: never 0 or 1, and 1/2 where nothing is known."""
        return float((self.weights[self.yes].sum() + 1.0) / (self.weights.sum() + 2.0))

    def some(self, chosen: npt.NDArray[Any]) -> Entries:
        return Entries(self.rows[chosen], self.yes[chosen], self.weights[chosen], self.assumed[chosen])

    def weighed(self, weights: Floats | None) -> Entries:
        """These, where items [N] count differently; those that do not count are left out."""
        if weights is None:
            return self
        counted = Entries(self.rows, self.yes, self.weights * weights[self.rows], self.assumed)
        return counted.some(counted.weights > 0)

    def bag(self, rng: np.random.Generator) -> Entries:
        """All but the assumed ones, and of those a random sample, as many as there are yes (Mordelet and Vert 2014)."""
        assumed = np.flatnonzero(self.assumed)
        drawn = rng.choice(assumed, min(len(assumed), int(self.yes.sum())), replace=False)
        return self.some(np.sort(np.concatenate([np.flatnonzero(~self.assumed), drawn])))


def entries_of(
    z: npt.NDArray[np.int8], unknown: str, weight: float | Floats = 1.0, pseudo: Floats | None = None
) -> Entries:
    """The entries of a label with z [N] (+1 yes, -1 no, 0 unknown).

    unknown: what becomes of entries of which nothing is said, see `rule`. weight: of unknown entries that count, one
    for all or [N]. pseudo: what another model says of unknown entries, [N] in [0, 1] or NaN. A pseudo-label of 0.7 is a
    yes of weight 0.7 and a no of weight 0.3. Entries of weight 0 are left out.
    """
    weights = np.where(z == 0, weight, 1.0)
    said = np.zeros(len(z), bool) if pseudo is None else (z == 0) & ~np.isnan(pseudo)
    silent = (z == 0) & ~said
    counts = (z != 0) | (silent if rule(z, unknown) == "no" else np.zeros(len(z), bool))
    plain = np.flatnonzero(counts)
    parts = [(plain, z[plain] == 1, weights[plain], silent[plain])]
    if pseudo is not None:
        soft = np.flatnonzero(said)
        for yes, share in ((True, pseudo[soft]), (False, 1.0 - pseudo[soft])):
            parts.append((soft, np.full(len(soft), yes), weights[soft] * share, np.zeros(len(soft), bool)))
    whole = Entries(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return whole.some(whole.weights > 0)


def rule(z: npt.NDArray[np.int8], unknown: str) -> str:
    """What becomes of the unknown entries of a label: "ignore" or "no". "auto" leaves them out, unless some entry is
    known to be yes and none to be no: then there is nothing else to tell yes from."""
    if unknown != "auto":
        return unknown
    return "no" if (z == 1).any() and not (z == -1).any() else "ignore"


def columns(labels: Labels) -> Callable[[int], npt.NDArray[np.int8]]:
    """z [N] of a label, by its number. Sparse labels are turned once and stay sparse."""
    z: Any = labels.ternary()
    if not labels.sparse:
        return lambda label: np.asarray(z[:, label])
    turned = z.tocsc()
    return lambda label: turned[:, [label]].toarray().ravel()
