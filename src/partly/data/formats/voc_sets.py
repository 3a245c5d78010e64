"""Pascal VOC image sets (`ImageSets/Main`): `train.txt` lists images; `cat_train.txt` has a value for one label.

The values are 1 (present), -1 (absent) and 0 (present, but difficult); images without a line are unknown. `train.txt`
reads all labels that have a file of this set, `cat_train.txt` only its own. VOC does not score difficult entries, so
they are unknown, unless the caller chooses otherwise with `uncertain=`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from partly.atomic_io import atomic_output
from partly.data.compression import open_decompressed
from partly.data.label_semantics import LabelSemantics, labels_of
from partly.data.paths import format_suffix
from partly.data.protocols import LabelFormat
from partly.data.tables import UNCERTAIN
from partly.errors import DataError, listing
from partly.labels import Labels

SUFFIXES = (".txt",)
VALUES = {"1": 1, "+1": 1, "-1": -1, "0": UNCERTAIN}


def recognizes(path: Path) -> bool:
    """Return whether the first line is an id with a value, or an id alone with label files in the same folder."""
    if format_suffix(path) not in SUFFIXES or not path.is_file():
        return False
    with open_decompressed(path) as file:
        cells = file.readline(1000).decode("utf-8", "replace").split()
    return (len(cells) == 2 and cells[1] in VALUES) or (len(cells) <= 1 and bool(_label_files(path)))


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    files = _label_files(path)
    ids: dict[str, int] = {}
    if files:
        for _, cells in _lines(path, 1):
            ids.setdefault(cells[0], len(ids))
    else:
        files = {path.stem.rpartition("_")[0] or path.stem: path}
    rows, columns, z, wrong = array("i"), array("i"), array("b"), []
    for column, file in enumerate(files.values()):
        for number, (item, value) in _lines(file, 2):
            if value not in VALUES:
                wrong.append(f"{file}:{number}: {value!r}")
                continue
            rows.append(ids.setdefault(item, len(ids)))
            columns.append(column)
            z.append(VALUES[value])
    if wrong:
        raise DataError(f"{path}: values that are not 1, -1 or 0: {len(wrong)}" + listing(wrong, len(wrong)))
    semantics = semantics if semantics.uncertain else replace(semantics, uncertain="unknown")
    arrays = [np.frombuffer(codes, codes.typecode) for codes in (rows, columns, z)]
    return labels_of(
        arrays[0], arrays[1], arrays[2], list(ids), list(files), semantics=semantics, path=path, wanted=names
    )


def write(labels: Labels, path: Path) -> None:
    """Write the label files, then the list, which marks them as complete."""
    bad = [name for name in labels.ids if name.split() != [name]]
    bad += [name for name in labels.names if "/" in name or "\\" in name or not name.isprintable() or len(name) > 100]
    if bad:
        raise DataError(
            f"{path}: labels become file names here, and ids may not contain spaces; not possible: {len(bad)}"
            + listing(map(repr, bad), len(bad))
        )
    others = set(_label_files(path)) - set(labels.names)
    if others:
        raise DataError(f"{path}: this set already has files of other labels: {', '.join(sorted(others)[:5])}.")
    ids = labels.ids
    for j, name in enumerate(labels.names):
        z = labels.mapped(lambda block, _, j=j: block[:, [j]], (name,)).rows(slice(None))[:, 0]  # type: ignore[misc]
        with atomic_output(path.with_name(f"{name}_{path.name}")) as file:
            file.writelines(f"{ids[i]} {z[i]:2d}\n".encode() for i in z.nonzero()[0].tolist())
    with atomic_output(path) as file:
        file.writelines(f"{item}\n".encode() for item in ids)


def _label_files(path: Path) -> dict[str, Path]:
    """Return the file of each label of this set: all that end like the list."""
    ending = f"_{path.name}"
    return {file.name.removesuffix(ending): file for file in sorted(path.parent.glob("*" + ending.replace("[", "[[]")))}


def _lines(path: Path, cells: int) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of each line that is not blank."""
    try:
        with open_decompressed(path) as file:
            for number, line in enumerate(file, 1):
                parsed = line.decode("utf-8").split()
                if parsed and len(parsed) != cells:
                    raise DataError(f"{path}:{number}: {len(parsed)} words instead of {cells}: {line!r:.80}.")
                if parsed:
                    yield number, parsed
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
