"""Small XML files as trees. Files that declare entities are refused, since entities can expand or fetch other files."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

from partly.errors import DataError, listing


def read_xml(path: Path) -> Element:
    """Return the root element; tags have no namespace."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True

    def refuse(name: str, *_: object) -> None:
        raise DataError(f"{path}: declares the entity {name!r}, which is not allowed. Remove the declaration.")

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


def as_xml(text: str) -> str:
    """Escape text so that it is read back unchanged, line ends and tabs included."""
    return escape(text, {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;", '"': "&quot;"})


def refuse_invalid_xml(texts: list[str], path: Path) -> None:
    """Refuse characters that XML does not allow."""
    bad = [text for text in texts if any((c < " " and c not in "\r\n\t") or c in "\ufffe\uffff" for c in text)]
    if bad:
        raise DataError(
            f"{path}: names with characters that XML does not allow: {len(bad)}" + listing(map(repr, bad), len(bad))
        )
