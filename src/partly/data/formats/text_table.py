"""Texts in a table (`.csv`, `.tsv`, `.parquet`, `.jsonl`): the column `text` holds them, and `item`, `id` or
`name` the ids (else positions are ids). Other columns are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from partly.data.dataset import Dataset, empty_labels
from partly.data.formats.wide import refuse_bad_ids
from partly.data.item_columns import TEXT, cells_of, holds
from partly.data.label_semantics import LabelSemantics
from partly.data.paths import check_file
from partly.data.protocols import DatasetFormat
from partly.data.tables import READABLE, SUFFIXES, Faults, open_table
from partly.items import spool_texts


def recognizes(path: Path) -> bool:
    return holds(path) == TEXT


def read(path: Path, semantics: LabelSemantics = LabelSemantics()) -> Dataset:  # noqa: B008 (it is frozen)
    """The texts go from the table to a file of their own, block after block: only their ids are held."""
    table = open_table(check_file(path, READABLE))
    ids: list[str] = []
    blank = Faults(table, "texts that are blank or hold a NUL")

    def blocks() -> Iterator[list[str]]:
        for its, words in cells_of(table, TEXT, id_column=semantics.id_column):
            bad = [i for i, word in enumerate(words) if not word.strip() or "\0" in word]
            blank.add([len(ids) + i for i in bad], (f"item {its[i]!r}" for i in bad))
            ids.extend(its)
            yield words

    items = spool_texts(blocks(), str(path))
    refuse_bad_ids(table, ids)
    blank.refuse("Leave these rows out.")
    return Dataset(items, empty_labels(ids))


FORMAT = DatasetFormat("items", recognizes, read, suffixes=SUFFIXES)
