"""Images inside a Parquet file: a column of bytes, or of structures with `bytes` as Hugging Face writes them.

The column `item`, `id` or `name` holds the ids; otherwise positions are ids. Parquet cannot read a single row, so the
bytes are copied once to a file in the cache folder, from which each image is read on demand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from partly.atomic_io import atomic_output, sha256
from partly.budget import Budget
from partly.data.dataset import Dataset, empty_labels
from partly.data.formats.wide import refuse_bad_ids
from partly.data.item_columns import IDS, byte_columns
from partly.data.label_semantics import LabelSemantics
from partly.data.paths import check_file
from partly.data.protocols import DatasetFormat
from partly.data.tables import ParquetTable, text_column
from partly.errors import DataError
from partly.images.scan import cache_folder
from partly.images.worker import ImageLocation
from partly.items import ImageFiles, ImageSource

BLOCK_ROWS = 64  # copied at a time: an image may be large


def recognizes(path: Path) -> bool:
    return bool(byte_columns(path))


def read(path: Path, semantics: LabelSemantics = LabelSemantics()) -> Dataset:  # noqa: B008 (it is frozen)
    path, columns = check_file(path, (".parquet",)), byte_columns(path)
    if len(columns) != 1:
        raise DataError(f"{path}: several columns hold bytes: {', '.join(columns)}. Keep only the one with images.")
    bytes_file = _unpack(path, columns[0])
    ends = np.load(bytes_file.with_suffix(".npy"), allow_pickle=False)
    ids = _ids(path, len(ends) - 1, semantics.id_column)
    spans = zip(ends[:-1].tolist(), np.diff(ends).tolist(), strict=True)
    places = [ImageLocation(str(bytes_file), start, length) for start, length in spans]
    return Dataset(ImageFiles(ImageSource(places, ids, str(path))), empty_labels(ids))


def _unpack(path: Path, column: str) -> Path:
    """Return the cached file of concatenated bytes (their ends are in an `.npy`); write it if it is missing or old."""
    status = path.stat()
    key = sha256(f"{path.absolute()}\n{column}\n{status.st_size}\n{status.st_mtime_ns}".encode())[:32]
    folder = cache_folder() / "embedded"
    bytes_file = folder / f"{key}.bytes"
    if bytes_file.exists() and bytes_file.with_suffix(".npy").exists():
        return bytes_file
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be created ({error.strerror}). Set PARTLY_CACHE to a folder for the images of {path}."
        ) from error
    ends = [0]
    with atomic_output(bytes_file) as file:
        for content in _contents(path, column):
            file.write(content)
            ends.append(ends[-1] + len(content))
    with atomic_output(bytes_file.with_suffix(".npy")) as file:  # last: it marks the bytes as complete
        np.save(file, np.array(ends, np.int64))
    return bytes_file


def _contents(path: Path, column: str) -> Iterator[bytes]:
    """Nothing, where there is none: that shows when the pictures are looked at."""
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            budget = Budget(path)
            for batch in file.iter_batches(BLOCK_ROWS, columns=[column]):
                budget.unpack(batch.nbytes)
                for cell in batch.column(batch.schema.get_field_index(column)).to_pylist():
                    content = cell.get("bytes") if isinstance(cell, dict) else cell
                    yield content or b""
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def _ids(path: Path, count: int, id_column: str | None) -> list[str]:
    table = ParquetTable(path)
    called = next((column for column in (id_column, *IDS) if column in table.header), None)
    if called is None:
        return list(map(str, range(count)))
    ids: list[str] = []
    for batch in table.batches([called]):
        table.budget.hold_rows(batch.num_rows)
        ids += text_column(batch.column(0), called, path).to_pylist()
    refuse_bad_ids(table, ids)
    return ids


FORMAT = DatasetFormat("items", recognizes, read)
