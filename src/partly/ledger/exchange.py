"""Export a complete ledger to one Parquet file, and restore it.

A header row describes a batch (time, kind, author, run, note, key, vocabulary, changes and takes_back). The rows after
it are its statements (item, label, value, confidence); a row without a label records that the item exists. Labels are
numbers, since names may change; the column `name` is for readers and is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from partly.atomic_io import PathLike, atomic_output
from partly.budget import Budget, decode_dictionaries
from partly.errors import DataError
from partly.ledger import reader, writer
from partly.ledger.history import Batch, History, check_text, replay
from partly.ledger.ledger import Ledger
from partly.ledger.location import Place, is_sqlite
from partly.ledger.store import Store, changes_text

BATCH_FIELDS = [
    ("time", pa.timestamp("us", "UTC")),
    ("said", pa.timestamp("us", "UTC")),
    *((name, pa.string()) for name in ("kind", "author", "run", "note", "key")),
    ("vocabulary", pa.int64()),
    ("changes", pa.string()),
    ("takes_back", pa.string()),
]
STATEMENT_FIELDS = [
    ("item", pa.string()),
    ("label", pa.int64()),
    ("name", pa.string()),
    ("value", pa.int8()),
    ("confidence", pa.float32()),
]
SCHEMA = pa.schema([("batch", pa.int64()), *BATCH_FIELDS, *STATEMENT_FIELDS])
ROWS_PER_BLOCK = 1 << 16


def is_statements(path: PathLike) -> bool:
    """Return whether `export` wrote this file."""
    if Path(path).suffix.lower() != ".parquet" or is_sqlite(Path(path)):
        return False
    try:
        return bool(pq.read_schema(path).names == SCHEMA.names)
    except (OSError, ValueError, pa.ArrowException):
        return False


def export(ledger: Ledger, path: PathLike) -> int:
    """Write the whole ledger atomically and return the number of batches."""
    store = ledger.store
    with store.reading() as connection, atomic_output(Path(path)) as file:
        history = replay(reader.read_batches(store, connection))
        with pq.ParquetWriter(file, SCHEMA, compression="zstd") as out:
            for table in _tables(store, connection, history):
                out.write_table(table)
    return len(history.batches)


def _tables(store: Store, connection: Any, history: History) -> Iterator[Any]:
    items = reader.item_names(store, connection)
    labels = {number: label.name for number, label in history.vocabulary.labels.items()}
    for batch in history.batches:
        yield _make_table({"batch": [batch.number], **_batch_columns(batch, items)})
        for statements in reader.iterate_statements(
            store, connection, history.last, 0, writer.MAX_NUMBER, batch.number
        ):
            yield _make_table(
                {
                    "batch": statements.batch,
                    "item": [items[number] for number in statements.item.tolist()],
                    "label": pa.array(statements.label, mask=statements.label < 0),
                    "name": [labels.get(number) for number in statements.label.tolist()],
                    "value": pa.array(statements.z, mask=statements.label < 0),
                    "confidence": pa.array(statements.confidence, mask=np.isnan(statements.confidence)),
                }
            )


def _batch_columns(batch: Batch, items: dict[int, str]) -> dict[str, Any]:
    retracted = [[number, None if item < 0 else items[item], label] for number, item, label in batch.taken_back]
    columns = {name: [getattr(batch, name)] for name in ("time", "said", "kind", "author", "run", "note", "key")}
    columns["vocabulary"] = [batch.vocabulary]
    return columns | {"changes": [changes_text(batch.changes)], "takes_back": [json.dumps(retracted)]}


def _make_table(columns: dict[str, Any]) -> Any:
    """Return a table of the full schema; other columns are null."""
    count = len(columns["batch"])
    return pa.table(
        {
            field.name: (
                pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
            )
            for field in SCHEMA
        },
        schema=SCHEMA,
    )


def restore(url: PathLike | Place, path: PathLike) -> Ledger:
    """Create a ledger from an export, with the same batches, numbers and times."""
    if not is_statements(path):
        raise DataError(f"{path}: was not written by `partly ledger export --statements`.")
    with Ledger.create_atomically(url) as ledger, ledger.store.writing() as connection:
        store = ledger.store
        try:
            for number, (head, body) in enumerate(_read_batches(path), 1):
                _restore_batch(store, connection, number, head, body)
            replay(reader.read_batches(store, connection))  # refuse an inconsistent history before the commit
        except (pa.ArrowException, ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
            raise DataError(f"{path}: damaged, or changed by hand ({error}). No ledger was created.") from None
    return ledger


def _read_batches(path: PathLike) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield the header row of each batch and its statements as tables."""
    head: dict[str, Any] | None = None
    body: list[Any] = []
    strings = [field.name for field in SCHEMA if pa.types.is_string(field.type)]
    with pq.ParquetFile(path, pre_buffer=False, read_dictionary=strings) as file:
        for block in _iterate_blocks(file, Budget(Path(path))):
            heads = np.flatnonzero(pc.is_valid(block.column("kind")).to_numpy(zero_copy_only=False)).tolist()
            body += [
                block.slice(0, heads[0] if heads else len(block))
            ]  # continues the last batch of the previous block
            for start, stop in pairwise([*heads, len(block)]):
                if head is not None:
                    yield head, [part for part in body if len(part)]
                elif any(map(len, body)):
                    raise ValueError("there are statements before the first batch")
                head, body = block.slice(start, 1).to_pylist()[0], [block.slice(start + 1, stop - start - 1)]
    if head is not None:
        yield head, [part for part in body if len(part)]
    elif any(map(len, body)):
        raise ValueError("there are statements, but no batch")


