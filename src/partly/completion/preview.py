"""Preview of a completion: what each target would fill in, by the calibrated probabilities. Nothing is certified."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from partly.completion.audit import Rules, YesSearch
from partly.completion.entry_scores import EntryScores
from partly.completion.result import Terms

PRECISIONS = (0.8, 0.85, 0.9, 0.95, 0.98, 0.99)
MISSED_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
MIN_WORTHWHILE_SHARE = 1 / 3  # of the hidden yes, and, where answers certify, of what the target fills in


@dataclass(frozen=True)
class YesTarget:
    """Expected outcome of a precision: filled entries, their share of the hidden yes, and wrong ones.

    certified: expected number of filled entries if answers certify, as many as the budget permits.
    """

    precision: float
    filled: int
    share_of_hidden_yes: float
    wrong: float
    certified: float


@dataclass(frozen=True)
class NoTarget:
    """Expected outcome of a largest share of missed yes: filled entries, and how many hidden yes they contain."""

    max_missed: float
    filled: int
    lost_yes: float


@dataclass(frozen=True)
class Preview:
    """Expected outcomes of several targets, and a proposal; None where no target fills in enough to be worthwhile."""

    yes: tuple[YesTarget, ...]
    no: tuple[NoTarget, ...]
    hidden_yes: float
    proposal: float | None

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def preview(entries: EntryScores, terms: Terms) -> Preview:
    """Return what targets would fill in, if the calibrated probabilities are right."""
    inside = entries.candidates & entries.fillable
    chance = np.sort(entries.chance[inside])[::-1]
    hidden_yes = float(chance.sum())
    wrong, right = np.cumsum(1 - chance), np.cumsum(chance)
    yes = tuple(
        _preview_yes(chance, wrong, right, precision, expect_certified(entries, replace(terms, precision=precision)))
        for precision in PRECISIONS
    )
    no = tuple(_preview_no(chance, hidden_yes, share) for share in MISSED_SHARES)
    worthwhile = [
        target.precision
        for target in yes
        if target.share_of_hidden_yes >= MIN_WORTHWHILE_SHARE
        and (not entries.audited or target.certified >= MIN_WORTHWHILE_SHARE * target.filled)
    ]
    return Preview(yes, no, hidden_yes, max(worthwhile, default=None))


def expect_certified(entries: EntryScores, terms: Terms) -> float:
    """Return how many entries the first zone of an audit fills in, times the probability that it passes."""
    rules = Rules(terms.precision, terms.max_missed, terms.risk, terms.other_risk, terms.budget)
    search = YesSearch(entries, 0, entries.candidates & entries.fillable, rules)
    search.plan(search.chance, entries.chance[(entries.observed != 0) & entries.fillable], terms.budget)
    return search.expected


def _preview_yes(chance: Any, wrong: Any, right: Any, precision: float, certified: float) -> YesTarget:
    good = np.flatnonzero((wrong <= (1 - precision) * np.arange(1, len(chance) + 1)) & (chance >= 0.5))
    if not len(good):
        return YesTarget(precision, 0, 0.0, 0.0, certified)
    last = good[-1]
    share = float(right[last] / max(right[-1], 1e-300))
    return YesTarget(precision, int(last) + 1, share, float(wrong[last]), certified)


def _preview_no(chance: Any, hidden_yes: float, share: float) -> NoTarget:
    lost = np.cumsum(chance[::-1])  # the least probable yes first
    filled = int(((lost <= share * hidden_yes) & (chance[::-1] <= 0.5)).sum())
    return NoTarget(share, filled, float(lost[filled - 1]) if filled else 0.0)
