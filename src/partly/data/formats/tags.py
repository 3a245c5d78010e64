"""Tags: a row for each yes, with the columns item and label. An item without any has a row with a blank label.

What has no row is unknown, unless the caller says `absent="no"`: tags are what somebody thought of.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from partly.data.formats.long import coded
from partly.data.headers import TAGS, is_tags
from partly.data.label_semantics import LabelSemantics, labels_of, tell_lost
from partly.data.protocols import LabelFormat
from partly.data.table_view import view
from partly.data.tables import SUFFIXES, Faults, is_table, open_table, text_column, write_table
from partly.labels import Labels


def recognizes(path: Path) -> bool:
    return is_table(path) and path.is_file() and is_tags(open_table(path))


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    table = view(open_table(path), semantics.id_column)
    items: dict[str, int] = {}
    labels: dict[str, int] = {}
    parts = [np.empty((2, 0), np.int32)]
    homeless, start = Faults(table, "labels without an item"), 0
    for batch in table.batches(TAGS):
        words = (text_column(cells, name, path) for cells, name in zip(batch.columns, TAGS, strict=True))
        pair = np.stack([coded(one, codes) for one, codes in zip(words, (items, labels), strict=True)])
        lost = np.flatnonzero(pair[0] < 0)
        homeless.add(lost + start, ("no item" for _ in lost))
        parts.append(pair)
        start += pair.shape[1]
    homeless.refuse("Name the item, or leave the row out.")
    rows, columns = np.concatenate(parts, axis=1)
    said = columns >= 0
    ones = np.ones(int(said.sum()), np.int8)
    return labels_of(
        rows[said], columns[said], ones, list(items), list(labels), semantics=semantics, path=path, wanted=names
    )


def write(labels: Labels, path: Path) -> None:
    tell_lost((), [name for name, yes in zip(labels.names, labels.counts()[0], strict=True) if not yes], path)
    rows, columns, values = labels.entries()
    rows, columns = rows[values == 1], columns[values == 1]
    bare = np.setdiff1d(np.arange(len(labels)), rows)
    rows, columns = np.concatenate([rows, bare]), np.concatenate([columns, np.full(len(bare), -1)])
    order = np.argsort(rows, kind="stable")
    words = pa.array(labels.names, pa.string()).take(pa.array(columns[order], mask=columns[order] < 0))
    batch = pa.record_batch([pa.array(labels.ids, pa.string()).take(pa.array(rows[order])), words], list(TAGS))
    write_table(path, batch.schema, iter([batch]))


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES, positives_only=True)
