"""The runs of a report, and what their scores say in honest words: which is best, by how much, and is it noise."""

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

GROUPS = 20  # of the jackknife, at most
ENTRIES = 1 << 24  # of the evaluation items the jackknife looks at no more than this


@dataclass(frozen=True, eq=False)
class RunView:
    """One trained model, as a report takes it."""

    title: str
    description: dict[str, Any]  # what was run on what, as `run.describe` says it
    history: list[dict[str, Any]]
    best_epoch: int | None = None
    seconds: float = 0.0
    reason: str = ""  # why this method
    probabilities: KnownScores | None = None  # [M, L], of the evaluation items, or of what is known of them
    privilege: str = ""  # what it saw and the others did not ("all labels"): an upper bound, never called the best
    portfolio: tuple[dict[str, Any], ...] = ()  # what `auto` tried: name, score, weight, seconds
    thresholds: npt.NDArray[Any] | None = None  # [L]: from which probability on it calls a label yes; None: 0.5
    told: tuple[str, ...] = ()  # how probabilities were calibrated and thresholds chosen, where they were
    entries: EntrySums | None = None  # of the evaluation items: by which is tested how their entries are missing


@dataclass(frozen=True, eq=False)
class Scored:
    """A run with how it is drawn, and with its scores where there are evaluation items."""

    view: RunView
    look: plots.Look
    scores: dict[str, float] | None = None  # of metrics.evaluate
    ap: npt.NDArray[np.float64] | None = None  # [L]
    own: dict[str, float] | None = None  # scores at its own thresholds, where it has chosen some
    missing: Missingness | None = None  # of the evaluation items
    uncorrected: dict[str, float] | None = None  # as they are on known entries, where these are not missing at random

    @property
    def mean_ap(self) -> float:
        return math.nan if self.scores is None else self.scores["mAP"]


def score(runs: Sequence[RunView], truth: Labels | None) -> list[Scored]:
    """The runs, in their order."""
    scored = []
    for position, view in enumerate(runs):
        look = plots.look(position, bool(view.privilege))
        if truth is None or view.probabilities is None:
            scored.append(Scored(view, look))
        else:
            p, missing = view.probabilities, None if view.entries is None else view.entries.missingness
            scores, table = metrics.both(p, truth, missing=missing)
            own = None if view.thresholds is None else metrics.both(p, truth, view.thresholds, missing)[0]
            plain = metrics.evaluate(p, truth) if missing is not None and missing.biased else None
            scored.append(Scored(view, look, scores, table["AP"], own, missing, plain))
    return scored


def best(runs: Sequence[Scored]) -> Scored | None:
    """The run without privilege that has the highest mAP, the first of equals; None where no mAP is defined."""
    able = [run for run in runs if not run.view.privilege and not math.isnan(run.mean_ap)]
    return max(able, key=lambda run: run.mean_ap, default=None)


def margin(
    truth: Labels,
    probabilities: KnownScores,
    other: KnownScores | None = None,
    entries: tuple[EntrySums | None, EntrySums | None] = (None, None),
) -> float:
    """Half of a 95 % interval for the mAP, or for how much it differs from that of `other`, over evaluation items.

    A jackknife: each time every 20th item is left out. That is cheap, and there is no chance in it. Of very many
    items a part is looked at, and the margin scaled to all of them. NaN where there are too few items to tell.
    """
    step = max(1, math.ceil(truth.shape[0] * truth.shape[1] / ENTRIES))
    items = np.arange(0, len(truth), step)
    groups = min(GROUPS, len(items))
    if groups < 2:
        return math.nan
    values = []
    for group in range(groups):
        kept = np.delete(items, slice(group, None, groups))
        labels = truth[kept]
        weights = [None if sums is None or step > 1 else sums.without(group) for sums in entries]
        value = _mean_ap(probabilities[kept], labels, weights[0])
        values.append(value if other is None else value - _mean_ap(other[kept], labels, weights[1]))
    error = math.sqrt((groups - 1) * float(np.var(values)) * len(items) / len(truth))
    return float(stdtrit(groups - 1, 0.975)) * error


def _mean_ap(probabilities: KnownScores, labels: Labels, weights: metrics.Weights | None) -> float:
    ap = metrics.weighted_average_precision(probabilities, labels, weights)
    defined = ap[~np.isnan(ap)]
    return float(defined.mean()) if len(defined) else math.nan


# ---------------------------------------------------------------- words


def number(value: float) -> str:
    """Three digits, or the word where there is no number."""
    return "undefined" if math.isnan(value) else f"{value:.3f}"


def sentences(runs: Sequence[Scored], truth: Labels | None) -> list[Markup]:
    """The verdict, its headline first."""
    runs = [run for run in runs if run.scores is not None]
    if truth is None or not runs:
        return [Markup("No scores: this report was made without evaluation items.")]
    first, words = best(runs), _reservations(runs, truth)
    if first is None:
        why = "no run saw only what was given"
        if any(run.missing is not None and run.missing.withheld for run in runs):
            why = "labels of the evaluation items are not missing at random"
        elif all(math.isnan(run.mean_ap) for run in runs):
            why = "no label has both a known yes and a known no among the evaluation items"
        return [Markup("No mAP: {}.").format(why), *words]
    words += [_below(first, run, truth) for run in runs if run.view.privilege]
    words.append(Markup("Guessing would give {}.").format(number(_guessed(truth, first.missing))))
    words.append(
        Markup("± is a margin of 95 % for the choice of evaluation items; another training seed adds its own.")
    )
    return [_headline(first, runs, truth), *words]


