"""Estimate metrics of all entries, known or not, under a stated assumption on the unknown ones.

| mechanism | assumption | module |
|---|---|---|
| at-random | within a label, unknown entries are like known ones; tested | `inverse_probability` |
| by-answer | within a label, yes and no are each known at random | `inverse_probability` |
| positives-only | within a label, known yes are drawn at random from all yes; not testable | `positives_only` |
| audit | the audited entries are drawn at random from the unknown ones; tested | `audits` |

Every estimate also has worst-case bounds (`bounds`). Where the test rejects the assumption, there are bounds only.
Intervals are those of a delete-a-group jackknife over items on the logit scale, which repeats the estimate of the
weights or priors; those of an audit come from the draw of its entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import SettingError, did_you_mean, within
from partly.labels import Labels, as_labels, scored
from partly.metrics import audits, bounds, inverse_probability, positives_only
from partly.metrics.intervals import UNDEFINED, Interval, jackknife_interval
from partly.metrics.inverse_probability import Table
from partly.metrics.matrix_pass import MatrixPass
from partly.metrics.validation import Floats, Threshold
from partly.model_choice import priors
from partly.model_choice.missingness import BLOCK_ITEMS, GROUPS

MECHANISMS = ("auto", "at-random", "positives-only", "audit")
ASSUMPTIONS = {
    "complete": "Every entry is known.",
    "at-random": "Within a label, unknown entries are like known ones (missing at random).",
    "by-answer": "Within a label, yes and no are each known at random, at different rates.",
    "positives-only": "Within a label, the known yes are drawn at random from all yes, and the priors are right.",
    "audit": "The audited entries are drawn at random from the unknown ones.",
}
METRICS = ("mAP", "AUROC", "OP", "OR", "OF1", "CP", "CR", "macro_f1", "prevalence", "P@1", "P@3", "P@5")


@dataclass(frozen=True)
class Estimate:
    """A metric of the whole matrix: value, confidence interval, and bounds that need no assumption."""

    value: float
    low: float
    high: float
    lowest: float
    highest: float
    assumption: str  # key of ASSUMPTIONS; empty where only the bounds hold


@dataclass(frozen=True, eq=False)
class WholeMatrix:
    """Estimates by metric, the mechanism that they rest on (empty: none holds), and sentences that qualify them."""

    mechanism: str
    notes: list[str]
    estimates: dict[str, Estimate]
    by_label: Table = field(default_factory=dict)


def estimate(
    scores: Any,
    labels: Any,
    threshold: Threshold = 0.5,
    mechanism: str = "auto",
    prior: npt.ArrayLike | None = None,
    audit: Any = None,
    confidence: float = 0.95,
) -> WholeMatrix:
    """Estimate metrics of all entries, known or not.

    Parameters
    ----------
    scores : array [N, L], or iterator over blocks of it
        Probabilities of all entries.
    labels : Labels, or array of [N, L]
        1 yes, 0 no, NaN unknown.
    threshold : float, or array of [L]
        Lowest score that is predicted yes.
    mechanism : str
        `at-random`, `positives-only`, `audit`, or `auto`: `audit` where one is given, `positives-only` where no no is
        known, else at random if a test does not reject it, else by answer if that fits.
    prior : float, or array of [L], optional
        Share of yes of each label, for `positives-only`; by default `partly.priors.estimate`.
    audit : Labels, or array of [N, L], optional
        Answers to entries that were drawn at random from the unknown ones; matched by id and name like `labels`.
    confidence : float
        Level of the intervals.

    Returns
    -------
    WholeMatrix
        `estimates` from a metric to value, low, high and bounds; `mechanism`, `notes` and `by_label`.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((2000, 3)) < 0.3
    >>> scores = np.clip(0.3 + 0.4 * truth + rng.normal(0, 0.2, truth.shape), 0, 1)
    >>> known = partly.scenarios.uniform(truth, 0.2, seed=0)
    >>> whole = partly.metrics.estimate(scores, known)
    >>> whole.mechanism, bool(whole.estimates["OF1"].low < 0.76 < whole.estimates["OF1"].high)
    ('at-random', True)
    """
    if not isinstance(scores, Iterator):
        array, labels = scored.check_scores(scores, labels)
        starts = range(0, len(labels), BLOCK_ITEMS)
        row_blocks: Any = ((slice(i, min(i + BLOCK_ITEMS, len(labels))), array[i : i + BLOCK_ITEMS]) for i in starts)
    else:
        labels = as_labels(labels, "labels")
        row_blocks = scored.enumerate_rows(scores)
    return estimate_parts(row_blocks, labels, threshold, mechanism, prior, audit, confidence)


def estimate_parts(
    parts: Iterable[tuple[Any, Any]],
    labels: Labels,
    threshold: Threshold = 0.5,
    mechanism: str = "auto",
    prior: npt.ArrayLike | None = None,
    audit: Any = None,
    confidence: float = 0.95,
) -> WholeMatrix:
    """`estimate`, from blocks (rows, scores [B, L]) in any order."""
    within(0, 1, confidence=confidence)
    if mechanism not in MECHANISMS:
        raise SettingError(f"There is no mechanism {mechanism!r}.{did_you_mean(mechanism, MECHANISMS)}")
    if (mechanism == "audit") != (audit is not None) and (mechanism != "auto" or audit is None):
        needed = "needs an audit" if audit is None else "takes no audit; leave it out, or choose audit"
        raise SettingError(f"mechanism = {mechanism}: {needed}.")
    answers = None if audit is None else audits.match_audit(audit, labels)
    passed = MatrixPass(parts, labels, threshold, answers)
    if answers is not None:
        return _from_audit(passed, answers, confidence)
    chosen, notes = _choose(passed, mechanism)
    if not chosen:
        return WholeMatrix("", notes, _with_bounds({}, passed, ""))
    replicates = Replicates(passed, chosen, prior)
    values, by_label = replicates.values(None)
    estimates = {name: (value, UNDEFINED) for name, value in values.items()}
    if len(labels) >= GROUPS:
        others = [replicates.values(group)[0] for group in range(GROUPS)]
        estimates = {
            name: (value, jackknife_interval(value, [other[name] for other in others], confidence))
            for name, value in values.items()
        }
    notes += replicates.notes + _describe_left_out(passed, chosen)
    return WholeMatrix(chosen, notes, _with_bounds(estimates, passed, chosen), by_label)


def _describe_left_out(passed: MatrixPass, mechanism: str) -> list[str]:
    """Return a note on labels of which too little is known; their number of yes cannot be estimated."""
    counts = passed.counts
    only_yes = mechanism == "positives-only"
    count = int(np.count_nonzero(counts.yes + (0 if only_yes else counts.no) == 0))
    if not count:
        return []
    what = "yes" if only_yes else "entry"
    return [
        f"Labels without a known {what}: {count} of {len(counts.yes)}. The estimates leave them out, so P@k is "
        "undefined; the bounds cover all labels."
    ]


def _choose(passed: MatrixPass, mechanism: str) -> tuple[str, list[str]]:
    """Return the mechanism that the estimates rest on, or none, and sentences on the choice."""
    counts, missing = passed.counts, passed.missingness
    if not counts.unknown.any():
        return "complete", []
    if not counts.yes.any():
        return "", ["No yes is known, so nothing can be estimated. Ask for answers to random entries (an audit)."]
    if mechanism == "positives-only" or (mechanism == "auto" and not counts.no.any()):
        return "positives-only", ["That the known yes are drawn at random cannot be tested on these data."]
    if not counts.no.any():
        return "", ["No no is known, so entries cannot be missing at random. Use positives-only, or an audit."]
    if not missing.biased:
        untested = missing.kind == "untested"
        return "at-random", ["Too few entries are known to test whether they are missing at random."] * untested
    if mechanism == "auto" and missing.weights is not None:
        return "by-answer", missing.describe()
    return "", [
        f"Estimates are refused: labels are not missing at random (p = {missing.p_value:.2g}). The bounds hold "
        "nevertheless. Answers to random unknown entries (an audit) allow estimates."
    ]


class Replicates:
    """Estimates from all items, or from all but those of one group."""

    def __init__(self, passed: MatrixPass, mechanism: str, prior: npt.ArrayLike | None) -> None:
        self.passed, self.mechanism = passed, mechanism
        self.notes: list[str] = []
        self.prior = None
        if mechanism == "positives-only":
            if prior is None and not passed.whole:
                raise SettingError("Priors of a matrix of this size are not estimated. Give the share of yes: prior=.")
            if prior is None:
                self.notes.append("Priors are estimated; intervals hold their variance, not the bias of the estimate.")
            else:
                self.prior = positives_only.check_prior(prior, passed.counts)
        self._settings = [self._setting(group) for group in (None, *range(GROUPS))]
        self._tables = self._rank_labels()

    def values(self, group: int | None) -> tuple[dict[str, float], Table]:
        """Return metrics, and those of each label, without the items of one group."""
        at = 0 if group is None else group + 1
        counts, setting = self.passed.counter.total(group), self._settings[at]
        if self.mechanism == "positives-only":
            values, columns = positives_only.estimate_counts(counts, setting)
        else:
            values, columns = inverse_probability.estimate_counts(counts, setting)
        ap, auroc = self._tables[at].T
        values |= {"mAP": scored.mean(ap), "AUROC": scored.mean(auroc)}
        return {name: values[name] for name in METRICS}, columns | {"AP": ap, "AUROC": auroc}

    def _setting(self, group: int | None) -> Any:
        """Return weights, or priors, without the items of one group."""
        if self.mechanism == "positives-only":
            return self.prior if self.prior is not None else self._estimate_prior(group)
        if self.mechanism == "by-answer":
            missing = self.passed.missingness
            return missing.weights if group is None else self.passed.sums.without(group)
        return inverse_probability.weights_at_random(self.passed.counter.total(group))

    def _estimate_prior(self, group: int | None) -> Floats:
        labels, scores = self.passed.labels, self.passed.scores
        if group is not None:
            rows = np.flatnonzero(np.arange(len(labels)) % GROUPS != group)
            labels, scores = labels[rows], scores[rows]
        return priors.estimate(scores, labels, "tice")

    def _rank_labels(self) -> npt.NDArray[np.float64]:
        """Return AP and AUROC of each label without each group, [1 + GROUPS, L, 2]."""
        only_yes = self.mechanism == "positives-only"
        rank: Callable[..., tuple[float, float]] = (positives_only if only_yes else inverse_probability).rank_label
        table = np.full((len(self._settings), self.passed.labels.shape[1], 2), np.nan)
        if only_yes and not self.passed.whole:
            return table
        for j, (group, s, z) in enumerate(self.passed.columns()):
            if not only_yes:  # unknown entries take no part
                known = z != 0
                group, s, z = group[known], s[known], z[known]
            for at, setting in enumerate(self._settings):
                in_sample = group != at - 1
                by_answer = [s[in_sample & (z == value)] for value in (1, -1, 0)]
                weight = setting[j] if only_yes else setting[1][j] / max(setting[0][j], 1e-12)
                table[at, j] = rank(*by_answer, weight)
        return table


def _from_audit(passed: MatrixPass, audit: Labels, confidence: float) -> WholeMatrix:
    """Return the estimates that rest on a random audit."""
    rows, columns, answers = audits.entries_of_audit(audit, passed.labels)
    s = np.asarray(passed.scores[rows, columns]).ravel()
    predicted = (s >= passed.counter.thresholds[columns]).astype(np.float64)
    sample = audits.AuditSample((answers == 1).astype(np.float64), predicted, s.astype(np.float64))
    refusal = audits.check_randomness(sample, passed.counts)
    notes = [f"{len(answers):,} audited entries, of which {int(sample.yes.sum()):,} are yes."]
    if refusal is not None:
        return WholeMatrix("", [*notes, f"Estimates are refused: {refusal}"], _with_bounds({}, passed, ""))
    estimates = audits.estimate_from_audit(sample, passed.counts, confidence)
    if "OR" not in estimates:
        notes.append(f"Recall and F1 need {audits.MIN_YES} yes among the audited entries; audit more.")
    return WholeMatrix("audit", notes, _with_bounds(estimates, passed, "audit"))


def _with_bounds(found: dict[str, tuple[float, Interval]], passed: MatrixPass, assumption: str) -> dict[str, Estimate]:
    """Add the bounds to values and intervals."""
    limits: dict[str, Interval] = bounds.bound_counts(passed.counts)
    if passed.whole:
        columns = ((s[z == 1], s[z == -1], s[z == 0]) for _, s, z in passed.columns())
        limits["AUROC"] = bounds.bound_auroc(columns)
    result = {}
    for name in METRICS:
        value, (low, high) = found.get(name, (math.nan, UNDEFINED))
        held = "" if math.isnan(value) else assumption
        result[name] = Estimate(value, low, high, *limits.get(name, UNDEFINED), held)
    return result
