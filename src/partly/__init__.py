"""Multi-label classifiers from partly known labels: every entry is yes, no or unknown."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from partly import moved

__version__ = "0.3.0"  # the only definition; CITATION.cff and CHANGELOG.md are compared with it by a test

if TYPE_CHECKING:
    from partly import (
        active,
        data,
        export,
        items,
        lookahead,
        losses,
        metrics,
        model_choice,
        model_selection,
        networks,
        scenarios,
        selection,
        similarity,
        teachers,
    )
    from partly.active.strategies import queries
    from partly.comparison import compare
    from partly.completion import complete
    from partly.data import Dataset, read, write
    from partly.doctor import doctor
    from partly.errors import PartlyError
    from partly.estimators.classifier import Classifier, calibrate
    from partly.estimators.per_label import PerLabel, load
    from partly.labels import Hierarchy, Labels
    from partly.ledger import Ledger
    from partly.methods import discover, find
    from partly.model_choice import priors
    from partly.model_choice.criteria import criteria

    class _Methods:
        """Stub for type checkers: the module `methods` can also be called."""

        discover = staticmethod(discover)
        find = staticmethod(find)

        def __call__(self) -> dict[str, dict[str, Any]]: ...

        methods = __call__

    methods = _Methods()

__all__ = [
    "Classifier",
    "Dataset",
    "Hierarchy",
    "Labels",
    "Ledger",
    "PartlyError",
    "PerLabel",
    "active",
    "calibrate",
    "compare",
    "complete",
    "criteria",
    "data",
    "doctor",
    "export",
    "items",
    "load",
    "lookahead",
    "losses",
    "methods",
    "metrics",
    "model_choice",
    "model_selection",
    "networks",
    "priors",
    "queries",
    "read",
    "scenarios",
    "selection",
    "similarity",
    "teachers",
    "write",
]

# Public name -> the module that holds it. Imported when first asked for, so that `partly --help` needs no torch.
_MODULE_OF = {
    "Classifier": "partly.estimators.classifier",
    "Dataset": "partly.data",
    "calibrate": "partly.estimators.classifier",
    "compare": "partly.comparison",
    "complete": "partly.completion",
    "criteria": "partly.model_choice.criteria",
    "Hierarchy": "partly.labels",
    "Labels": "partly.labels",
    "Ledger": "partly.ledger",
    "load": "partly.estimators.per_label",
    "PartlyError": "partly.errors",
    "PerLabel": "partly.estimators.per_label",
    "priors": "partly.model_choice",
    "queries": "partly.active.strategies",
    "read": "partly.data",
    "write": "partly.data",
}

moved.install()

if not TYPE_CHECKING:  # with it, type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name in _MODULE_OF:
            return getattr(importlib.import_module(_MODULE_OF[name]), name)
        if name in __all__ or f"partly.{name}" in moved.MOVED:
            return importlib.import_module(f"partly.{name}")
        raise AttributeError(f"module 'partly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
