"""Whether known entries speak for unknown ones: what the doctor has to say of it, and what shows without any test."""

from __future__ import annotations

from typing import Any

from partly.diagnosis.context import CheckContext
from partly.diagnosis.model_checks import missing_by_features
from partly.errors import DataError
from partly.items import as_items
from partly.labels import Labels


def reason_not_mar(said: Labels, X: Any, seed: int) -> str:
    """Why entries are not known by chance; '' where nothing shows it. Items that are no features are not tested."""
    yes, no = said.counts()
    if not (yes.any() and no.any()):
        return "only yes is known" if yes.any() else "only no is known"
    try:
        context = CheckContext(said, as_items(X), seed=seed)
    except DataError:  # what another library takes for items
        return ""
    if context.lacks("features"):
        return ""
    found = [one.words for one in missing_by_features(context) if one.level == "warning"]
    return found[0].rstrip(".") if found else ""
