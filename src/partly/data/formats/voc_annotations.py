"""Pascal VOC annotations: a folder with one XML file per image, with its `filename` and `object`s.

Difficult objects count as yes. Labels that are not annotated may be absent or overlooked; the caller chooses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from partly.atomic_io import atomic_directory
from partly.data.label_semantics import LabelSemantics, labels_of, warn_of_dropped
from partly.data.protocols import LabelFormat
from partly.data.xml_tree import as_xml, read_xml, refuse_invalid_xml
from partly.errors import DataError, PartlyError
from partly.labels import Labels

ROOT = "annotation"


def recognizes(path: Path) -> bool:
    """Return whether the first XML file of the folder, or of its subfolder `Annotations`, is an annotation."""
    first = next(islice(_files(path), 1), None) if path.is_dir() else None
    try:
        return first is not None and read_xml(first).tag == ROOT
    except PartlyError:
        return False


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    semantics.need_absent(path, "VOC annotations: labels that are not annotated may be absent or overlooked.")
    columns: dict[str, int] = {}
    ids: list[str] = []
    entries: list[tuple[int, int]] = []
    for file in _files(path):
        root = read_xml(file)
        if root.tag != ROOT:
            raise DataError(f"{file}: is a {root.tag!r} instead of an {ROOT!r}. Remove it from the folder.")
        object_names = [element.findtext("name") or "" for element in root.iter("object")]
        if "" in object_names:
            raise DataError(f"{file}: an object has no name. Add one, or remove the object.")
        entries += [(len(ids), columns.setdefault(name, len(columns))) for name in object_names]
        ids.append(root.findtext("filename") or file.stem)
    rows, cells = ([pair[k] for pair in entries] for k in (0, 1))
    return labels_of(rows, cells, [1] * len(rows), ids, list(columns), semantics=semantics, path=path, wanted=names)


def write(labels: Labels, path: Path) -> None:
    """Write one file per item, named after it if possible."""
    refuse_invalid_xml([*labels.ids, *labels.names], path)
    warn_of_dropped((), [name for name, yes in zip(labels.names, labels.counts()[0], strict=True) if not yes], path)
    stems = _stems(labels.ids)
    with atomic_directory(path) as folder:
        for i, (name, stem) in enumerate(zip(labels.ids, stems, strict=True)):
            positives = [labels.names[j] for j in (labels.rows([i])[0] == 1).nonzero()[0]]
            objects = "".join(f"  <object><name>{as_xml(label)}</name></object>\n" for label in positives)
            text = f"<{ROOT}>\n  <filename>{as_xml(name)}</filename>\n{objects}</{ROOT}>\n"
            (folder / f"{stem}.xml").write_text(text, "utf-8", newline="")


def _files(path: Path) -> list[Path]:
    """Return the XML files in order; the folder of a VOC year has them in `Annotations`."""
    return sorted((path / "Annotations" if (path / "Annotations").is_dir() else path).glob("*.xml"))


def _stems(ids: Sequence[str]) -> list[str]:
    """Return file names from the ids without suffixes; numbers if these are not safe, unique and sorted."""
    stems = [PurePosixPath(name).stem for name in ids]
    safe = all(
        stem.replace("-", "").replace("_", "").isalnum() and stem.isascii() and len(stem) < 200 for stem in stems
    )
    plain = safe and max(Counter(stem.casefold() for stem in stems).values(), default=1) == 1
    return stems if plain and sorted(stems) == stems else [f"{i:08d}" for i in range(len(ids))]


FORMAT = LabelFormat(recognizes, read, write, positives_only=True)