LOW = (
    "no entry it learned from is known to be no, so its probabilities rank items, and their height says little. At a "
    "threshold of 0.5 hardly anything may be called yes, or everything. Choose a threshold for each label "
    "(--thresholds f1; auto chooses its own)."
)
ONLY_YES = (
    "No evaluation entry is known to be no, so whatever is called yes would be right: mAP, precision, F1, exact match "
    "and P@k are undefined (–). Recall is not."
)


def learned_from_yes(view: RunView) -> bool:
    """Whether scores at a threshold of 0.5 say little: nothing was known to be no, and no threshold was chosen."""
    known = view.description["data"].get("known") or {}
    return known.get("no") == 0 and view.thresholds is None


def _reservations(runs: Sequence[Scored], truth: Labels) -> list[Markup]:
    """What makes the scores look better than they are."""
    words, evaluated = [], truth.digest()
    if any(run.view.description["data"]["labels_sha256"] == evaluated for run in runs):
        words.append(Markup("These scores are on the training items: they say little about new ones."))
    for sentence in dict.fromkeys(words for run in runs if run.missing is not None for words in run.missing.describe()):
        words.append(Markup("{}").format(sentence))
    for run in runs:
        if run.uncorrected is not None:
            plain = number(run.uncorrected["mAP"])
            words.append(Markup("On known entries alone, the mAP of {} would be {}.").format(_name(run), plain))
    chosen = [run for run in runs if len(run.view.history) > 1]
    if any((run.view.description["validation"] or {}).get("labels_sha256") == evaluated for run in chosen):
        words.append(Markup("The evaluation items also chose the best epoch, which flatters the scores a little."))
    words += [Markup("{}: {}").format(_name(run), LOW) for run in runs if learned_from_yes(run.view)]
    if only_yes(truth):
        words.append(Markup("{}").format(ONLY_YES))
    return words


def only_yes(truth: Labels) -> bool:
    """Whether precision means nothing: no entry is known to be no, and some are unknown."""
    yes, no = truth.counts()
    return not no.any() and int(yes.sum()) < truth.shape[0] * truth.shape[1]


def _headline(first: Scored, runs: Sequence[Scored], truth: Labels) -> Markup:
    rivals = sorted((run for run in runs if run is not first and not run.view.privilege), key=lambda run: -run.mean_ap)
    if not rivals:
        return Markup("{}: mAP {}{}.").format(_name(first), number(first.mean_ap), _noise(wide(first, truth)))
    noise = {run: wide(first, truth, run) for run in rivals}
    level = [run for run in rivals if not first.mean_ap - run.mean_ap > noise[run]]  # NaN: too few items to tell
    second = (level or rivals)[0]
    gap = Markup("{}{}").format(number(first.mean_ap - second.mean_ap), _noise(noise[second]))
    if not level:
        words = Markup("{} is best: mAP {}, {} above {}.")
        return words.format(_name(first), number(first.mean_ap), gap, _name(second))
    words = Markup("{} and {} are within noise: mAP {} and {}, a difference of {}.{}")
    more = f" So are {len(level) - 1} more." if level[1:] else ""
    return words.format(_name(first), _name(second), number(first.mean_ap), number(second.mean_ap), gap, more)


def _below(first: Scored, bound: Scored, truth: Labels) -> Markup:
    gap, noise = bound.mean_ap - first.mean_ap, wide(bound, truth, first)
    if gap > noise:
        words = Markup("{} saw {} and reaches {}: {} is {}{} below this upper bound.")
    elif gap < -noise:
        words = Markup("{} saw {} and reaches only {}: {} is {}{} above what should be an upper bound.")
    else:
        words = Markup("{} saw {} and reaches {}, within noise of {}: a difference of {}{}.")
    seen = Markup("<bdi>{}</bdi>").format(bound.view.privilege)
    return words.format(_name(bound), seen, number(bound.mean_ap), _name(first), number(abs(gap)), _noise(noise))


def _guessed(truth: Labels, missing: Missingness | None = None) -> float:
    """mAP where all scores are equal: AP is then the share of yes."""
    yes, no = (counts.astype(np.float64) for counts in truth.counts())
    if missing is not None and missing.weights is not None:
        yes, no = yes * missing.weights[0], no * missing.weights[1]
    defined = (yes > 0) & (no > 0)
    return float(np.mean(yes[defined] / (yes + no)[defined])) if defined.any() else math.nan


def wide(run: Scored, truth: Labels, other: Scored | None = None) -> float:
    """Half of a 95 % interval for the mAP of a run, or for how much it differs from that of another one."""
    rival = None if other is None else other.view.probabilities
    entries = (run.view.entries, None if other is None else other.view.entries)
    return margin(truth, run.view.probabilities, rival, entries)


def _noise(half: float) -> str:
    return "" if math.isnan(half) else f" ± {half:.3f}"


def _name(run: Scored) -> Markup:
    return Markup("<b><bdi>{}</bdi></b>").format(run.view.title)
