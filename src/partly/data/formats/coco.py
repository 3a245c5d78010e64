"""COCO and LVIS: a JSON file with `images`, `annotations` (of an image and a category) and `categories`.

Annotated categories are yes, and so is `not_exhaustive_category_ids`; `neg_category_ids` is no. The rest is unknown in
files with such lists (LVIS); in files without them (COCO) the caller chooses, because a category that is not annotated
need not be absent. Ids are file names. Boxes and masks are neither read nor written.
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
BLOCK_ITEMS = 1 << 10  # written at a time
PARTS = ("images", "annotations", "categories")
NO, YES = "neg_category_ids", "not_exhaustive_category_ids"


def recognizes(path: Path) -> bool:
    """Return whether the document has one of the three parts; only small keys precede them (info, licenses)."""
    if format_suffix(path) not in SUFFIXES or not path.is_file():
        return False
    for key in top_keys(path):
        if key is None or key in PARTS:
            return key is not None
    return False


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    entries = _Entries(path, _categories(path), _Numbers())
    entries.add_images()
    if not entries.negatives:
        semantics.need_absent(
            path, f"a COCO file without {NO}: categories that are not annotated may be absent or overlooked."
        )
    entries.add_annotations()
    entries.refuse_wrong()
    categories = list(entries.categories.values())
    numbers = entries.numbers
    rows, columns, z = (np.frombuffer(part, part.typecode) for part in (numbers.rows, numbers.columns, numbers.z))
    return labels_of(rows, columns, z, entries.ids, categories, semantics=semantics, path=path, wanted=names)


def write(labels: Labels, path: Path) -> None:
    """Write `neg_category_ids` for every image, so that nothing is left open."""
    with open_compressed(path) as file:
        for part in _document(labels):
            file.write(part.encode())


def _document(labels: Labels) -> Iterator[str]:
    categories = [{"id": j, "name": name} for j, name in enumerate(labels.names, 1)]
    yield f'{{"info": {{"description": "labels of images, without boxes"}},\n"categories": {json.dumps(categories)},\n'
    yield '"images": ['
    for start in range(0, len(labels), BLOCK_ITEMS):
        for i, z in enumerate(labels.rows(slice(start, start + BLOCK_ITEMS)), start):
            image: dict[str, Any] = {"id": i + 1, "file_name": labels.id_at(i)}
            image |= {NO: (1 + (z == -1).nonzero()[0]).tolist(), YES: []}
            yield ("," if i else "") + "\n" + json.dumps(image, ensure_ascii=False)
    yield '],\n"annotations": ['
    rows, columns, values = labels.entries()
    positives = (values == 1).nonzero()[0].tolist()
    for number, k in enumerate(positives, 1):
        annotation = {"id": number, "image_id": int(rows[k]) + 1, "category_id": int(columns[k]) + 1, "iscrowd": 0}
        yield ("," if number > 1 else "") + "\n" + json.dumps(annotation)
    yield "]}\n"


@dataclass
class _Numbers:
    """Rows, columns and z of entries, 9 bytes each."""

    rows: array[int] = field(default_factory=lambda: array("i"))
    columns: array[int] = field(default_factory=lambda: array("i"))
    z: array[int] = field(default_factory=lambda: array("b"))


def _categories(path: Path) -> dict[Any, str]:
    """Return the name of each id, in the order of the file."""
    records = _records(path, "categories", ("id", "name"))
    categories = {record["id"]: str(record["name"]) for record in records}
    if not categories:
        raise DataError(f"{path}: has no categories. Caption files, for example, do not name labels.")
    return categories


def _records(path: Path, part: str, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    for number, record in enumerate(elements(path, part)):
        if not isinstance(record, dict) or any(key not in record for key in keys):
            raise DataError(f"{path}: {part}[{number}] must have {', '.join(keys)}: {record!r:.80}.")
        if not all(isinstance(record[key], str | int | float) for key in keys):
            raise DataError(f"{path}: {part}[{number}]: {', '.join(keys)} must be numbers or texts: {record!r:.80}.")
        yield record


class _Entries:
    """Collects the entries of images and annotations."""

    def __init__(self, path: Path, categories: dict[Any, str], numbers: _Numbers) -> None:
        self.path, self.categories, self.numbers = path, categories, numbers
        self.column = {key: j for j, key in enumerate(categories)}
        self.row: dict[Any, int] = {}
        self.ids: list[str] = []
        self.negatives = False  # some image lists absent categories
        self.wrong: list[str] = []
        self.wrong_count = 0

    def add_images(self) -> None:
        for number, image in enumerate(_records(self.path, "images", ("id",))):
            if self.row.setdefault(image["id"], number) != number:
                self._add_fault(f"images[{number}]: the id {image['id']!r} occurs more than once")
            url = str(image.get("coco_url") or image["id"])  # LVIS has no file names
            self.ids.append(str(image.get("file_name") or url.rpartition("/")[2]))
            self.negatives |= NO in image
            for z, key in ((-1, NO), (1, YES)):
                listed = image.get(key) or []
                if not isinstance(listed, list) or not all(
                    isinstance(category_id, str | int | float) for category_id in listed
                ):
                    raise DataError(
                        f"{self.path}: images[{number}].{key} must be a list of categories: {listed!r:.80}."
                    )
                for category in listed:
                    self._add(number, category, z, f"images[{number}].{key}")

    def add_annotations(self) -> None:
        for number, annotation in enumerate(_records(self.path, "annotations", ("image_id", "category_id"))):
            row = self.row.get(annotation["image_id"])
            if row is None:
                self._add_fault(f"annotations[{number}]: there is no image {annotation['image_id']!r}")
            else:
                self._add(row, annotation["category_id"], 1, f"annotations[{number}]")

    def _add(self, row: int, category: Any, z: int, place: str) -> None:
        column = self.column.get(category)
        if column is None:
            self._add_fault(f"{place}: there is no category {category!r}")
            return
        self.numbers.rows.append(row)
        self.numbers.columns.append(column)
        self.numbers.z.append(z)

    def _add_fault(self, fault: str) -> None:
        self.wrong_count += 1
        if len(self.wrong) < 5:
            self.wrong.append(fault)

    def refuse_wrong(self) -> None:
        if self.wrong_count:
            raise DataError(
                f"{self.path}: images, annotations and categories do not match: {self.wrong_count}"
                + listing(self.wrong, self.wrong_count)
            )


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
