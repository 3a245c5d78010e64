"""Decided claims in words: for a terminal, as plain data, and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from evidence import papers
from evidence.claims.cells import identify
from evidence.claims.rules import FAILS, HOLDS, OPEN, UNFIT, Decided, Decision, Setting, limit, widening
from evidence.claims.specs import Claim, Steps
from partly.comparison.statistics import Mean
from partly.report.layout import escape_markdown

VERBS = {"above": "above", "below": "below", "near": "near", "trend": "over"}
SIGNS = {HOLDS: "+", FAILS: "-", OPEN: "?", UNFIT: "x"}
TRAINED = ("start", "head", "features", "optimizer", "epochs", "batch_size", "learning_rate")
RULES = """\
The rules are those of `evidence/claims/rules.py`.

- **Not comparable**: the sides differ in start, head, features, optimizer, epochs or batch size, and the claim is not
  about that; or in half of the runs of a side the best epoch is the first or among the last tenth, and the curve is not
  flat there; or the paper trains whole networks and here a head is trained on fixed features, or for fewer epochs; or a
  method was not run at its paper's setting; or the setup leaves no other outcome. The effect is shown, and decides
  nothing.
- **Margin**: 0.5 points, or half of the paper's effect where that is smaller, in both directions.
- **Holds**: the difference, paired over seeds, is shown to be above the margin (Student's t at 5 %). Validation chooses
  among several settings of a method.
- **Does not hold**: every setting is shown to be below the margin, and the baselines of both sides are at most 0.5
  points of mAP below tuned scikit-learn on the same entries.
- **Undecided**: all else. Five seeds are needed, eight where two rows are within a point. A gain is also undecided if
  the lower side is more than 0.5 points of mAP below tuned scikit-learn, and is a plain baseline or was trained at a
  learning rate that validation did not choose for it.
- A claim that the paper makes as a conjunction fails with one comparison. Otherwise all comparisons that can be decided
  have to agree.
- Cells that were moved or extended after their first results were seen are tested on fresh seeds only.

Intervals are 95 %. Seeds redraw masks, splits and initial weights, but neither test items nor the cut of the training
items. Those were resampled for three pairs of methods on VOC 2012 (`evidence/results/resampling.json`). Two pairs
stayed at or near their common start and hardly varied, so every interval is widened by the factor of the third, the
largest: 2.0. That choice was made after the three factors were seen; the median would be 1.6. *p* is of
the claim by itself; *q* is corrected for all claims that could be
decided (Benjamini and Hochberg, 5 %)."""


def render_terminal(found: Iterable[Decided]) -> str:
    """Paper by paper: the verdict of each claim, the comparisons behind it, and what is not as in the paper."""
    text = []
    for paper, group in groupby(found, key=lambda one: one.claim.paper):
        text += ["", papers.CITATIONS[paper]]
        for one in group:
            text += ["", *_stated(one.claim), f"    {summary(one)}{chance(one)}"]
            for each in one.decisions:
                text += [f"      {SIGNS[each.verdict]} {_sentence(each, one.claim.kind)}", *_trained(each)]
            text += [f"    differs: {words}" for words in one.claim.differs]
    return "\n".join(text).strip()


def claimed(claims: Iterable[Claim]) -> str:
    """What papers claim, with nothing said about it."""
    text = []
    for paper, group in groupby(claims, key=lambda one: one.paper):
        text += ["", papers.CITATIONS[paper]]
        for claim in group:
            text += ["", *_stated(claim)]
    return "\n".join(text).strip()


def summary(one: Decided) -> str:
    """The verdict, how many comparisons are behind it, and why it is undecided."""
    counts = [f"{one.count(name)} of {len(one.decisions)} {words}" for name, words in _COUNTED if one.count(name)]
    several = f" ({', '.join(counts)})" if len(one.decisions) > 1 else ""
    return f"{one.verdict}{several}" + (f": {one.why}" if one.why else "")


def chance(one: Decided) -> str:
    """How likely such a difference is by chance: p, and q of all claims; "" where nothing was tested."""
    return "" if one.p is None or one.q is None else f" (p {_small(one.p)}, q {_small(one.q)})"


def _small(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


_COUNTED = ((HOLDS, "hold"), (FAILS, "do not"), (OPEN, "undecided"), (UNFIT, "not comparable"))


def plain(one: Decided) -> dict[str, Any]:
    """A claim with all that is known of it, as JSON takes it."""
    return stated(one.claim) | {
        "verdict": one.verdict,
        "why": one.why,
        "p": one.p,
        "q": one.q,
        "widening": widening(),
        "comparisons": [_plain(each, one.claim) for each in one.decisions],
    }


def stated(claim: Claim) -> dict[str, Any]:
    """A claim by itself, as JSON takes it."""
    words = {name: getattr(claim, name) for name in ("id", "paper", "where", "says", "kind", "looked")}
    return words | {"differs": list(claim.differs)}


def _plain(one: Decision, claim: Claim) -> dict[str, Any]:
    a, b = one.comparison.sides[0]
    return {
        "verdict": one.verdict,
        "why": one.why,
        "outcome_by_numbers": one.outcome,
        "experiment": a[0].experiment,
        "data": a[0].data,
        "scenarios": [step.scenario for step in a],
        "metrics": list(dict.fromkeys(step.metric for step in a)),
        "equivalence_margin": limit(claim, one.theirs),
        "settings": [_setting(setting, sides) for setting, sides in _with_sides(one)],
        "chosen": one.best.row,
        "against": [f"{step.row}, {step.head}, {step.scenario}" for step in b],
        "paper": one.theirs,
    }


def _with_sides(one: Decision) -> list[tuple[Setting, tuple[Steps, Steps]]]:
    """Each setting with its cells. A tuned row that was not run has no setting."""
    sides = {(a[0].row, a[0].optimizer): (a, b) for a, b in one.comparison.sides}
    named = {row if optimizer == "adamw" else f"{row} ({optimizer})": both for (row, optimizer), both in sides.items()}
    return [(setting, named[setting.row]) for setting in one.settings]


def _setting(one: Setting, sides: tuple[Steps, Steps]) -> dict[str, Any]:
    found = one.found
    return {
        "row": one.row,
        "effect": found.value if found else None,
        "margin": found.margin if found else None,
        "seeds": found.count if found else 0,
        "baselines_above_scikit_learn": list(one.baselines),
        "footing": [side and side.to_json() for side in one.footings],
        "cells": [[identify(where) for where in side] for side in sides],
    }


def _stated(claim: Claim) -> list[str]:
    return [f"{claim.id} ({claim.where})", f"    {claim.says}"]


def _sentence(one: Decision, kind: str) -> str:
    """One comparison in a line; effects are in the claimed direction."""
    others = [each for each in one.settings if each is not one.best and each.found]
    parts = [f"{_place(one, kind)}: {points(one.best.found)}"]
    parts += [f"with {each.row} {points(each.found)}" for each in others]
    parts += [f"paper {100 * one.theirs:+.1f}"] if one.theirs is not None else []
    return ", ".join(parts) + (f" [{one.why}]" if one.why else "")


def _trained(one: Decision) -> list[str]:
    """How both sides were trained, in a line; none where nothing was run."""
    a, b = one.best.footings
    if a is None:
        return []
    sides = [side for side in (a, b) if side]
    parts = [_both(name.replace("_", " "), [getattr(side, name) for side in sides]) for name in TRAINED]
    parts += [_both("best epoch", [None if s.best_epoch is None else f"{100 * s.best_epoch:.0f} %" for s in sides])]
    above = [None if value is None else f"{100 * value:+.1f}" for value in one.best.baselines[: len(sides)]]
    return [f"        {'; '.join([*parts, _both('baseline above scikit-learn', above)])}"]


def _both(name: str, values: Sequence[object]) -> str:
    """One value for both sides, or one each."""
    words = ["none" if value is None else str(value) for value in values]
    return f"{name} {' / '.join(dict.fromkeys(words))}"


def _place(one: Decision, kind: str) -> str:
    """Where, and who against whom."""
    a, b = one.comparison.sides[0]
    first, last = a[0], a[-1]
    steps = (first.scenario, last.scenario) if first.scenario != last.scenario else (first.metric, last.metric)
    score = "" if len(a) > 1 and first.metric != last.metric else f", {first.metric}"
    at = f"{first.data}, {steps[0]} to {steps[1]}" if len(a) > 1 else f"{first.data}, {first.scenario}"
    unlike = ("scenario", "head", "optimizer", "metric", "experiment", "data")
    other = [str(getattr(b[0], name)) for name in unlike if b and getattr(b[0], name) != getattr(first, name)]
    return f"{at}{score}: {one.best.row}" + (f" {VERBS[kind]} {', '.join([b[0].row, *other])}" if b else "")


def points(found: Mean | None) -> str:
    """In points, with half of the 95 % interval and the seeds."""
    if found is None:
        return "not run"
    margin = "" if found.margin is None else f" ± {100 * found.margin:.1f}"
    return f"{100 * found.value:+.1f}{margin} ({found.count} seed{'s' * (found.count != 1)})"


# ---------------------------------------------------------------- the page


def render_page(found: Sequence[Decided]) -> str:
    """Counts first, then a table a paper, then the comparisons behind the verdicts of those that were run."""
    parts = [render_counts(found), "", RULES, ""]
    for paper, group in groupby(found, key=lambda one: one.claim.paper):
        parts += [f"## {paper}", "", papers.CITATIONS[paper], "", *_table(list(group)), ""]
    return "\n".join(parts)


def render_counts(found: Sequence[Decided]) -> str:
    """Two tables: verdicts per claim and per comparison, by paper."""
    titles = ("hold", "do not hold", "undecided", "not comparable")
    lines = [
        f"| paper | claims | {' | '.join(titles)} | comparisons | {' | '.join(titles)} |",
        "|---" + "|---:" * 10 + "|",
    ]
    papers_of = list(dict.fromkeys(one.claim.paper for one in found))
    for name in (*papers_of, "all"):
        ours = [one for one in found if name in (one.claim.paper, "all")]
        each = [decision for one in ours for decision in one.decisions]
        counts = [len(ours), *(sum(one.verdict == verdict for one in ours) for verdict in SIGNS)]
        counts += [len(each), *(sum(one.verdict == verdict for one in each) for verdict in SIGNS)]
        lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def _table(found: Sequence[Decided]) -> list[str]:
    lines = ["| claim | verdict | effect here, in points | differs |", "|---|---|---|---|"]
    for one in found:
        claim = one.claim
        said = f"**{claim.id}** ({escape_markdown(claim.where)}): {escape_markdown(claim.says)}"
        effects = "<br>".join(_effects(one.decisions))
        verdict, differs = escape_markdown(summary(one) + chance(one)), escape_markdown(" ".join(claim.differs))
        lines.append(f"| {said} | {verdict} | {effects} | {differs} |")
    return lines


def render_list(found: Sequence[Decided]) -> str:
    """Some claims as a table: what is said, and what came out."""
    lines = ["| claim | here | effect in points |", "|---|---|---|"]
    for one in found:
        effects = "<br>".join(_effects(one.decisions))
        lines.append(
            f"| {escape_markdown(one.claim.says)} ({one.claim.paper}, {escape_markdown(one.claim.where)}) "
            f"| {escape_markdown(summary(one) + chance(one))} | {effects} |"
        )
    return "\n".join(lines)


def _effects(decisions: Sequence[Decision]) -> list[str]:
    """A line a data set and score: the range of the effect over its comparisons, and that of the paper."""
    groups: dict[str, list[Decision]] = {}
    for one in decisions:
        if one.best.found:
            first = one.comparison.first
            groups.setdefault(f"{first.data}, {first.metric.removeprefix('areas: ')}", []).append(one)
    return [escape_markdown(f"{name}: {_range(ours)}") for name, ours in groups.items()]


def _range(ours: Sequence[Decision]) -> str:
    found = [one.best.found for one in ours if one.best.found]
    theirs = [100 * one.theirs for one in ours if one.theirs is not None]
    if len(ours) == 1:
        return points(found[0]) + "".join(f"; paper {value:+.1f}" for value in theirs)
    values, seeds = [100 * one.value for one in found], [one.count for one in found]
    counted = str(min(seeds)) if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
    text = f"{min(values):+.1f} to {max(values):+.1f} in {len(ours)} ({counted} seeds)"
    return text + (f"; paper {min(theirs):+.1f} to {max(theirs):+.1f}" if theirs else "")
