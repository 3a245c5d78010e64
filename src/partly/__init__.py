"""Multi-label classifiers from partly known labels: every entry is yes, no or unknown."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from partly import active, data, lookahead, losses, metrics, networks, progression, scenarios, selection, similarity
    from partly.catalogue import methods
    from partly.comparison import compare
    from partly.errors import PartlyError
    from partly.estimator import Classifier
    from partly.hierarchy import Hierarchy
    from partly.labels import Labels
    from partly.queries import queries

__all__ = [
    "Classifier",
    "Hierarchy",
    "Labels",
    "PartlyError",
    "active",
    "compare",
    "data",
    "lookahead",
    "losses",
    "methods",
    "metrics",
    "networks",
    "progression",
    "queries",
    "scenarios",
    "selection",
    "similarity",
]

# Public name -> the module that holds it. Imported when first asked for, so that `partly --help` needs no torch.
_HOMES = {
    "Classifier": "partly.estimator",
    "compare": "partly.comparison",
    "Hierarchy": "partly.hierarchy",
    "Labels": "partly.labels",
    "PartlyError": "partly.errors",
    "methods": "partly.catalogue",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in __all__:
        return importlib.import_module(f"partly.{name}")
    raise AttributeError(f"module 'partly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
