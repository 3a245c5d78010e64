"""Runs of a report, their scores, and a summary in sentences: the best run, its lead, and whether that is noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from scipy.special import stdtrit

from partly import metrics
from partly.labels import Labels
from partly.labels.scored import KnownScores
from partly.model_choice.missingness import EntrySums, Missingness
from partly.report import plots
from partly.report.layout import format_score

MAX_JACKKNIFE_GROUPS = 20
MAX_JACKKNIFE_ENTRIES = 1 << 24  # of larger evaluation sets a part is used
LOW_PROBABILITIES = (
    "trained without a known no. Its probabilities rank items, but their level means little: at a threshold of 0.5 "
    "it may predict almost nothing, or everything. Choose a threshold for each label "
    "(--thresholds f1; auto chooses its own)."
)
ONLY_YES = (
    "No evaluation entry is known to be no, so every prediction of yes would count as right: mAP, precision, F1, exact "
    "match and P@k are undefined (–)."
)


@dataclass(frozen=True, eq=False)
class RunView:
    """One trained model, as a report takes it."""

    title: str
    description: dict[str, Any]  # configuration and data, as in run.json
    history: list[dict[str, Any]]
    best_epoch: int | None = None
    seconds: float = 0.0
    reason: str = ""  # for the choice of the method
    probabilities: KnownScores | None = None  # [M, L], of the evaluation items, or of their known entries
    privilege: str = ""  # extra information ("all labels"): such a run is an upper bound, never called the best
    portfolio: tuple[dict[str, Any], ...] = ()  # models that `auto` tried: name, score, weight, seconds
    thresholds: npt.NDArray[Any] | None = None  # [L], on probabilities; None: 0.5
    notes: tuple[str, ...] = ()  # on calibration and thresholds
    entries: EntrySums | None = None  # of the evaluation items, to test how entries are missing
    teacher: dict[str, Any] | None = None  # weights of the model and its teachers, of `Combination.weights`


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """A run with its style, and with its scores where there are evaluation items."""

    view: RunView
    style: plots.Style
    scores: dict[str, float] | None = None  # of metrics.evaluate
    ap: npt.NDArray[np.float64] | None = None  # [L]
    own: dict[str, float] | None = None  # scores at its own thresholds, where it has chosen some
    missing: Missingness | None = None  # of the evaluation items
    uncorrected: dict[str, float] | None = None  # on known entries, where these are not missing at random

    @property
    def mean_ap(self) -> float:
        return math.nan if self.scores is None else self.scores["mAP"]

    @property
    def has_trusted_scores(self) -> bool:
        return self.scores is not None and not (self.missing is not None and self.missing.withheld)


def score_runs(runs: Sequence[RunView], truth: Labels | None) -> list[ScoredRun]:
    """Score the runs, in their order."""
    scored = []
    for position, view in enumerate(runs):
        style = plots.choose_style(position, bool(view.privilege))
        if truth is None or view.probabilities is None:
            scored.append(ScoredRun(view, style))
        else:
            p, missing = view.probabilities, None if view.entries is None else view.entries.missingness
            scores, table = metrics.both(p, truth, missing=missing)
            scores_at_own = None if view.thresholds is None else metrics.both(p, truth, view.thresholds, missing)[0]
            uncorrected = metrics.evaluate(p, truth) if missing is not None and missing.biased else None
            scored.append(ScoredRun(view, style, scores, table["AP"], scores_at_own, missing, uncorrected))
    return scored


def find_best(runs: Sequence[ScoredRun]) -> ScoredRun | None:
    """Return the first run without privilege that has the highest mAP; None where no mAP is defined."""
    candidates = [run for run in runs if not run.view.privilege and not math.isnan(run.mean_ap)]
    return max(candidates, key=lambda run: run.mean_ap, default=None)


def jackknife_margin(
    truth: Labels,
    probabilities: KnownScores,
    other: KnownScores | None = None,
    entries: tuple[EntrySums | None, EntrySums | None] = (None, None),
) -> float:
    """Half of a 95 % interval for the mAP, or for its difference to `other`, over the choice of evaluation items.

    A delete-a-group jackknife with up to 20 groups, which is fast and deterministic. Of very many items a part is
    used, and the margin is scaled to all of them. NaN where there are too few items.
    """
    step = max(1, math.ceil(truth.shape[0] * truth.shape[1] / MAX_JACKKNIFE_ENTRIES))
    items = np.arange(0, len(truth), step)
    groups = min(MAX_JACKKNIFE_GROUPS, len(items))
    if groups < 2:
        return math.nan
    values = []
    for group in range(groups):
        rows = np.delete(items, slice(group, None, groups))
        labels = truth[rows]
        weights = [None if sums is None or step > 1 else sums.without(group) for sums in entries]
        value = _mean_ap(probabilities[rows], labels, weights[0])
        values.append(value if other is None else value - _mean_ap(other[rows], labels, weights[1]))
    error = math.sqrt((groups - 1) * float(np.var(values)) * len(items) / len(truth))
    return float(stdtrit(groups - 1, 0.975)) * error


def margin_of_run(run: ScoredRun, truth: Labels, other: ScoredRun | None = None) -> float:
    """Half of a 95 % interval for the mAP of a run, or for its difference to another run."""
    rival = None if other is None else other.view.probabilities
    entries = (run.view.entries, None if other is None else other.view.entries)
    return jackknife_margin(truth, run.view.probabilities, rival, entries)


def _mean_ap(probabilities: KnownScores, labels: Labels, weights: metrics.Weights | None) -> float:
    ap = metrics.weighted_average_precision(probabilities, labels, weights)
    defined = ap[~np.isnan(ap)]
    return float(defined.mean()) if len(defined) else math.nan


# ---------------------------------------------------------------- sentences


def summarize(runs: Sequence[ScoredRun], truth: Labels | None) -> list[Markup]:
    """Return the summary, its headline first."""
    runs = [run for run in runs if run.scores is not None]
    if truth is None or not runs:
        return [Markup("No scores: this report was made without evaluation items.")]
    best, sentences = find_best(runs), _reservations(runs, truth)
    if best is None:
        reason = "every run had access to extra information"
        if any(run.missing is not None and run.missing.withheld for run in runs):
            reason = "labels of the evaluation items are not missing at random"
        elif all(math.isnan(run.mean_ap) for run in runs):
            reason = "no label has both a known yes and a known no among the evaluation items"
        return [Markup("No mAP: {}.").format(reason), *sentences]
    sentences += [_compare_with_bound(best, run, truth) for run in runs if run.view.privilege]
    sentences.append(Markup("Random guessing would reach {}.").format(format_score(_chance_level(truth, best.missing))))
    sentences.append(
        Markup("± is a 95 % confidence interval over evaluation items; it does not include other training seeds.")
    )
    return [_headline(best, runs, truth), *sentences]


def is_threshold_arbitrary(view: RunView) -> bool:
    """Return True if a threshold of 0.5 means little: no known no in training, and no threshold was chosen."""
    known = view.description["data"].get("known") or {}
    return known.get("no") == 0 and view.thresholds is None


def has_only_yes(truth: Labels) -> bool:
    """Return True if precision is undefined: no entry is known to be no, and some are unknown."""
    yes, no = truth.counts()
    return not no.any() and int(yes.sum()) < truth.shape[0] * truth.shape[1]


def _reservations(runs: Sequence[ScoredRun], truth: Labels) -> list[Markup]:
    """Reasons why scores may be too optimistic."""
    sentences, evaluated = [], truth.digest()
    if any(run.view.description["data"]["labels_sha256"] == evaluated for run in runs):
        sentences.append(Markup("These scores are on the training items: expect lower scores on new items."))
    missing = [sentence for run in runs if run.missing is not None for sentence in run.missing.describe()]
    sentences += [Markup("{}").format(sentence) for sentence in dict.fromkeys(missing)]
    for run in runs:
        if run.uncorrected is not None:
            value = format_score(run.uncorrected["mAP"])
            sentences.append(Markup("Without this correction, the mAP of {} would be {}.").format(_name(run), value))
    chosen = [run for run in runs if len(run.view.history) > 1]
    if any((run.view.description["validation"] or {}).get("labels_sha256") == evaluated for run in chosen):
        sentences.append(
            Markup("The same items were used to choose the best epoch, so the scores are slightly optimistic.")
        )
    trained_on_yes = [run for run in runs if is_threshold_arbitrary(run.view)]
    sentences += [Markup("{}: {}").format(_name(run), LOW_PROBABILITIES) for run in trained_on_yes]
    if has_only_yes(truth):
        sentences.append(Markup("{}").format(ONLY_YES))
    return sentences


def _headline(best: ScoredRun, runs: Sequence[ScoredRun], truth: Labels) -> Markup:
    rivals = sorted((run for run in runs if run is not best and not run.view.privilege), key=lambda run: -run.mean_ap)
    if not rivals:
        margin = _format_margin(margin_of_run(best, truth))
        return Markup("{}: mAP {}{}.").format(_name(best), format_score(best.mean_ap), margin)
    margins = {run: margin_of_run(best, truth, run) for run in rivals}
    tied = [run for run in rivals if not best.mean_ap - run.mean_ap > margins[run]]  # NaN: too few items to decide
    second = (tied or rivals)[0]
    gap = f"{format_score(best.mean_ap - second.mean_ap)}{_format_margin(margins[second])}"
    if not tied:
        text = Markup("{} is best: mAP {}, {} above {}.")
        return text.format(_name(best), format_score(best.mean_ap), gap, _name(second))
    text = Markup("{} and {} do not differ significantly: mAP {} and {}, a difference of {}.{}")
    more = f" The same holds for {len(tied) - 1} more." if tied[1:] else ""
    values = format_score(best.mean_ap), format_score(second.mean_ap)
    return text.format(_name(best), _name(second), *values, gap, more)


def _compare_with_bound(best: ScoredRun, bound: ScoredRun, truth: Labels) -> Markup:
    gap, margin = bound.mean_ap - best.mean_ap, margin_of_run(bound, truth, best)
    if gap > margin:
        text = Markup("{} saw {} and reaches {}: {} is {}{} below this upper bound.")
    elif gap < -margin:
        text = Markup("{} saw {} and reaches only {}: {} is {}{} above what should be an upper bound.")
    else:
        text = Markup("{} saw {} and reaches {}, which does not differ significantly from {}: a difference of {}{}.")
    privilege = Markup("<bdi>{}</bdi>").format(bound.view.privilege)
    values = format_score(bound.mean_ap), _name(best), format_score(abs(gap)), _format_margin(margin)
    return text.format(_name(bound), privilege, *values)


def _chance_level(truth: Labels, missing: Missingness | None = None) -> float:
    """mAP of equal scores: the mean share of yes."""
    yes, no = (counts.astype(np.float64) for counts in truth.counts())
    if missing is not None and missing.weights is not None:
        yes, no = yes * missing.weights[0], no * missing.weights[1]
    defined = (yes > 0) & (no > 0)
    return float(np.mean(yes[defined] / (yes + no)[defined])) if defined.any() else math.nan


def _format_margin(half: float) -> str:
    return "" if math.isnan(half) else f" ± {half:.3f}"


def _name(run: ScoredRun) -> Markup:
    return Markup("<b><bdi>{}</bdi></b>").format(run.view.title)
