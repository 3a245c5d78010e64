"""Scenarios by name, as in the command line and experiments: 'uniform:0.1', 'propensity', ..."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from partly.errors import SettingError, did_you_mean
from partly.labels import Labels
from partly.labels.hierarchy import Hierarchy
from partly.scenarios import hiding
from partly.scenarios.draws import check_share

_BY_NAME: dict[str, Callable[..., Labels]] = {
    scenario.__name__.replace("_", "-"): scenario
    for scenario in (
        hiding.uniform,
        hiding.positives,
        hiding.propensity,
        hiding.single_positive,
        hiding.one_yes_all_no,
        hiding.dense,
        hiding.noisy,
        hiding.noisy_plus,
        hiding.coarse_only,
    )
} | {"uniform-per-entry": partial(hiding.uniform, per_entry=True)}


def names() -> list[str]:
    """Return the names of the scenarios."""
    return list(_BY_NAME)


def kind(text: str) -> str:
    """Return the name of a scenario without its share: 'uniform' for 'uniform:0.1'."""
    return text.partition(":")[0].strip().replace("_", "-")


def parse(text: str) -> Callable[..., Labels]:
    """Parse 'uniform:0.1', 'single-positive', ... into a function (truth, seed, hierarchy=None) -> Labels."""
    name, (_, colon, number) = kind(text), text.strip().partition(":")
    if name not in _BY_NAME:
        raise SettingError(f"There is no scenario {name!r}.{did_you_mean(name, _BY_NAME)}")
    scenario = _BY_NAME[name]
    parameters = inspect.signature(scenario).parameters
    optional = "share" in parameters and parameters["share"].default is None
    if ("share" in parameters) != bool(colon) and not optional:
        right = f"{name}:0.1" if "share" in parameters else name
        raise SettingError(
            f"Scenario {text!r}: {'no share given' if not colon else 'takes no share'}; write {right!r}."
        )
    settings = {"share": check_share(_number(number), name)} if colon else {}

    def apply(truth: Any, seed: int, hierarchy: Hierarchy | None = None) -> Labels:
        if "hierarchy" not in parameters:
            return scenario(truth, seed=seed, **settings)
        if hierarchy is None:
            raise SettingError(f"Scenario {name!r} needs a hierarchy of the labels (child -> parent); none was given.")
        return scenario(truth, hierarchy, seed=seed, **settings)

    return apply


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # refused by check_share
