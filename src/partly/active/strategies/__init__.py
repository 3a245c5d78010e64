"""Queries: which unknown entries to ask people about. One strategy per file; a file dropped in here is a strategy.

A file defines `scores(method, pool, clock, *, settings...)`. For block after block of `pool.in_order()` it yields a
dictionary of tensors [B, L] (or NumPy arrays): "score" (higher: ask first), and further scores to report. A strategy
that predicts does so with `method.logits`, which respects the hierarchy, and yields "probability" too, which saves the
annotation server a second pass. One that needs no items iterates over `pool.labels_in_order()`. The method is in
evaluation mode. Known entries get a score too; they are never asked (`partly.active.selection`). A file may also define
`check(method)`, which refuses a method that it cannot ask, trained or not.

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
from partly.items import absent

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


def check(query: str, plan: Plan) -> None:
    """Refuse a method that this query cannot ask, before it is trained. It is built without data and per-entry state,
    and only for a query that checks methods."""
    refuse = getattr(find(query).module, "check", None)
    if refuse is not None:
        names = plan.labels.names
        refuse(build_method(plan.config, absent(plan.items), len(names), names=names))


def queries() -> dict[str, dict[str, Any]]:
    """What queries there are: name -> summary, citation and settings with their defaults.

    Returns
    -------
    dict
        From a name to a dictionary.

    Examples
    --------
    >>> import partly
    >>> sorted(partly.queries())
    ['diverse', 'look-ahead', 'random', 'uncertainty']
    >>> partly.queries()["uncertainty"]["summary"]
    'The unknown entries whose prediction is closest to a toss-up: highest entropy first.'
    """
    return {name: info.words() for name, info in discover().items()}


def __getattr__(name: str) -> Any:
    """Find names that have moved to `partly.active.selection`, with a warning."""
    moved = {"choose": "select_questions", "Questions": "Questions"}
    if name not in moved:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    words = f"partly.active.strategies.{name} is now partly.active.selection.{moved[name]}."
    warnings.warn(words, DeprecationWarning, stacklevel=2)
    return getattr(importlib.import_module("partly.active.selection"), moved[name])
