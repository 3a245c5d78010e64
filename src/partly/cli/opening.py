"""What the commands share: opening the data they are given, and saying something on the way."""

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
    """A data set by name, file or folder, with the labels that a file gives it."""
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


def of_use(opened: Dataset, method: str, say: Say) -> tuple[Dataset, str]:
    """What this method is to learn from: with the items of which the labels say nothing at all, where it learns from
    such; and the words about them, which are said too."""
    count = len(opened.unlabelled_rows)
    if not count:
        return opened, ""
    kept = methods.find(method).about.learns_from_unknown
    left_out = f"{method} learns nothing from such, and they are left out (a row without any value would keep them)"
    note = words(count, f"{method} learns from them too" if kept else left_out)
    say(note)
    return (opened.include_unlabelled() if kept else replace(opened, with_unlabelled=None)), note


def words(count: int, what: str) -> str:
    """About items of which a file of labels says nothing at all."""
    return f"{count:,} items have no row in the labels, so nothing is known of them; {what}."


def some(labels: Labels, index: npt.NDArray[np.int64]) -> Labels:
    """Labels of some items, under the ids that these have among all."""
    return labels[index] if labels.given_ids is not None else labels[index].with_ids(map(str, index.tolist()))


def hidden(opened: Dataset, scenario: str | None, seed: int) -> Dataset:
    """The same, of which a scenario hides a part; what there was is then the truth."""
    if scenario is None:
        return opened
    played = scenarios.parse(scenario)(opened.labels, seed, opened.hierarchy)
    return replace(opened, labels=played, truth=opened.truth or opened.labels)
