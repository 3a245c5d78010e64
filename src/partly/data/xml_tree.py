"""Small XML files as trees. A file that declares entities is refused: they are made to blow up or to fetch others."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

from partly.errors import DataError, listing


def read_xml(path: Path) -> Element:
    """The root; names are without their namespace."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True

    def refuse(name: str, *_: object) -> None:
        raise DataError(f"{path}: declares the entity {name!r}, and is not read for it. Take the declaration out.")

    def start(tag: str, attributes: dict[str, str]) -> None:
        builder.start(tag.rpartition(":")[2], attributes)

    def end(tag: str) -> None:
        builder.end(tag.rpartition(":")[2])

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = builder.data, refuse
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except (expat.ExpatError, OSError, ValueError) as error:
        raise error if isinstance(error, DataError) else DataError(f"{path}: cannot be read ({error}).") from error
    return builder.close()


def as_xml(word: str) -> str:
    """Text that comes back as it is: unescaped, an end of line and a tab would not."""
    return escape(word, {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;", '"': "&quot;"})


def refuse_no_xml(words: list[str], path: Path) -> None:
    """Characters that no XML may hold."""
    bad = [word for word in words if any((c < " " and c not in "\r\n\t") or c in "\ufffe\uffff" for c in word)]
    if bad:
        raise DataError(
            f"{path}: names with characters that XML cannot hold: {len(bad)}" + listing(map(repr, bad), len(bad))
        )
