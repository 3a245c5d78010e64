"""`partly query`: the unknown entries that a finished run would ask about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partly.active.selection import select_questions
from partly.cli.opening import open_data
from partly.clock import Clock
from partly.data import LabelSemantics
from partly.data.answers import write_questions
from partly.engine import load
from partly.engine.feature_cache import cached_features
from partly.errors import SettingError, listing


def query(
    run: Path,
    data: str,
    out: Path,
    *,
    labels: Path | None = None,
    hierarchy: Path | None = None,
    query: str = "look-ahead",
    count: int = 100,
    settings: dict[str, Any] | None = None,
    seed: int = 0,
    skip_bad: bool = False,
    meaning: LabelSemantics = LabelSemantics(),  # noqa: B008 (it is frozen)
) -> int:
    """Questions about the unknown entries of some items, by a finished run; how many there are."""
    fitted = load(run)
    opened = open_data(data, labels, hierarchy, skip_bad, meaning=meaning).include_unlabelled()
    if opened.labels.names != fitted.names:
        raise SettingError(
            f"{run} was trained on other labels than those of {labels or data}, or in another order. "
            "Give labels of its own, in this order:" + listing(fitted.names, len(fitted.names))
        )
    items = cached_features(fitted.prepare_items(opened.items))
    known = opened.labels if opened.hierarchy is None else opened.hierarchy.deduce(opened.labels)
    found = select_questions(
        query,
        fitted.method,
        items,
        known,
        count,
        Clock(seed),
        hierarchy=opened.hierarchy,
        settings=settings,
    )
    write_questions(out, opened.labels, found.rows, found.columns, found.scores)
    return len(found)
