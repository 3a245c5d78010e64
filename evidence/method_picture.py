"""Figure of a method: the derivative of its loss or its schedule, and the hidden yes that it finds by epoch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from evidence.regimes import INNER_LOSSES, Floats, compute_gradient
from partly import methods
from partly.clock import Clock
from partly.items import as_items
from partly.labels import Labels
from partly.method import Task
from partly.report import figures, plots

LABELS = 20  # of the item whose entry is shown
POINTS = np.linspace(0.01, 0.99, 50)
EPOCHS = 20
KINDS = {"yes": (1, plots.YES, "-"), "no": (-1, plots.NO, "--"), "unknown": (0, plots.COLORS[0], ":")}
LEFT = {
    "slopes": "Left: derivative of the loss with respect to the logit of an entry, by its predicted probability. Above "
    "0 it pushes the entry towards no. The item has 20 labels; the others are unknown (for pairwise losses: the "
    "opposite). Schedules are at their end.\n\nRight: ",
    "plan": f"Left: schedule of the method at its defaults, in a run of {EPOCHS} epochs.\n\nRight: ",
}
RIGHT = """\
share of hidden yes among as many top-scored unknown entries as there are hidden yes, by epoch. Gray is
`assume-negative`. One short training of a small network on 600 digits with one seed (`evidence/watched.py`)
illustrates the method; it does not rank methods."""


def words(name: str) -> str:
    """Return the caption of the figure."""
    left = LEFT["slopes"] if slopes(name) else LEFT["plan"] if plan(name) else ""
    return left + RIGHT if left else RIGHT[0].upper() + RIGHT[1:]


def picture(name: str, own: dict[str, Any], naive: dict[str, Any]) -> bytes:
    """Draw the SVG. `own` and `naive`: by scenario, the share of hidden yes found by epoch."""
    slope, planned = slopes(name), plan(name)
    wide = bool(slope or planned)
    with figures.new_figure(7.4 if wide else 4.0, 2.6) as figure:
        grid: Any = figure.subplots(1, 2 if wide else 1, squeeze=False)
        panels = grid[0]
        if slope:
            _draw_slopes(panels[0], slope)
        elif planned:
            _draw_plan(panels[0], planned)
        for scenario, dashes in (("single-positive", "-"), ("uniform:0.2", "--")):
            _found(panels[-1], naive[scenario], plots.UPPER_BOUND_COLOR, dashes, "")
            _found(panels[-1], own[scenario], plots.COLORS[3], dashes, scenario)
        panels[-1].set(xlabel="epoch", ylabel="hidden yes found, %", ylim=(0, 100))
        panels[-1].legend(frameon=False, loc="lower right")
        panels[-1].xaxis.get_major_locator().set_params(integer=True)
        return figures.to_svg(figure)


@cache  # used by words and picture
def slopes(name: str) -> dict[str, Floats]:
    """Of yes, no and unknown entries; nothing for what is no loss of single entries, nor of pairs of them."""
    if name not in INNER_LOSSES and not hasattr(methods.find(name).module, "loss"):
        return {}
    found = {kind: compute_gradient(name, POINTS, z, LABELS) for kind, (z, *_) in KINDS.items()}
    if any(np.abs(slope).max() > 0 for slope in found.values()):
        return found
    return {
        kind: compute_gradient(name, POINTS, KINDS[kind][0], LABELS, others=-KINDS[kind][0]) for kind in ("yes", "no")
    }


@cache
def plan(name: str) -> dict[str, list[float]]:
    """What the method plans with its default settings, epoch after epoch."""
    info, observed = methods.find(name), Labels.from_ternary(np.array([[1, -1], [-1, 1], [1, 1]], np.int8))
    task = Task(as_items(np.eye(3, dtype=np.float32)), observed.shape[1], observed=observed)
    made = info.build(task, info.complete({}))
    epochs = [made.plan(Clock(0, epochs=EPOCHS, epoch=epoch)) for epoch in range(EPOCHS)]
    return {what: [float(one[what]) for one in epochs] for what in epochs[0]}


def _draw_slopes(axes: Any, found: dict[str, Floats]) -> None:
    for kind, slope in found.items():
        _, colour, dashes = KINDS[kind]
        axes.plot(POINTS, slope, color=colour, ls=dashes, lw=2 if kind == "unknown" else 1.4, label=kind)
    axes.set(xlabel="probability", ylabel="slope by the logit")
    axes.legend(frameon=False)


def _draw_plan(axes: Any, found: dict[str, list[float]]) -> None:
    for place, (what, values) in enumerate(found.items()):
        look = plots.choose_style(place)
        axes.step(
            range(1, EPOCHS + 1), values, where="mid", color=look.color, ls="-" if not place else "--", label=what
        )
    axes.set(xlabel="epoch", ylabel="by plan", ylim=(0, (1 + 0.25 * len(found)) * max(map(max, found.values()))))
    axes.legend(frameon=False, loc="upper left")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _found(axes: Any, shares: list[float], colour: str, dashes: str, label: str) -> None:
    """A line over the epochs; a level for a method that has one."""
    if len(shares) == 1:
        axes.axhline(100 * shares[0], color=colour, ls=dashes, lw=1.5, label=label)
    else:
        epochs = range(1, len(shares) + 1)
        axes.plot(epochs, [100 * one for one in shares], color=colour, ls=dashes, lw=1.5, label=label)
