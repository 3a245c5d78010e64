"""Defaults for method="auto" and head="auto", with the reason."""

from __future__ import annotations

from dataclasses import replace

from partly import methods
from partly.config import ResolvedConfig, Start
from partly.items import Items
from partly.labels import Labels
from partly.method import Task
from partly.solvers import solved_readout

FINE_TUNED_STAGES = 3  # last stages of a default backbone, trained where pictures are augmented
PORTFOLIO = "auto"  # the method of this name, which stands for the plain one where it cannot be


def choose(
    method: str,
    head: str,
    items: Items,
    labels: Labels,
    optimizer: str = "adamw",
    backbone: str | None = None,
    start: Start = "solved",
) -> tuple[str, str, str]:
    """Return (method, head, reason) with nothing left open.

    `auto` is a portfolio on features, unless a head is requested or the portfolio takes too much memory. Otherwise, and
    on images, it is the plain method for the known labels. An open head is `kernel` if the method is solved or starts
    at a solved baseline (`linear` where a backbone is trained), else `mlp`.
    """
    reason = "as requested"
    task = Task(items, labels.shape[1], ResolvedConfig(head="kernel", optimizer=optimizer, backbone=backbone))
    fits = solved_readout.can_solve(task)
    if method == PORTFOLIO and not (fits and head == "auto"):
        method, reason = plain(labels)
        if head == "auto" and solved_readout.exceeds_memory(task):
            reason += f"; a portfolio of {labels.shape[0]:,} x {labels.shape[1]:,} entries would take too much memory"
    elif method == PORTFOLIO:
        reason = "a portfolio, weighted by held-out log loss"
    if head == "auto":
        solved = replace(task, config=replace(task.config, start=start))
        info = methods.find(method)
        kernel = method == PORTFOLIO or (fits and info.about.terms is not None) or info.starts_solved(solved)
        head = "kernel" if kernel else "mlp"
        if head == "kernel" and items.kind != "features":  # distances of kernels have no gradient where they are 0
            head = "linear"
    return method, head, reason


def plain(labels: Labels) -> tuple[str, str]:
    """Return (method, reason), by the first rule that applies:

    1. Nothing is unknown: `bce`.
    2. Some negatives are known: `partial-bce`.
    3. Only positives are known: `assume-negative`. Without negatives, the loss on known entries is smallest if every
    entry is yes.
    """
    s = labels.summary()
    if not s["unknown"]:
        return "bce", "every entry is known"
    if s["no"]:
        return (
            "partial-bce",
            f"{s['yes']} entries are known to be yes and {s['no']} to be no; unknown ones are left out",
        )
    what = "one yes per item" if (labels.known_per_item() == 1).all() else "only yes"
    return "assume-negative", f"{what} is known and no entry is known to be no; unknown ones are taken for no"
