"""COCO: a JSON file with `images`, `annotations` (each of an image and a category) and `categories`; that of LVIS also
says of images which categories are not there (`neg_category_ids`).

What an annotation names is there. What `neg_category_ids` names is not. All the rest is unknown in a file that has
such lists (LVIS), and open in one that has none (COCO): not annotated need not be absent, so the caller says. What is
in `not_exhaustive_category_ids` is there, in more places than are annotated. Ids are file names. Boxes and masks are
not read, and none are written: an annotation says no more than that something is there.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from partly.data.compression import open_compressed
from partly.data.json_stream import elements, top_keys
from partly.data.label_semantics import LabelSemantics, labels_of
from partly.data.paths import format_suffix
from partly.data.protocols import LabelFormat
from partly.errors import DataError, listing
from partly.labels import Labels

SUFFIXES = (".json",)
BLOCK = 1 << 10  # items written at a time
PARTS = ("images", "annotations", "categories")
NO, YES = "neg_category_ids", "not_exhaustive_category_ids"


def recognizes(path: Path) -> bool:
    """An object that has one of the three parts. What comes before it is small: a description, licences."""
    if format_suffix(path) not in SUFFIXES or not path.is_file():
        return False
    for key in top_keys(path):
        if key is None or key in PARTS:
            return key is not None
    return False


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    found = _Entries(path, _categories(path), _Numbers())
    found.add_images()
    if not found.negatives:
        semantics.need_absent(path, f"a COCO file without {NO}: what is not annotated may be absent or overlooked.")
    found.add_annotations()
    found.refuse_wrong()
    words = list(found.categories.values())
    numbers = found.numbers
    rows, columns, z = (np.frombuffer(part, part.typecode) for part in (numbers.rows, numbers.columns, numbers.z))
    return labels_of(rows, columns, z, found.ids, words, semantics=semantics, path=path, wanted=names)


def write(labels: Labels, path: Path) -> None:
    """With `neg_category_ids` in every image, so that nothing is left open."""
    with open_compressed(path) as file:
        for part in _written(labels):
            file.write(part.encode())


def _written(labels: Labels) -> Iterator[str]:
    categories = [{"id": j, "name": name} for j, name in enumerate(labels.names, 1)]
    yield f'{{"info": {{"description": "labels of images, without boxes"}},\n"categories": {json.dumps(categories)},\n'
    yield '"images": ['
    for start in range(0, len(labels), BLOCK):
        for i, z in enumerate(labels.rows(slice(start, start + BLOCK)), start):
            image: dict[str, Any] = {"id": i + 1, "file_name": labels.id_at(i)}
            image |= {NO: (1 + (z == -1).nonzero()[0]).tolist(), YES: []}
            yield ("," if i else "") + "\n" + json.dumps(image, ensure_ascii=False)
    yield '],\n"annotations": ['
    rows, columns, values = labels.entries()
    there = (values == 1).nonzero()[0].tolist()
    for number, k in enumerate(there, 1):
        one = {"id": number, "image_id": int(rows[k]) + 1, "category_id": int(columns[k]) + 1, "iscrowd": 0}
        yield ("," if number > 1 else "") + "\n" + json.dumps(one)
    yield "]}\n"


@dataclass
class _Numbers:
    """Rows, columns and z of entries: 9 bytes each, however many there are."""

    rows: array[int] = field(default_factory=lambda: array("i"))
    columns: array[int] = field(default_factory=lambda: array("i"))
    z: array[int] = field(default_factory=lambda: array("b"))


def _categories(path: Path) -> dict[Any, str]:
    """Name of each id, in the order of the file."""
    found = [(one["id"], str(one["name"])) for one in _records(path, "categories", ("id", "name"))]
    if not found:
        raise DataError(f"{path}: there are no categories in it. Captions and the like name no labels.")
    return dict(found)


def _records(path: Path, part: str, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    for number, one in enumerate(elements(path, part)):
        if not isinstance(one, dict) or any(key not in one for key in keys):
            raise DataError(f"{path}: {part}[{number}] has not all of {', '.join(keys)}: {one!r:.80}.")
        if not all(isinstance(one[key], str | int | float) for key in keys):
            raise DataError(f"{path}: {part}[{number}]: {', '.join(keys)} must be numbers or texts: {one!r:.80}.")
        yield one


class _Entries:
    """What is said, image by image and annotation by annotation."""

    def __init__(self, path: Path, categories: dict[Any, str], numbers: _Numbers) -> None:
        self.path, self.categories, self.numbers = path, categories, numbers
        self.column = {key: j for j, key in enumerate(categories)}
        self.row: dict[Any, int] = {}
        self.ids: list[str] = []
        self.negatives = False  # whether any image says what is not there
        self.wrong: list[str] = []
        self.wrong_count = 0

    def add_images(self) -> None:
        for number, one in enumerate(_records(self.path, "images", ("id",))):
            if self.row.setdefault(one["id"], number) != number:
                self._refused(f"images[{number}]: the id {one['id']!r} is that of another image")
            url = str(one.get("coco_url") or one["id"])  # LVIS has no file names
            self.ids.append(str(one.get("file_name") or url.rpartition("/")[2]))
            self.negatives |= NO in one
            for z, key in ((-1, NO), (1, YES)):
                listed = one.get(key) or []
                if not isinstance(listed, list) or not all(isinstance(each, str | int | float) for each in listed):
                    raise DataError(f"{self.path}: images[{number}].{key} is no list of categories: {listed!r:.80}.")
                for category in listed:
                    self._add(number, category, z, f"images[{number}].{key}")

    def add_annotations(self) -> None:
        for number, one in enumerate(_records(self.path, "annotations", ("image_id", "category_id"))):
            row = self.row.get(one["image_id"])
            if row is None:
                self._refused(f"annotations[{number}]: there is no image {one['image_id']!r}")
            else:
                self._add(row, one["category_id"], 1, f"annotations[{number}]")

    def _add(self, row: int, category: Any, z: int, place: str) -> None:
        column = self.column.get(category)
        if column is None:
            self._refused(f"{place}: there is no category {category!r}")
            return
        self.numbers.rows.append(row)
        self.numbers.columns.append(column)
        self.numbers.z.append(z)

    def _refused(self, told: str) -> None:
        self.wrong_count += 1
        if len(self.wrong) < 5:
            self.wrong.append(told)

    def refuse_wrong(self) -> None:
        if self.wrong_count:
            raise DataError(
                f"{self.path}: images, annotations and categories do not fit: {self.wrong_count}"
                + listing(self.wrong, self.wrong_count)
            )


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
