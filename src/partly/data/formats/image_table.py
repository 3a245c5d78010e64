"""Pictures named in a table (`.csv`, `.tsv`, `.parquet`, `.jsonl`): the column `path` says where each lies, from
the table's own folder, and `item`, `id` or `name` what it is called (else the path is its id). Other columns are left
alone. With a column `text` the texts are the items.
"""

from __future__ import annotations

from pathlib import Path

from partly.data.dataset import Dataset, empty_labels
from partly.data.item_columns import PATH, holds, read_column
from partly.data.label_semantics import LabelSemantics
from partly.data.protocols import DatasetFormat
from partly.data.tables import SUFFIXES
from partly.images.worker import ImageLocation
from partly.items import ImageFiles, ImageSource


def recognizes(path: Path) -> bool:
    return holds(path) == PATH


def read(path: Path, semantics: LabelSemantics = LabelSemantics()) -> Dataset:  # noqa: B008 (it is frozen)
    """Whether the files are there, and pictures, shows when they are looked at."""
    ids, words = read_column(path, PATH, PATH, semantics.id_column)
    places = [ImageLocation(str(path.absolute().parent / word)) for word in words]
    return Dataset(ImageFiles(ImageSource(places, ids, str(path))), empty_labels(ids))


FORMAT = DatasetFormat("items", recognizes, read, suffixes=SUFFIXES)
