"""Thresholds from known entries that are missing at random.

Zones are nested, from strict to lax: all entries whose probability reaches a threshold. Zones are tested in order until
one fails. A zone of yes passes where the known entries rule out, at the given risk, more wrong entries among those to
be filled in than the precision allows. A zone of no passes where the known yes rule out that it contains more than the
allowed share of the hidden yes. docs/completion-theory.md explains why the guarantees then hold for what is filled in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from scipy.stats import poisson

from partly.completion.bounds import fewest_yes, leading, log_evidence, p_value_missed, wrong_p
from partly.completion.entry_scores import Bools, EntryScores, Floats

Counts = npt.NDArray[np.int64]

MIN_CHANCE = 0.5  # nothing less probable is filled in
GROWTH = 1.15  # of one zone to the next
PESSIMISM = 1.2  # factor on the expected errors when the first zone of yes is chosen, and half an error more
COUNT_SHARE = 0.1  # of the risk of no, spent on the lower bound for the number of hidden yes


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

    threshold: on the probability, None where nothing is filled in; known, errors: known entries of the zone, and those
    with the opposite value; expected: expected number of wrong entries among the filled ones; labels: those for which
    the guarantee holds separately; known_yes: known yes of all entries, on which the guarantee of no rests; asked:
    number of answered questions; forced: not certified.
    """

    value: int
    threshold: float | None
    filled: int = 0
    known: int = 0
    errors: int = 0
    expected: float = 0.0
    labels: tuple[str, ...] = ()
    known_yes: int = 0
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


def certify_yes(entries: EntryScores, precision: float, risk: float) -> tuple[ZoneDecision, Zones]:
    """Return the laxest zone of yes that has this precision, and all zones."""
    zones = count_zones(entries, 1)
    passed = _find_laxest_zone(entries, zones, 1 - precision, risk)
    if passed < 0:
        return ZoneDecision(1, None), zones
    labels = _certify_labels(zones, passed, 1 - precision, risk)
    return _decide(entries, zones, passed, labels), zones


def certify_no(entries: EntryScores, max_missed: float, risk: float) -> ZoneDecision:
    """Return the laxest zone of no that contains at most this share of the hidden yes.

    Zones are tested from the strictest one on, since missed yes grow with the size of a zone.
    """
    zones = count_zones(entries, -1)
    test = (MissedEntryTest if entries.is_random_sample else MissedItemTest)(entries, zones, max_missed, risk)
    passed = -1
    for t in range(len(zones.thresholds)):
        if not test.passes(t):
            break
        passed = t
    if passed < 0 or not zones.candidates[passed].any():
        return ZoneDecision(-1, None, known_yes=test.known_yes)
    return replace(_decide(entries, zones, passed, np.zeros(len(entries.names), bool)), known_yes=test.known_yes)


def _decide(entries: EntryScores, zones: Zones, t: int, labels: Bools) -> ZoneDecision:
    known, errors, candidates = zones.known[t], zones.errors[t], int(zones.candidates[t].sum())
    error_rate = float(entries.weight @ errors) / max(float(entries.weight @ known), 1e-300)
    return ZoneDecision(
        zones.value,
        float(zones.thresholds[t]),
        candidates,
        int(known.sum()),
        int(errors.sum()),
        error_rate * candidates if known.any() else math.nan,
        tuple(entries.names[j] for j in np.flatnonzero(labels)),
    )


