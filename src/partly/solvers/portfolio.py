"""Helpers of the portfolio `auto`: the weight of the forest, the time budget, and the summary of the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from partly.errors import SettingError
from partly.executors import is_parallel, run_parts
from partly.solvers.blending import MIN_GAIN, Blend, blend_or_first, relative_gains
from partly.solvers.logistic import Floats

DEFAULT_MINUTES = 5.0  # of a portfolio
FOREST_WEIGHT = 0.6  # weight of a forest that is as good as the best kernel machine
DEFICIT_SHARE, DEFICIT_FLOOR = 0.15, 0.02  # its weight decays with deficit / (share of the best gain + floor)
Outcome = tuple[Any, Exception | None]  # result of a step, or its error


def explain_portfolio(
    models: list[dict[str, Any]], gain: float, left_out: dict[str, str], only_yes: bool, related: bool, crowd: float
) -> str:
    """Return a summary of the models and their weights."""
    names = {model["name"]: model["name"].replace("_", " ") for model in models}
    best = max(models, key=lambda model: model["score"])
    weights = ", ".join(f"{names[model['name']]} {model['weight']:.0%}" for model in models if model["weight"] >= 0.005)
    basis = "unknown entries count as negatives, since no negative is known" if only_yes else "on known entries"
    sentences = [
        f"{len(models)} models, weighted by how much each reduces the held-out log loss ({basis}): {weights}",
        f"joint reduction {gain:.1%}, best single model ({names[best['name']]}) {best['score']:.1%}, plain logistic "
        f"regression {models[0]['score']:.1%}",
    ]
    sentences += ["relations between labels are used"] if related else []
    sentences += [f"labels of an item compete (strength {crowd:g})"] if crowd else []
    sentences += [f"left out: {', '.join(f'{name} ({why})' for name, why in left_out.items())}"] if left_out else []
    return "; ".join(sentences) + "."


def blend_with_forest(
    held_out: list[Floats], losses: list[float], weights: Floats, targets: Floats
) -> tuple[Blend, float]:
    """Blend kernel machines and forest; return the blend and the share of the forest.

    The share falls with the deficit of the forest, and is 0 if the blend is clearly worse than the kernel machines.
    """
    kernels, forest = relative_gains(losses, weights, targets)
    best = max(kernels, MIN_GAIN)
    share = FOREST_WEIGHT * math.exp(max(-50.0, min(0.0, forest - best)) / (DEFICIT_SHARE * best + DEFICIT_FLOOR))
    found, (_, share) = blend_or_first(held_out, [1 - share, share], losses, weights, targets)
    return found, share


def parse_budget(budget: float | str | None) -> tuple[float, bool]:
    """Return the amount, and whether it is in multiples of a plain fit; otherwise it is in seconds. None: the
    default."""
    text = str(DEFAULT_MINUTES if budget is None else budget)
    in_fits = text.endswith("x")
    try:
        amount = float(text.removesuffix("x"))
    except ValueError:
        amount = math.nan
    if not amount > 0:
        raise SettingError(f"budget = {budget!r} should be minutes (5), or multiples of a plain fit ('20x').")
    return (amount, True) if in_fits else (amount * 60, False)


def compute_steps(compute: Callable[[str], Any], step: str, peers: list[str]) -> dict[str, Outcome]:
    """Return the result of a step, or the error that the data caused; on executors, those of its peers too, which do
    not depend on each other."""
    return dict(run_parts(peers if is_parallel() else [step], partial(_attempt, compute)))


def _attempt(compute: Callable[[str], Any], step: str) -> Outcome:
    try:
        return compute(step), None
    except (ArithmeticError, LookupError, MemoryError, RuntimeError, ValueError) as error:
        return None, error
