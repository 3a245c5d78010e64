"""The labels of a ledger (`partly.ledger`), now or in an earlier state.

    labels.db    labels.db?at=12    labels.db?at=2026-03-01T12:00&models=yes    postgresql://anna@server/labels

Statements of models are ignored unless `models=yes`, because labels are observations; those of language models also
need an audit by people.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from partly.data.label_semantics import LabelSemantics
from partly.data.matching import reorder_columns
from partly.data.paths import error_prefix
from partly.data.protocols import LabelFormat
from partly.errors import DataError, listing
from partly.labels import Hierarchy, Labels
from partly.ledger import Ledger, is_sqlite, is_url, without_password
from partly.ledger.location import state_options

SUFFIXES = (".db", ".sqlite", ".sqlite3")


def recognizes(path: Path) -> bool:
    """Return whether this is a URL, a SQLite database, or a file with such a suffix (opening it reports the error)."""
    if is_url(path):
        return True
    file = path if path.exists() else Path(str(path).partition("?")[0])
    return is_sqlite(file) or (file.suffix.lower() in SUFFIXES and file.is_file())


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    place = without_password(path)
    state: Any = state_options(place)
    with error_prefix(Path(place.address)):
        ledger = Ledger(place)
        if state.get("models"):
            refuse_unaudited(ledger, state.get("at"))
        labels = ledger.labels(**state)
        return semantics.fill_absent(
            labels if names is None else reorder_columns(labels, names, place.address), place.address
        )


def refuse_unaudited(ledger: Ledger, at: Any) -> None:
    """Refuse to learn from a language model before people have answered a sample of its statements."""
    batches = ledger.unaudited(at)
    if batches:
        raise DataError(
            f"{len(batches)} batches of language models are not audited yet"
            + listing((batch.words for batch in batches), len(batches))
            + "\nAnswer questions with `partly annotate`, which asks about a random sample, or leave out models=yes."
        )


def write(labels: Labels, path: Path) -> None:
    """Write a new ledger with the labels as an import; an existing one is never replaced."""
    with Ledger.create_atomically(without_password(path)) as ledger:
        ledger.add(labels.names)
        ledger.append_labels(labels, author="labels")


def hierarchy(path: Path) -> Hierarchy | None:
    """Return the hierarchy of the vocabulary."""
    place = without_password(path)
    return Ledger(place).hierarchy(dict(place.state).get("at"))


def label_sources(path: Path, before: Sequence[str]) -> dict[str, list[str]]:
    """Return the labels of `before` that each label comes from.

    That is the same label under an earlier name, else the labels merged into it, else its nearest ancestor.
    """
    place = without_password(path)
    vocabulary = Ledger(place).vocabulary(dict(place.state).get("at"))
    sources = zip(vocabulary.names, vocabulary.sources(before), strict=True)
    return {name: [before[j] for j in positions] for name, positions in sources}


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
