"""Question strategies, also called queries: one per file. A file dropped in here is found by its name.

A file defines `scores(method, pool, clock, *, settings...)`. For block after block of `pool.in_order()` it yields a
dictionary of tensors [B, L] (or NumPy arrays): "score" (higher: ask first), and further scores to report. A strategy
that predicts uses `method.logits`, which respects the hierarchy, and yields "probability" too, which saves the
annotation server a second pass. A strategy without predictions iterates over `pool.labels_in_order()`, which reads no
items. The method is in evaluation mode. Known entries get a score too, but they are never asked (see `selection`). A
file may define `check(method)`, which refuses a method that the strategy cannot use, fitted or not.

`partly.queries()` lists the strategies.
"""

from __future__ import annotations

import importlib
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from partly import registry
from partly.engine import Plan, build_method
from partly.items import to_absent

Floats = npt.NDArray[np.floating[Any]]
Parts = Mapping[str, Tensor | Floats]
Strategy = Callable[..., Iterator[Parts]]


def discover() -> dict[str, registry.Info]:
    """Every strategy in the folder, by name (file name, `_` written `-`)."""
    return registry.folder(__name__, "query", _scores, registry.Info)


def _scores(module: types.ModuleType) -> Strategy:
    strategy: Strategy = module.scores
    return strategy


def find(name: str) -> registry.Info:
    return registry.find(name, discover(), "query")


def check_method(query: str, plan: Plan) -> None:
    """Refuse a method that this query cannot use, before training.

    The method is built without data and per-entry state, and only if the query checks methods.
    """
    check = getattr(find(query).module, "check", None)
    if check is not None:
        names = plan.labels.names
        check(build_method(plan.config, to_absent(plan.items), len(names), names=names))


def queries() -> dict[str, dict[str, Any]]:
    """Return the question strategies: name -> summary, citation and settings with their defaults.

    Returns
    -------
    dict
        A dictionary per name.

    Examples
    --------
    >>> import partly
    >>> sorted(partly.queries())
    ['diverse', 'look-ahead', 'random', 'uncertainty']
    >>> partly.queries()["uncertainty"]["summary"]
    'Uncertainty sampling: the unknown entries whose prediction has the highest entropy.'
    """
    return {name: info.words() for name, info in discover().items()}


def __getattr__(name: str) -> Any:
    """Return names that have moved to `partly.active.selection`, with a warning."""
    moved = {"choose": "select_questions", "Questions": "Questions"}
    if name not in moved:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"partly.active.strategies.{name} is now partly.active.selection.{moved[name]}."
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return getattr(importlib.import_module("partly.active.selection"), moved[name])
