"""Texts in a table (`.csv`, `.parquet`, `.jsonl`, `.jsonl.gz`): the column `text` holds them, and `item`, `id` or
`name` the ids (else positions are ids). Other columns are left alone.
"""

from __future__ import annotations

from pathlib import Path

from partly.data.dataset import Dataset, unlabelled
from partly.data.item_columns import SUFFIXES, TEXT, holds, read_column
from partly.data.tables import Faults
from partly.items import texts

HOLDS = "items"
__all__ = ["HOLDS", "SUFFIXES", "read", "recognises"]


def recognises(path: Path) -> bool:
    return holds(path) == TEXT


def read(path: Path) -> Dataset:
    ids, words, table = read_column(path, TEXT)
    bad = [i for i, word in enumerate(words) if not word.strip() or "\0" in word]
    faults = Faults(table, "texts that are blank or hold a NUL")
    faults.add(bad, (f"item {ids[i]!r}" for i in bad))
    faults.refuse("Leave these rows out.")
    return Dataset(texts(words, str(path)), unlabelled(ids))
