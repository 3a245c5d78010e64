"""The runs of a report, and what their scores say in honest words: which is best, by how much, and is it noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from partly import metrics, plots
from partly.labels import Labels

GROUPS = 20  # of the jackknife
WIDTH = 2.093  # Student's t for 95 % with GROUPS - 1 degrees of freedom
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
    probabilities: npt.NDArray[Any] | None = None  # [M, L], of the evaluation items
    privilege: str = ""  # what it saw and the others did not ("all labels"): an upper bound, never called the best


@dataclass(frozen=True, eq=False)
class Scored:
    """A run with how it is drawn, and with its scores where there are evaluation items."""

    view: RunView
    look: plots.Look
    scores: dict[str, float] | None = None  # of metrics.evaluate
    ap: npt.NDArray[np.float64] | None = None  # [L]

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
            ap = metrics.average_precision(view.probabilities, truth)
            scored.append(Scored(view, look, metrics.evaluate(view.probabilities, truth), ap))
    return scored


def best(runs: Sequence[Scored]) -> Scored | None:
    """The run without privilege that has the highest mAP, the first of equals; None where no mAP is defined."""
    able = [run for run in runs if not run.view.privilege and not math.isnan(run.mean_ap)]
    return max(able, key=lambda run: run.mean_ap, default=None)


def margin(truth: Labels, probabilities: npt.NDArray[Any], other: npt.NDArray[Any] | None = None) -> float:
    """Half of a 95 % interval for the mAP, or for how much it differs from that of `other`, over evaluation items.

    A jackknife: each time every 20th item is left out. That is cheap, and there is no chance in it. Of very many
    items a part is looked at, and the margin scaled to all of them. NaN where there are too few items.
    """
    step = max(1, math.ceil(truth.shape[0] * truth.shape[1] / ENTRIES))
    items = np.arange(0, len(truth), step)
    if len(items) < GROUPS:
        return math.nan
    values = []
    for group in range(GROUPS):
        kept = np.delete(items, slice(group, None, GROUPS))
        labels = truth[kept]
        value = _mean_ap(probabilities[kept], labels)
        values.append(value if other is None else value - _mean_ap(other[kept], labels))
    error = math.sqrt((GROUPS - 1) * float(np.var(values)))
    return WIDTH * error * math.sqrt(len(items) / len(truth))


def _mean_ap(probabilities: npt.NDArray[Any], labels: Labels) -> float:
    ap = metrics.average_precision(probabilities, labels)
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
    words = []
    if not truth.counts()[1].any():
        words.append(
            Markup("No evaluation entry is known to be no: precision is 1 by construction, and F1 and P@k flatter.")
        )
    first = best(runs)
    if first is None:
        why = "no run saw only what was given"
        if all(math.isnan(run.mean_ap) for run in runs):
            why = "no label has both a known yes and a known no among the evaluation items"
        return [Markup("No mAP to compare: {}.").format(why), *words]
    words += [_below(first, run, truth) for run in runs if run.view.privilege]
    guess = metrics.evaluate(np.full(truth.shape, 0.5), truth)["mAP"]
    words.append(Markup("Guessing would give {}.").format(number(guess)))
    if len(truth) >= GROUPS:
        words.append(
            Markup("± is a margin of 95 % for the choice of evaluation items; another training seed adds its own.")
        )
    return [_headline(first, runs, truth), *words]


def _headline(first: Scored, runs: Sequence[Scored], truth: Labels) -> Markup:
    rivals = [run for run in runs if run is not first and not run.view.privilege]
    if not rivals:
        return Markup("{}: mAP {}{}.").format(_name(first), number(first.mean_ap), _margin(truth, first)[1])
    rivals.sort(key=lambda run: -run.mean_ap)
    noise, words = zip(*(_margin(truth, first, run) for run in rivals), strict=True)
    gaps = [first.mean_ap - run.mean_ap for run in rivals]
    level = sum(not gap > wide for gap, wide in zip(gaps, noise, strict=True))  # NaN, too: too few items to tell
    if not level:
        return Markup("{} is best: mAP {}, {}{} above {}.").format(
            _name(first), number(first.mean_ap), number(gaps[0]), words[0], _name(rivals[0])
        )
    return Markup("{} and {} are within noise: mAP {} and {}, a difference of {}{}.{}").format(
        _name(first),
        _name(rivals[0]),
        number(first.mean_ap),
        number(rivals[0].mean_ap),
        number(gaps[0]),
        words[0],
        f" So are {level - 1} more." if level > 1 else "",
    )


def _below(first: Scored, bound: Scored, truth: Labels) -> Markup:
    gap = bound.mean_ap - first.mean_ap
    noise, words = _margin(truth, bound, first)
    sentence = Markup("{} saw {} and reaches {}: {} is {}{} below this upper bound.")
    if not gap > noise:
        sentence = Markup("{} saw {} and reaches {}, within noise of {}: a difference of {}{}.")
    seen = Markup("<bdi>{}</bdi>").format(bound.view.privilege)
    return sentence.format(_name(bound), seen, number(bound.mean_ap), _name(first), number(abs(gap)), words)


def _margin(truth: Labels, run: Scored, other: Scored | None = None) -> tuple[float, str]:
    """The margin, and how it is written."""
    wide = margin(truth, np.asarray(run.view.probabilities), None if other is None else other.view.probabilities)
    return wide, "" if math.isnan(wide) else f" ± {wide:.3f}"


def _name(run: Scored) -> Markup:
    return Markup("<b><bdi>{}</bdi></b>").format(run.view.title)
