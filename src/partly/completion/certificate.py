"""Thresholds from known entries that are missing at random.

Zones are nested, from strict to lax: all entries whose probability reaches a threshold. A zone passes where the known
entries rule out, at the given risk, more wrong entries among those to be filled in than the target allows. Zones are
tested in order until one fails. docs/completion.md explains why the guarantee then holds for all filled entries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.completion.bounds import leading, log_evidence, wrong_p
from partly.completion.entry_scores import Bools, EntryScores, Floats

Counts = npt.NDArray[np.int64]

MIN_CHANCE = 0.5  # nothing less probable is filled in
GROWTH = 1.15  # of one zone to the next


@dataclass(frozen=True, eq=False)
class Zones:
    """Zones of one side, from strict to lax, counted by label: [T, L] each, except thresholds [T].

    known: observed entries; errors: those among them with the opposite value; expected_errors: number of errors that
    the probabilities predict; size: all entries; candidates: entries to fill in.
    """

    value: int
    thresholds: Floats
    known: Counts
    errors: Counts
    expected_errors: Floats
    size: Counts
    candidates: Counts


@dataclass(frozen=True)
class ZoneDecision:
    """Decision on what to fill in as yes (value 1) or as no (-1).

    threshold: on the probability, None where nothing is filled in; known, errors: entries of the zone that decided;
    expected: expected number of wrong entries among the filled ones; labels: those for which the guarantee holds
    separately; asked: number of answered questions; forced: not certified.
    """

    value: int
    threshold: float | None
    filled: int = 0
    known: int = 0
    errors: int = 0
    expected: float = 0.0
    labels: tuple[str, ...] = ()
    asked: int = 0
    forced: bool = False

    @property
    def certified(self) -> bool:
        return self.threshold is not None and not self.forced

    @property
    def word(self) -> str:
        return "yes" if self.value == 1 else "no"


def count_zones(entries: EntryScores, value: int) -> Zones:
    """Count the zones of a side. Thresholds depend on probabilities alone, not on observed values."""
    chance, right, wrong = entries.for_value(value)
    inside = (chance >= MIN_CHANCE) & entries.fillable
    thresholds = _growing_thresholds(np.sort(chance[inside])[::-1])
    first_zone = np.where(inside, np.searchsorted(-thresholds, -chance), len(thresholds))

    def count(where: Bools, weights: Floats | None = None) -> npt.NDArray[Any]:
        rows, columns = np.nonzero(where & inside)
        width = len(entries.names)
        entry_weights = None if weights is None else weights[rows, columns]
        flat = np.bincount(
            first_zone[rows, columns] * width + columns, entry_weights, minlength=len(thresholds) * width
        )
        return np.cumsum(flat.reshape(len(thresholds), width), axis=0)

    known = right | wrong
    return Zones(
        value,
        thresholds,
        count(known),
        count(wrong),
        count(known, 1 - chance),
        count(np.ones_like(inside)),
        count(entries.candidates),
    )


def _growing_thresholds(chances: Floats) -> Floats:
    """Thresholds of zones that grow by a constant factor up to all entries. chances: descending."""
    if not len(chances):
        return np.empty(0)
    steps = math.ceil(math.log(len(chances), GROWTH)) if len(chances) > 1 else 0
    sizes = np.unique(np.ceil(len(chances) / GROWTH ** np.arange(steps + 1)).astype(np.int64))
    return np.unique(chances[sizes - 1])[::-1]


def certify(entries: EntryScores, value: int, precision: float, risk: float) -> tuple[ZoneDecision, Zones]:
    """Return the laxest zone that passes, and all zones."""
    zones = count_zones(entries, value)
    passed = _find_laxest_zone(entries, zones, 1 - precision, risk)
    if passed < 0:
        return ZoneDecision(value, None), zones
    separately = _certify_labels(zones, passed, 1 - precision, risk)
    known, errors, candidates = zones.known[passed], zones.errors[passed], int(zones.candidates[passed].sum())
    error_rate = float(entries.weight @ errors) / max(float(entries.weight @ known), 1e-300)
    decision = ZoneDecision(
        value,
        float(zones.thresholds[passed]),
        candidates,
        int(known.sum()),
        int(errors.sum()),
        error_rate * candidates if known.any() else math.nan,
        tuple(entries.names[j] for j in np.flatnonzero(separately)),
    )
    return decision, zones


def _find_laxest_zone(entries: EntryScores, zones: Zones, allowed: float, risk: float) -> int:
    """Index of the laxest zone, of all labels together, that passes; -1 where none does."""
    test = (EntryTest if entries.is_random_sample else ItemTest)(entries, zones, allowed)
    needed, passed = -math.log(risk), -1
    # The first zone to test is chosen by probabilities and by numbers of known entries, not by their values.
    expected = [test.measure_evidence(t, expected=True) for t in range(len(zones.thresholds))]
    for t in range(int(np.argmax(expected)) if expected else 0, len(expected)):
        if test.measure_evidence(t) < needed:
            break
        passed = t
    return passed if passed >= 0 and zones.candidates[passed].any() else -1


class EntryTest:
    """Test for entries that are known independently, at the same rate for all labels: a simple random sample."""

    def __init__(self, entries: EntryScores, zones: Zones, allowed: float) -> None:
        self.known, self.errors, self.size, candidates = (
            part.sum(axis=1) for part in (zones.known, zones.errors, zones.size, zones.candidates)
        )
        expected = zones.expected_errors.sum(axis=1)
        self.expected = np.ceil(expected + np.sqrt(expected))
        self.wrong = np.floor(allowed * candidates) + 1

    def measure_evidence(self, t: int, expected: bool = False) -> float:
        """Return -log p of the errors in a zone, or of slightly more than the expected ones."""
        errors = self.expected[t] if expected else self.errors[t]
        p = float(wrong_p(errors, self.known[t], self.size[t], self.wrong[t]))
        return -math.log(max(p, 1e-300))


class ItemTest:
    """Test for entries that are known at different rates by item or by label.

    Items are the independent units, since the entries of an item depend on each other. An entry is weighted by the
    inverse of its label's known share (Horvitz and Thompson), so that labels weigh as they do among all entries.
    """

    def __init__(self, entries: EntryScores, zones: Zones, allowed: float) -> None:
        chance, right, wrong = entries.for_value(zones.value)
        self.rows, self.columns = np.nonzero((right | wrong) & (chance >= MIN_CHANCE) & entries.fillable)
        self.chance = chance[self.rows, self.columns]
        self.error = wrong[self.rows, self.columns].astype(np.float64)
        self.weight = entries.weight[self.columns]
        self.allowed = np.divide(
            allowed * zones.candidates, zones.size, out=np.zeros(zones.size.shape), where=zones.size > 0
        )
        self.thresholds = zones.thresholds

    def measure_evidence(self, t: int, expected: bool = False) -> float:
        """Return the log evidence of the errors in a zone, or of the expected ones."""
        inside = self.chance >= self.thresholds[t]
        error = 1 - self.chance[inside] if expected else self.error[inside]
        allowed, weight = self.allowed[t, self.columns[inside]], self.weight[inside]
        items, place = np.unique(self.rows[inside], return_inverse=True)
        losses, largest = (np.bincount(place, weight * part, len(items)) for part in (error - allowed, 1 - allowed))
        return log_evidence(losses, largest.max(initial=0.0))


def _certify_labels(zones: Zones, at: int, allowed: float, risk: float) -> Bools:
    """Labels [L] that pass every zone up to this one by their own known entries: an exact test for each label."""
    wrong = np.floor(allowed * zones.candidates) + 1
    p, smallest_p = (wrong_p(errors, zones.known, zones.size, wrong) for errors in (zones.errors, 0 * zones.errors))
    testable = np.logical_or.accumulate(smallest_p <= risk, axis=0)
    passes = (p <= risk) | ~testable
    return np.asarray((leading(passes) > at) & testable[at] & (zones.candidates[at] > 0))


def find_recall_limit(entries: EntryScores, zones: Zones, recall: float, risk: float) -> float:
    """Return the strictest threshold whose zone contains this share of the yes; -inf where there is none.

    Zones are tested on known yes from the laxest one on, since recall falls with the size of a zone.
    """
    rows, columns = np.nonzero(entries.observed == 1)
    chance = np.where(entries.fillable[columns], entries.chance[rows, columns], 0.0)
    weight = entries.weight[columns]
    largest = np.bincount(rows, weight * recall, len(entries.observed)).max(initial=0.0)
    limit = -math.inf
    for threshold in zones.thresholds[::-1]:
        missed = (chance < threshold).astype(np.float64)
        losses = np.bincount(rows, weight * (missed - (1 - recall)), len(entries.observed))
        if log_evidence(losses[np.unique(rows)], largest) < -math.log(risk):
            break
        limit = float(threshold)
    return limit
