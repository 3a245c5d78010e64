"""Choose what a command trains on: the items of a data set, and the labels that a scenario leaves known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from partly import methods, scenarios
from partly.cli.printing import say
from partly.data import Dataset
from partly.labels import Labels


def select_items(opened: Dataset, method: str) -> tuple[Dataset, str]:
    """Keep items without a row in the label file if the method learns from them; print and return a note on them."""
    count = len(opened.unlabelled_rows)
    if not count:
        return opened, ""
    included = methods.find(method).about.learns_from_unknown
    left_out = f"{method} does not learn from them, so they are left out (add empty rows to keep them)"
    note = describe_unlabelled(count, f"{method} learns from them, too" if included else left_out)
    say(note)
    return (opened.include_unlabelled() if included else replace(opened, with_unlabelled=None)), note


def describe_unlabelled(count: int, use: str) -> str:
    """Describe items that the label file does not mention, and how they are used."""
    return f"{count:,} items have no row in the label file, so all their labels are unknown; {use}."


def with_ids(labels: Labels, index: npt.NDArray[np.int64]) -> Labels:
    """Return labels of some items; items without ids are named by their position among all."""
    return labels[index] if labels.given_ids is not None else labels[index].with_ids(map(str, index.tolist()))


def apply_scenario(opened: Dataset, scenario: str | None, seed: int) -> Dataset:
    """Hide labels according to a scenario; the original labels become the truth."""
    if scenario is None:
        return opened
    observed = scenarios.parse(scenario)(opened.labels, seed, opened.hierarchy)
    if opened.labels.known_per_item().any() and not observed.known_per_item().any():
        say(f"Warning: {scenario} leaves no entry known. With few labels, uniform-per-entry keeps small shares.")
    return replace(opened, labels=observed, truth=opened.truth or opened.labels)
