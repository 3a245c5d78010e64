"""Open the data of a command: items, labels, and what a scenario hides of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from partly import data, methods, scenarios
from partly.cli.printing import say
from partly.data import Dataset, LabelSemantics
from partly.distributed.progress import step
from partly.errors import DataError
from partly.labels import Labels

Say = Callable[[str], None]


def open_data(
    name: str,
    labels: Path | None,
    hierarchy: Path | None = None,
    skip_bad: bool = False,
    size: int | None = None,
    meaning: LabelSemantics = LabelSemantics(),  # noqa: B008 (it is frozen)
) -> Dataset:
    """Return a data set by name, file or folder, with the labels of a label file."""
    if labels is None and not data.is_whole(name, meaning.label_columns):
        raise DataError(
            f"{name}: items by themselves need --labels with the observed labels; or --label-columns a,b, where the "
            "table holds them too."
        )
    with step(f"Reading {name}"):
        opened = data.read(name, labels, hierarchy, skip_bad, size, **vars(meaning))
    for note in opened.notes:
        say(note)
    return opened


def select_items(opened: Dataset, method: str, say: Say) -> tuple[Dataset, str]:
    """Include the items without any label if the method learns from them; return the data and a note, which is also
    printed."""
    count = len(opened.unlabelled_rows)
    if not count:
        return opened, ""
    included = methods.find(method).about.learns_from_unknown
    left_out = f"{method} learns nothing from them, and they are left out (a row without any value would keep them)"
    note = describe_unlabelled(count, f"{method} learns from them too" if included else left_out)
    say(note)
    return (opened.include_unlabelled() if included else replace(opened, with_unlabelled=None)), note


def describe_unlabelled(count: int, consequence: str) -> str:
    """Return a sentence about items that a label file does not mention."""
    return f"{count:,} items have no row in the labels, so nothing is known of them; {consequence}."


def with_ids(labels: Labels, rows: npt.NDArray[np.int64]) -> Labels:
    """Return the labels of some items; an item without an id is named by its row."""
    return labels[rows] if labels.given_ids is not None else labels[rows].with_ids(map(str, rows.tolist()))


def apply_scenario(opened: Dataset, scenario: str | None, seed: int) -> Dataset:
    """Hide labels by a scenario; the labels before that become the truth."""
    if scenario is None:
        return opened
    observed = scenarios.parse(scenario)(opened.labels, seed, opened.hierarchy)
    return replace(opened, labels=observed, truth=opened.truth or opened.labels)
