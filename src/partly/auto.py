"""method="auto" and head="auto": what is taken where a caller leaves it open, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partly import methods
from partly.items import Items, is_decoded
from partly.labels import Labels
from partly.method import Task
from partly.networks import backbones
from partly.solving import solved

PORTFOLIO = "auto"  # the method of this name, which stands for the plain one where it cannot be


def choose(
    method: str, head: str, items: Items, labels: Labels, optimizer: str = "adamw", backbone: str | None = None
) -> tuple[str, str, str]:
    """(method, head, reason), nothing left open.

    Features of which nothing else is asked are learned from by the portfolio `auto`. Where a head is asked for, or the
    items are pictures, or there are too many for the portfolio to be solved, "auto" is the plain method that fits what
    is known. An open head is `kernel` where it is solved, else `mlp`.
    """
    reason, task = "asked for", Task(items, labels.shape[1], "kernel", optimizer, backbone=backbone)
    fits = solved.solves(task)
    if method == PORTFOLIO and not (fits and head == "auto"):
        method, reason = plain(labels)
        if head == "auto" and solved.too_large(task):
            reason += f"; a portfolio of {labels.shape[0]:,} x {labels.shape[1]:,} entries would take too much memory"
    elif method == PORTFOLIO:
        reason = "a portfolio, blended by what each part is worth on held-out entries"
    if head == "auto":
        kernel = method == PORTFOLIO or (fits and hasattr(methods.find(method).module, "terms"))
        head = "kernel" if kernel else "mlp"
    return method, head, reason


def backbone(asked: Mapping[str, Any], items: Items) -> dict[str, Any]:
    """What is asked for, with the backbone that "auto" takes where nothing is said of how to learn: pictures in files
    and texts go through pretrained weights, frozen, where these are installed. A network that learns from nothing needs
    far more labels than people have."""
    open_parts = (
        asked["method"] == PORTFOLIO,
        asked["head"] == "auto",
        asked["backbone"] is None,
        asked["recipe"] is None,
    )
    left_open = all(open_parts)
    found = backbones.pretrained(items.kind) if left_open and not asked["augment"] else None
    if found is None or (items.kind == "pictures" and not is_decoded(items)):
        return dict(asked)
    return {**asked, "backbone": found, "backbone_settings": {"freeze": "all"} | (asked["backbone_settings"] or {})}


def plain(labels: Labels) -> tuple[str, str]:
    """(method, reason). The rule, in this order:

    1. Nothing is unknown: `bce`.
    2. Some entries are known to be no: `partial-bce`.
    3. Only yes is known: `assume-negative`, since without any no the loss on known entries is least when everything
       is called yes.
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
