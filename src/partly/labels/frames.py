"""Predictions as a table: a row per item, under its index, and a column per label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partly.errors import SettingError

KINDS = ("default", "pandas")


def check_output_kind(kind: Any) -> str:
    """What `set_output` is asked for."""
    if kind not in KINDS:
        raise SettingError(f"set_output(transform={kind!r}): predictions are arrays, 'default', or tables, 'pandas'.")
    return str(kind)


def to_output(values: Any, kind: str, names: Sequence[str], X: Any) -> Any:
    """Values [N, L] of the items X as they are, or as a table."""
    if kind == "default":
        return values
    import pandas as pd

    return pd.DataFrame(values, index=X.index if hasattr(X, "iloc") else None, columns=list(names))
