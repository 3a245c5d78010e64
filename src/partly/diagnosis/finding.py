"""What a check has found, in words and in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["problem", "warning", "note", "fine"]  # fine: worth saying, nothing to do


@dataclass(frozen=True)
class Finding:
    """words: what it is; remedy: what to do about it; the rest: where, and how much of it."""

    level: Level
    words: str
    remedy: str = ""
    labels: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    entries: tuple[dict[str, Any], ...] = ()  # item, label, given, probability

    def plain(self, check: str) -> dict[str, Any]:
        """For JSON, without what is empty."""
        told = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {"check": check} | {name: value for name, value in told.items() if value}


def some(names: tuple[str, ...], most: int = 5) -> str:
    """The first of them, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
