"""A ledger (`partly.ledger`) as labels: what it knows by now, or in the state that the place names.

    labels.db    labels.db?at=12    labels.db?at=2026-03-01T12:00&models=yes    postgresql://anna@server/labels

What models said is left out unless it is asked for: labels are what was observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from partly.data.label_semantics import LabelSemantics
from partly.data.matching import reorder_columns
from partly.data.paths import error_prefix
from partly.data.protocols import LabelFormat
from partly.labels import Hierarchy, Labels
from partly.ledger import Ledger, is_sqlite, is_url, without_password
from partly.ledger.location import state_options

SUFFIXES = (".db", ".sqlite", ".sqlite3")


def recognizes(path: Path) -> bool:
    """By content; and every file that is called so, since opening it says best what is wrong with it."""
    if is_url(path):
        return True
    file = path if path.exists() else Path(str(path).partition("?")[0])
    return is_sqlite(file) or (file.suffix.lower() in SUFFIXES and file.is_file())


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    place = without_password(path)
    state: Any = state_options(place)
    with error_prefix(Path(place.shown)):
        labels = Ledger(place).labels(**state)
        return semantics.filled(labels if names is None else reorder_columns(labels, names, place.shown), place.shown)


def write(labels: Labels, path: Path) -> None:
    """A new ledger, in which they are an import; one that is there already is not replaced, since it forgets nothing:
    `partly ledger import` appends."""
    with Ledger.create_atomically(without_password(path)) as made:
        made.add(labels.names)
        made.append_labels(labels, author="labels")


def hierarchy(path: Path) -> Hierarchy | None:
    """That of its vocabulary."""
    place = without_password(path)
    return Ledger(place).hierarchy(dict(place.state).get("at"))


def heirs(path: Path, before: Sequence[str]) -> dict[str, list[str]]:
    """Of each label the one of `before` (labels of a model, say) that it is, under whatever name; else those that were
    merged into it; else the nearest above it."""
    place = without_password(path)
    there = Ledger(place).vocabulary(dict(place.state).get("at"))
    found = zip(there.names, there.sources(before), strict=True)
    return {name: [before[j] for j in positions] for name, positions in found}


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
