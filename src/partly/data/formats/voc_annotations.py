"""Pascal VOC: a folder of XML files, one an image, each with its `filename` and the `object`s that are in it.

An object that is called difficult is there too. What is not annotated may be absent or overlooked: the caller says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from partly.atomic_io import atomic_directory
from partly.data.label_semantics import LabelSemantics, labels_of, tell_lost
from partly.data.protocols import LabelFormat
from partly.data.xml_tree import as_xml, read_xml, refuse_no_xml
from partly.errors import DataError, PartlyError
from partly.labels import Labels

ROOT = "annotation"


def recognizes(path: Path) -> bool:
    """A folder whose first XML file is an annotation; VOC's own has it one step down, in `Annotations`."""
    first = next(islice(_files(path), 1), None) if path.is_dir() else None
    try:
        return first is not None and read_xml(first).tag == ROOT
    except PartlyError:
        return False


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    semantics.need_absent(path, "VOC annotations: what is not annotated may be absent or overlooked.")
    columns: dict[str, int] = {}
    ids: list[str] = []
    entries: list[tuple[int, int]] = []
    for file in _files(path):
        root = read_xml(file)
        if root.tag != ROOT:
            raise DataError(f"{file}: is a {root.tag!r}, where an {ROOT!r} should be. Take it out of the folder.")
        said = [one.findtext("name") or "" for one in root.iter("object")]
        if "" in said:
            raise DataError(f"{file}: an object without a name. Give it one, or take it out.")
        entries += [(len(ids), columns.setdefault(word, len(columns))) for word in said]
        ids.append(root.findtext("filename") or file.stem)
    rows, cells = ([pair[k] for pair in entries] for k in (0, 1))
    return labels_of(rows, cells, [1] * len(rows), ids, list(columns), semantics=semantics, path=path, wanted=names)


def write(labels: Labels, path: Path) -> None:
    """A file for each item, named after it where that can be done."""
    refuse_no_xml([*labels.ids, *labels.names], path)
    tell_lost((), [name for name, yes in zip(labels.names, labels.counts()[0], strict=True) if not yes], path)
    stems = _stems(labels.ids)
    with atomic_directory(path) as folder:
        for i, (name, stem) in enumerate(zip(labels.ids, stems, strict=True)):
            there = [labels.names[j] for j in (labels.rows([i])[0] == 1).nonzero()[0]]
            objects = "".join(f"  <object><name>{as_xml(word)}</name></object>\n" for word in there)
            text = f"<{ROOT}>\n  <filename>{as_xml(name)}</filename>\n{objects}</{ROOT}>\n"
            (folder / f"{stem}.xml").write_text(text, "utf-8", newline="")


def _files(path: Path) -> list[Path]:
    """In order; VOC's folder of a year has them in `Annotations`."""
    return sorted((path / "Annotations" if (path / "Annotations").is_dir() else path).glob("*.xml"))


def _stems(ids: Sequence[str]) -> list[str]:
    """The ids without their endings, as file names; numbers, where these would not do."""
    stems = [PurePosixPath(name).stem for name in ids]
    safe = all(
        stem.replace("-", "").replace("_", "").isalnum() and stem.isascii() and len(stem) < 200 for stem in stems
    )
    plain = safe and max(Counter(stem.casefold() for stem in stems).values(), default=1) == 1
    return stems if plain and sorted(stems) == stems else [f"{i:08d}" for i in range(len(ids))]


FORMAT = LabelFormat(recognizes, read, write, positives_only=True)
