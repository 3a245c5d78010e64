"""Read the hierarchy of an ontology in the OBO format, such as the Gene Ontology.

The tags id, name, is_a, relationship: part_of and is_obsolete of each `[Term]` are read (OBO flat file format 1.4).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from partly.data.compression import open_decompressed
from partly.data.paths import error_prefix
from partly.errors import DataError, listing
from partly.labels.hierarchy import Hierarchy

PARENT_TAGS = {"is_a": "", "relationship": "part_of "}  # tag -> prefix of its value
MAX_LINE_BYTES = 1 << 20


@dataclass
class _Term:
    id: str = ""
    name: str = ""
    parents: list[str] = field(default_factory=list)
    obsolete: bool = False


def read_obo(path: Path, names: Collection[str] | None = None) -> Hierarchy:
    """Return the hierarchy of the terms that are not obsolete.

    With `names`, terms are matched with the labels by id or by name, whichever matches more. Other terms are left out,
    and each label is placed below its nearest ancestors.
    """
    terms = {term.id: term for term in _read_terms(path) if not term.obsolete}
    unknown = {parent for term in terms.values() for parent in term.parents} - set(terms)
    if unknown:
        raise DataError(f"{path}: {len(unknown)} parents have no term" + listing(sorted(unknown), len(unknown)))
    wanted = set(names or ())
    by_name = sum(term.name in wanted for term in terms.values()) > sum(term in wanted for term in terms)
    label_of = {number: term.name if by_name else number for number, term in terms.items()}
    with error_prefix(path):
        whole = Hierarchy(
            {
                label_of[number]: tuple(label_of[parent] for parent in term.parents)
                for number, term in terms.items()
                if term.parents
            }
        )
    part = whole if names is None else whole.restrict(tuple(names))
    if part is None:
        raise DataError(f"{path}: no label is below another one" + listing(sorted(wanted), len(wanted)))
    return part


def _read_terms(path: Path) -> list[_Term]:
    terms: list[_Term] = []
    term: _Term | None = None
    with open_decompressed(path) as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            line = _decode(raw, path, number)
            if line.startswith("["):
                term = _Term() if line == "[Term]" else None
                terms += [term] if term is not None else []
            elif term is not None and line:
                _add_tag(term, line, f"{path}, line {number}")
    if nameless := sum(not term.id for term in terms):
        raise DataError(f"{path}: {nameless} terms have no id.")
    if not terms:
        raise DataError(f"{path}: holds no [Term]. Is it an ontology in the OBO format?")
    return terms


def _add_tag(term: _Term, line: str, place: str) -> None:
    tag, colon, value = line.partition(":")
    if not colon:
        raise DataError(f"{place}: {line[:40]!r} is no `tag: value`.")
    value = value.partition(" ! ")[0].strip()
    if tag == "id":
        term.id = value
    elif tag == "name":
        term.name = value
    elif tag == "is_obsolete":
        term.obsolete = value == "true"
    elif tag in PARENT_TAGS and value.startswith(PARENT_TAGS[tag]):
        term.parents.append(value.removeprefix(PARENT_TAGS[tag]).partition(" ")[0])


def _decode(raw: bytes, path: Path, number: int) -> str:
    if len(raw) == MAX_LINE_BYTES:
        raise DataError(f"{path}, line {number}: is longer than {MAX_LINE_BYTES:,} bytes.")
    try:
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: is no UTF-8 text.") from error