def _iterate_blocks(file: Any, budget: Budget) -> Iterator[Any]:
    for batch in file.iter_batches(ROWS_PER_BLOCK):
        yield from decode_dictionaries(batch, budget)


def _restore_batch(store: Store, connection: Any, number: int, head: dict[str, Any], body: list[Any]) -> None:
    if head["batch"] != number or any(pc.unique(part.column("batch")).to_pylist() != [number] for part in body):
        raise ValueError(f"batch {number} is missing, or not in its place")
    row = {name: head[name] for name in ("kind", "author", "run", "note", "key", "vocabulary", "changes")}
    check_text("batch", [str(value) for value in row.values()])
    microseconds = {
        name: None if head[name] is None else int(head[name].timestamp() * 1e6 + 0.5) for name in ("time", "said")
    }
    names = [name for part in body for name in part.column("item").to_pylist()]
    check_text("items", names)
    distinct = list(dict.fromkeys(names))
    number_of = dict(zip(distinct, writer.item_numbers(store, connection, distinct), strict=True))
    label, z, confidence = (
        np.concatenate([np.empty(0), *(_fill_null(part.column(name), blank) for part in body)])
        for name, blank in (("label", -1), ("value", 0), ("confidence", np.nan))
    )
    if not np.isin(z, (-1, 0, 1)).all() or not ((label >= -1) & (label < writer.MAX_NUMBER)).all():
        raise ValueError(f"batch {number} has values other than 1, -1 or 0, or invalid labels")
    retracted = [
        (batch, -1 if name is None else writer.item_numbers(store, connection, [name])[0], label_number)
        for batch, name, label_number in json.loads(head["takes_back"])
    ]
    columns = (
        np.array([number_of[name] for name in names], np.int64),
        label.astype(np.int64),
        z.astype(np.int8),
        None if np.isnan(confidence).all() else confidence.astype(np.float32),
    )
    writer.insert(store, connection, row | {"number": number, **microseconds}, columns, retracted)


def _fill_null(column: Any, blank: float) -> Any:
    return column.cast(pa.float64()).fill_null(blank).to_numpy(zero_copy_only=False)
