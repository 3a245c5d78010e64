"""Predictions as arrays or pandas tables, for `set_output`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partly.errors import SettingError

KINDS = ("default", "pandas")


def check_output_kind(kind: Any) -> str:
    """Return the kind of output; refuse an unknown one."""
    if kind not in KINDS:
        raise SettingError(f"set_output(transform={kind!r}): predictions are arrays, 'default', or tables, 'pandas'.")
    return str(kind)


def to_output(values: Any, kind: str, names: Sequence[str], X: Any) -> Any:
    """Return values [N, L] as an array, or as a table with the index of X and a column per label."""
    if kind == "default":
        return values
    import pandas as pd

    return pd.DataFrame(values, index=X.index if hasattr(X, "iloc") else None, columns=list(names))
