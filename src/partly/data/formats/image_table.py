"""Image files listed in a table: the column `path` holds paths relative to the table, `item`, `id` or `name` the ids.

Without a column of ids the path is the id. Other columns are ignored; in a table with a column `text` the texts are the
items.
"""

from __future__ import annotations

from pathlib import Path

from partly.data.dataset import Dataset, empty_labels
from partly.data.item_columns import PATH, detect_content, read_column
from partly.data.label_semantics import LabelSemantics
from partly.data.protocols import DatasetFormat
from partly.data.tables import SUFFIXES
from partly.images.worker import ImageLocation
from partly.items import ImageFiles, ImageSource


def recognizes(path: Path) -> bool:
    return detect_content(path) == PATH


def read(path: Path, semantics: LabelSemantics = LabelSemantics()) -> Dataset:  # noqa: B008 (it is frozen)
    """Read ids and paths; the files are checked when the images are inspected."""
    ids, paths = read_column(path, PATH, PATH, semantics.id_column)
    places = [ImageLocation(str(path.absolute().parent / name)) for name in paths]
    return Dataset(ImageFiles(ImageSource(places, ids, str(path))), empty_labels(ids))


FORMAT = DatasetFormat("items", recognizes, read, suffixes=SUFFIXES)
