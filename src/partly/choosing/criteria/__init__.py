"""Criteria: what scores of held-out items are worth, judged by observed entries alone. One per file; a file dropped in
here is a criterion.

A file defines `criterion(scores, labels, *, settings...) -> float`, of which more is better, and NaN means that what is
known does not define it. scores: [N, L], of models that did not see these labels (held out, or out of fold). The file
says in a paragraph `Assumes:` what must hold of the unknown entries for it to order models as the truth would.

`partly.criteria()` lists them.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from partly import catalogue


class CriterionInfo(catalogue.Info):
    """A criterion as its file shows it."""

    @property
    def assumes(self) -> str:
        """What must hold for it to order models rightly."""
        parts = [part for part in self.text.split("\n\n") if part.startswith("Assumes:")]
        return " ".join(" ".join(parts).removeprefix("Assumes:").split())

    def words(self) -> dict[str, Any]:
        return super().words() | {"assumes": self.assumes}


def discover() -> dict[str, CriterionInfo]:
    """Every criterion in the folder, by name (file name, `_` written `-`)."""
    return catalogue.folder(__name__, "criterion", _criterion, CriterionInfo)


def _criterion(module: types.ModuleType) -> Callable[..., float]:
    made: Callable[..., float] = module.criterion
    return made


def find(name: str) -> CriterionInfo:
    return catalogue.find(name, discover(), "criterion")


def criteria() -> dict[str, dict[str, Any]]:
    """What criteria there are: name -> summary, what it assumes, citation and settings with their defaults.

    Returns
    -------
    dict
        From a name to a dictionary.

    Examples
    --------
    >>> import partly
    >>> partly.criteria()["log-loss"]["assumes"].partition(".")[0]
    'known entries are missing at random'
    """
    return {name: info.words() for name, info in discover().items()}
