"""Texts in the column `text` of a table; `item`, `id` or `name` holds the ids, otherwise positions are ids.

Other columns are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from partly.data.dataset import Dataset, empty_labels
from partly.data.formats.wide import refuse_bad_ids
from partly.data.item_columns import TEXT, cells_of, detect_content
from partly.data.label_semantics import LabelSemantics
from partly.data.paths import check_file
from partly.data.protocols import DatasetFormat
from partly.data.tables import READABLE, SUFFIXES, Faults, open_table
from partly.items import spool_texts


def recognizes(path: Path) -> bool:
    return detect_content(path) == TEXT


def read(path: Path, semantics: LabelSemantics = LabelSemantics()) -> Dataset:  # noqa: B008 (it is frozen)
    """Copy the texts to a temporary file in blocks; only their ids are held in memory."""
    table = open_table(check_file(path, READABLE))
    ids: list[str] = []
    unusable = Faults(table, "texts that are blank or hold a NUL")

    def blocks() -> Iterator[list[str]]:
        for block_ids, texts in cells_of(table, TEXT, id_column=semantics.id_column):
            bad = [i for i, text in enumerate(texts) if not text.strip() or "\0" in text]
            unusable.add([len(ids) + i for i in bad], (f"item {block_ids[i]!r}" for i in bad))
            ids.extend(block_ids)
            yield texts

    items = spool_texts(blocks(), str(path))
    refuse_bad_ids(table, ids)
    unusable.refuse("Remove these rows.")
    return Dataset(items, empty_labels(ids))


FORMAT = DatasetFormat("items", recognizes, read, suffixes=SUFFIXES)
