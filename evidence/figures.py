"""Figures of the evidence page: effects here against the papers', the role of the baseline, and label names."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from evidence.claims.rules import Decided, Decision
from partly.comparison.results import Record
from partly.report import figures, plots

SHARE = "uniform:0.1"
STARTS = {"random start, SGD": ("mlp", "sgd"), "solved start, SGD": ("warm-linear", "sgd")}
TEACHER_ITEMS, TEACHER_SET, TEACHER_ROWS = 100, "coco", ("auto", "names", "auto+names")
TEACHER_SCENARIOS = ("none", "uniform:0.01", "uniform:0.03", "uniform:0.1", "uniform:0.3", "single-positive", "all")


def find_like_for_like(decided: Sequence[Decided]) -> list[tuple[Decided, Decision]]:
    """Return comparisons that can be decided and for which the paper reports a figure."""
    pairs = [(one, each) for one in decided for each in one.decisions]
    return [(one, each) for one, each in pairs if not (each.unfit or each.hindered) and each.theirs is not None]


def draw_forest(decided: Sequence[Decided]) -> bytes | None:
    """Draw the effect here with its interval beside that of the paper; None without such comparisons."""
    rows = find_like_for_like(decided)
    if not rows:
        return None
    with figures.new_figure(8.5, 0.8 + 0.2 * len(rows)) as figure:
        axes = figure.subplots()
        for place, (_, each) in enumerate(rows):
            effect = each.best.found
            assert effect is not None  # it is not hindered
            margin = 100 * (effect.margin or 0.0)
            axes.errorbar(100 * effect.value, place, xerr=margin, fmt="o", markersize=4, color=plots.YES)
            axes.plot(100 * (each.theirs or 0.0), place, "D", markersize=4, color=plots.NO)
        names = [f"{name_comparison(each)} ({one.claim.paper.rpartition(' ')[0]})" for one, each in rows]
        axes.set_yticks(range(len(rows)), names, fontsize=6)
        axes.axvline(0.0, color="gray", linewidth=0.8)
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="points in the claimed direction: here (circle), paper (diamond)")
        return figures.to_svg(figure)


def name_comparison(one: Decision) -> str:
    """Return who is compared with whom, and where; of a trend, its ends."""
    a, b = one.comparison.sides[0]
    where = f"{a[0].data}, {a[0].scenario}"
    if not b:
        return f"{_short(a[0].row)}: {a[-1].metric} over {a[0].metric}; {where}"
    return f"{_short(a[0].row)} over {_short(b[0].row)}; {where}, {a[0].metric.removeprefix('areas: ')}"


def _short(row: str) -> str:
    """Return a row without the settings that only fix its training."""
    name, _, settings = row.partition("[")
    return f"{name} without its losses" if "lambda_y=0,lambda_f=0" in settings else name


def draw_baseline(records: Sequence[Record]) -> bytes:
    """Draw test mAP of `bce` and `partial-bce` from a random start and from the solved baseline."""
    with figures.new_figure(6.5, 2.6) as figure:
        axes = figure.subplots()
        for place, (name, colour) in enumerate((("bce", plots.NO), ("partial-bce", plots.YES))):
            means = [np.mean(collect_scores(records, name, *where)) for where in STARTS.values()]
            bars = axes.bar(np.arange(len(STARTS)) + 0.36 * (place - 0.5), means, 0.34, color=colour, label=name)
            axes.bar_label(bars, fmt="%.3f")
        axes.set_xticks(range(len(STARTS)), list(STARTS))
        axes.set(ylabel="test mAP", ylim=(0, 1))
        axes.legend(loc="upper left", ncols=2)
        return figures.to_svg(figure)


def collect_scores(records: Sequence[Record], method: str, head: str, optimizer: str) -> list[float]:
    """Return test mAP with 10 % known, at the method's defaults."""
    where = {"scenario": SHARE, "method": method, "head": head, "optimizer": optimizer, "tune": 0, "recipe": {}}
    return [
        one["test"]["mAP"]
        for one in records
        if all(one[key] == value for key, value in where.items())
        and (one["settings"].get("value", 5.0), one["settings"].get("gamma", 1.0)) == (5.0, 1.0)
    ]


def draw_names(text: str) -> bytes:
    """Draw test mAP by what is known of 100 items, without label names, with names alone, and with both."""
    records = [json.loads(one) for one in text.splitlines()]
    ours = [one for one in records if (one["set"], one["items"]) == (TEACHER_SET, TEACHER_ITEMS)]
    with figures.new_figure(7.5, 2.8) as figure:
        axes = figure.subplots()
        for row, colour in zip(TEACHER_ROWS, (plots.NO, plots.UNKNOWN, plots.YES), strict=True):
            scores = [[o["map"] for o in ours if (o["scenario"], o["row"]) == (s, row)] for s in TEACHER_SCENARIOS]
            axes.plot([float(np.mean(each)) for each in scores], "o-", color=colour, label=row)
        axes.set_xticks(range(len(TEACHER_SCENARIOS)), TEACHER_SCENARIOS, fontsize=7)
        axes.set(xlabel="known labels of 100 images of COCO", ylabel="test mAP, %", ylim=(0, 60))
        axes.legend()
        return figures.to_svg(figure)
