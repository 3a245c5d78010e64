"""Pascal VOC's image sets (`ImageSets/Main`): `train.txt` lists the images of a set, and `cat_train.txt` beside it says
of one label for each: 1 it is there, -1 it is not, 0 it is, but hard to see. An image that has no line is unknown.

Who gives `train.txt` is given all labels that have a file of this set; who gives `cat_train.txt` that one. VOC scores
entries that are hard to see neither way, so they are unknown, unless the caller says otherwise (`uncertain=`).
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
    """By its first line: an id and one of the values; or an id alone, and files of labels beside it."""
    if format_suffix(path) not in SUFFIXES or not path.is_file():
        return False
    with open_decompressed(path) as file:
        words = file.readline(1000).decode("utf-8", "replace").split()
    return (len(words) == 2 and words[1] in VALUES) or (len(words) <= 1 and bool(_labels(path)))


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    files = _labels(path)
    ids: dict[str, int] = {}
    if files:
        for _, words in _lines(path, 1):
            ids.setdefault(words[0], len(ids))
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
    parts = [np.frombuffer(part, part.typecode) for part in (rows, columns, z)]
    return labels_of(parts[0], parts[1], parts[2], list(ids), list(files), semantics=semantics, path=path, wanted=names)


def write(labels: Labels, path: Path) -> None:
    """The list itself last: where it is, all labels have their file."""
    odd = [word for word in labels.ids if word.split() != [word]]
    odd += [word for word in labels.names if "/" in word or "\\" in word or not word.isprintable() or len(word) > 100]
    if odd:
        raise DataError(
            f"{path}: labels become names of files here, and ids words without spaces; these do not do: {len(odd)}"
            + listing(map(repr, odd), len(odd))
        )
    others = set(_labels(path)) - set(labels.names)
    if others:
        raise DataError(f"{path}: other labels have files of this set already: {', '.join(sorted(others)[:5])}.")
    ids = labels.ids
    for j, name in enumerate(labels.names):
        z = labels.mapped(lambda block, _, j=j: block[:, [j]], (name,)).rows(slice(None))[:, 0]  # type: ignore[misc]
        with atomic_output(path.with_name(f"{name}_{path.name}")) as file:
            file.writelines(f"{ids[i]} {z[i]:2d}\n".encode() for i in z.nonzero()[0].tolist())
    with atomic_output(path) as file:
        file.writelines(f"{item}\n".encode() for item in ids)


def _labels(path: Path) -> dict[str, Path]:
    """Label -> its file of this set: all that end as the list does. A label's own file has none."""
    ending = f"_{path.name}"
    return {file.name.removesuffix(ending): file for file in sorted(path.parent.glob("*" + ending.replace("[", "[[]")))}


def _lines(path: Path, cells: int) -> Iterator[tuple[int, list[str]]]:
    """The words of each line that is not blank."""
    try:
        with open_decompressed(path) as file:
            for number, line in enumerate(file, 1):
                words = line.decode("utf-8").split()
                if words and len(words) != cells:
                    raise DataError(f"{path}:{number}: {len(words)} words where {cells} should be: {line!r:.80}.")
                if words:
                    yield number, words
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
