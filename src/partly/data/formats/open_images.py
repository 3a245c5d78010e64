"""Open Images: one row per entry with the columns ImageID, Source, LabelName and Confidence.

1 is a verified yes, 0 a verified no; entries without a row are unknown. Machine-generated rows have a fraction; the
caller chooses their value with `uncertain=`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from partly.data.formats.long import GROUP_ROWS, read_rows
from partly.data.label_semantics import LabelSemantics, warn_of_dropped
from partly.data.protocols import LabelFormat
from partly.data.table_layout import OPEN_IMAGES, is_open_images
from partly.data.tables import SUFFIXES, is_table, open_table, write_table
from partly.labels import Labels


def recognizes(path: Path) -> bool:
    return is_table(path) and path.is_file() and is_open_images(open_table(path).header)


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    return read_rows(open_table(path), OPEN_IMAGES, names, semantics, _is_fraction)


def write(labels: Labels, path: Path) -> None:
    schema = pa.schema([("ImageID", pa.string()), ("Source", pa.string()), ("LabelName", pa.string())])
    schema = schema.append(pa.field("Confidence", pa.int8()))
    rows, columns, values = labels.entries()
    known = np.unique(columns)
    warn_of_dropped(
        [labels.id_at(i) for i in np.flatnonzero(labels.known_per_item() == 0).tolist()],
        [labels.names[j] for j in np.setdiff1d(np.arange(len(labels.names)), known)],
        path,
    )
    ids, names = pa.array(labels.ids, pa.string()), pa.array(labels.names, pa.string())

    def batches() -> Iterator[Any]:
        for start in range(0, len(rows), GROUP_ROWS):
            part = slice(start, start + GROUP_ROWS)
            source = pa.array(["verification"] * len(rows[part]))
            cells = [
                ids.take(pa.array(rows[part])),
                source,
                names.take(pa.array(columns[part])),
                pa.array(values[part]),
            ]
            yield pa.record_batch(cells, schema=schema)

    write_table(path, schema, batches())


def _is_fraction(cell: object) -> bool:
    try:
        return 0 < float(str(cell)) < 1
    except ValueError:
        return False


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