def _find_laxest_zone(entries: EntryScores, zones: Zones, allowed: float, risk: float) -> int:
    """Index of the laxest zone, of all labels together, that passes; -1 where none does.

    The first zone is the one with the most entries to fill in, times the probability that it passes. Probabilities and
    numbers of known entries decide it, not their values, so it costs no risk.
    """
    test = (EntryTest if entries.is_random_sample else ItemTest)(entries, zones, allowed)
    needed, passed, count = -math.log(risk), -1, len(zones.thresholds)
    gain = [test.pass_probability(t, needed) * zones.candidates[t].sum() for t in range(count)]
    for t in range(int(np.argmax(gain)) if count else 0, count):
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
        self.expected = zones.expected_errors.sum(axis=1)
        self.wrong = np.floor(allowed * candidates) + 1

    def measure_evidence(self, t: int) -> float:
        """Return -log p of the errors in a zone."""
        return -math.log(max(float(self._p(t, self.errors[t])), 1e-300))

    def pass_probability(self, t: int, needed: float) -> float:
        """Return the probability that the zone passes, if errors are as frequent as the probabilities say."""
        likely = int(PESSIMISM * self.expected[t] + 5 * math.sqrt(self.expected[t]) + 5)
        passing = self._p(t, np.arange(min(likely, int(self.known[t])) + 1)) <= math.exp(-needed)
        return float(poisson.cdf(int(passing.sum()) - 1, PESSIMISM * self.expected[t] + 0.5)) if passing.any() else 0.0

    def _p(self, t: int, errors: Any) -> Any:
        return wrong_p(errors, self.known[t], self.size[t], self.wrong[t])


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

    def pass_probability(self, t: int, needed: float) -> float:
        """Return a rough probability that the zone passes, from the evidence of the expected errors."""
        return float(expit(self.measure_evidence(t, expected=True) - needed))

    def measure_evidence(self, t: int, expected: bool = False) -> float:
        """Return the log evidence of the errors in a zone, or of the expected ones."""
        inside = self.chance >= self.thresholds[t]
        error = 1 - self.chance[inside] if expected else self.error[inside]
        allowed, weight = self.allowed[t, self.columns[inside]], self.weight[inside]
        items, place = np.unique(self.rows[inside], return_inverse=True)
        losses, largest = (np.bincount(place, weight * part, len(items)) for part in (error - allowed, 1 - allowed))
        return log_evidence(losses, largest.max(initial=0.0))


class MissedEntryTest:
    """Test the share of hidden yes in a zone of no, where known entries are a simple random sample."""

    def __init__(self, entries: EntryScores, zones: Zones, max_missed: float, risk: float) -> None:
        fillable = entries.fillable
        observed, candidates = entries.observed[:, fillable], entries.candidates[:, fillable]
        implied = np.zeros_like(observed) if entries.implied is None else entries.implied[:, fillable]
        self.max_missed, self.risk = max_missed, (1 - COUNT_SHARE) * risk
        self.known_yes = int((observed == 1).sum())
        implied_yes = implied == 1
        known = int((observed != 0).sum())
        fewest = fewest_yes(self.known_yes, known, observed.size, COUNT_SHARE * risk)
        most = int(candidates.sum())
        self.hidden = min(max(fewest - self.known_yes - int(implied_yes.sum()), 0), most), most
        self.implied = np.sort((1 - entries.chance[:, fillable])[implied_yes])
        self.thresholds, self.missed = zones.thresholds, zones.errors.sum(axis=1)

    def passes(self, t: int) -> bool:
        """Return whether the known yes rule out that the zone contains too many of the hidden ones."""
        in_zone = len(self.implied) - int(np.searchsorted(self.implied, self.thresholds[t]))
        implied = len(self.implied), in_zone
        return p_value_missed(int(self.missed[t]), self.known_yes, self.max_missed, self.hidden, implied) <= self.risk


class MissedItemTest:
    """The same test for entries that are known at different rates by item or by label; items are the units."""

    def __init__(self, entries: EntryScores, zones: Zones, max_missed: float, risk: float) -> None:
        self.rows, columns = np.nonzero((entries.observed == 1) & entries.fillable)
        self.chance, self.weight = 1 - entries.chance[self.rows, columns], entries.weight[columns]
        self.max_missed, self.needed = max_missed, -math.log(risk)
        self.known_yes, self.thresholds = len(self.rows), zones.thresholds

    def passes(self, t: int) -> bool:
        missed = (self.chance >= self.thresholds[t]).astype(np.float64)
        _, place = np.unique(self.rows, return_inverse=True)
        losses = np.bincount(place, self.weight * (missed - self.max_missed))
        largest = np.bincount(place, self.weight * (1 - self.max_missed)).max(initial=0.0)
        return log_evidence(losses, largest) >= self.needed


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
