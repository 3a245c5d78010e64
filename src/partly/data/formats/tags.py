"""Tags: one row per yes, with the columns item and label; an item without tags has a row with a blank label.

Entries without a row are unknown, unless the caller passes `absent="no"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from partly.data.formats.long import encode_texts
from partly.data.label_semantics import LabelSemantics, labels_of, warn_of_dropped
from partly.data.protocols import LabelFormat
from partly.data.table_layout import TAGS, is_tags, with_id_column
from partly.data.tables import SUFFIXES, Faults, is_table, open_table, text_column, write_table
from partly.labels import Labels


def recognizes(path: Path) -> bool:
    return is_table(path) and path.is_file() and is_tags(open_table(path))


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    table = with_id_column(open_table(path), semantics.id_column)
    items: dict[str, int] = {}
    labels: dict[str, int] = {}
    blocks = [np.empty((2, 0), np.int32)]
    without_item, start = Faults(table, "labels without an item"), 0
    for batch in table.batches(TAGS):
        texts = (text_column(cells, name, path) for cells, name in zip(batch.columns, TAGS, strict=True))
        pair = np.stack(
            [encode_texts(column_texts, codes) for column_texts, codes in zip(texts, (items, labels), strict=True)]
        )
        bad = np.flatnonzero(pair[0] < 0)
        without_item.add(bad + start, ("no item" for _ in bad))
        blocks.append(pair)
        start += pair.shape[1]
    without_item.refuse("Name the item, or leave the row out.")
    rows, columns = np.concatenate(blocks, axis=1)
    tagged = columns >= 0
    ones = np.ones(int(tagged.sum()), np.int8)
    return labels_of(
        rows[tagged], columns[tagged], ones, list(items), list(labels), semantics=semantics, path=path, wanted=names
    )


def write(labels: Labels, path: Path) -> None:
    warn_of_dropped((), [name for name, yes in zip(labels.names, labels.counts()[0], strict=True) if not yes], path)
    rows, columns, values = labels.entries()
    rows, columns = rows[values == 1], columns[values == 1]
    untagged = np.setdiff1d(np.arange(len(labels)), rows)
    rows, columns = np.concatenate([rows, untagged]), np.concatenate([columns, np.full(len(untagged), -1)])
    order = np.argsort(rows, kind="stable")
    label_names = pa.array(labels.names, pa.string()).take(pa.array(columns[order], mask=columns[order] < 0))
    batch = pa.record_batch([pa.array(labels.ids, pa.string()).take(pa.array(rows[order])), label_names], list(TAGS))
    write_table(path, batch.schema, iter([batch]))


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES, positives_only=True)
