"""A ledger as one Parquet file, with all that was ever said, and back.

A row of its own says what a batch is (time, kind, author, run, note, key, vocabulary, changes and takes_back); the rows
that follow it are its statements (item, label, value, confidence), a row without label being an item of which no more
is said. Labels stand by number, since a name may change; `name` is for people, and is not read.
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
from partly.ledger.history import Batch, History, plain_text, replayed
from partly.ledger.ledger import Ledger
from partly.ledger.location import Place, is_sqlite
from partly.ledger.store import Store, changes_text

OF_BATCH = [
    ("time", pa.timestamp("us", "UTC")),
    ("said", pa.timestamp("us", "UTC")),
    *((name, pa.string()) for name in ("kind", "author", "run", "note", "key")),
    ("vocabulary", pa.int64()),
    ("changes", pa.string()),
    ("takes_back", pa.string()),
]
OF_STATEMENT = [
    ("item", pa.string()),
    ("label", pa.int64()),
    ("name", pa.string()),
    ("value", pa.int8()),
    ("confidence", pa.float32()),
]
SCHEMA = pa.schema([("batch", pa.int64()), *OF_BATCH, *OF_STATEMENT])
ROWS = 1 << 16  # of a Parquet file, at a time


def is_statements(path: PathLike) -> bool:
    """Whether a file is what `export` writes."""
    if Path(path).suffix.lower() != ".parquet" or is_sqlite(Path(path)):
        return False
    try:
        return bool(pq.read_schema(path).names == SCHEMA.names)
    except (OSError, ValueError, pa.ArrowException):
        return False


def export(ledger: Ledger, path: PathLike) -> int:
    """Everything, whole or not at all; how many batches there are."""
    store = ledger.store
    with store.reading() as connection, atomic_output(Path(path)) as file:
        history = replayed(reader.batches(store, connection))
        with pq.ParquetWriter(file, SCHEMA, compression="zstd") as out:
            for part in _tables(store, connection, history):
                out.write_table(part)
    return len(history.batches)


def _tables(store: Store, connection: Any, history: History) -> Iterator[Any]:
    items = reader.item_names(store, connection)
    labels = {number: one.name for number, one in history.vocabulary.labels.items()}
    for batch in history.batches:
        yield _padded({"batch": [batch.number], **_of_batch(batch, items)})
        for found in reader.pieces(store, connection, history.last, 0, writer.MOST, batch.number):
            label = pa.array(found.label, mask=found.label < 0)
            yield _padded(
                {
                    "batch": found.batch,
                    "item": [items[number] for number in found.item.tolist()],
                    "label": label,
                    "name": [labels.get(number) for number in found.label.tolist()],
                    "value": pa.array(found.z, mask=found.label < 0),
                    "confidence": pa.array(found.confidence, mask=np.isnan(found.confidence)),
                }
            )


def _of_batch(batch: Batch, items: dict[int, str]) -> dict[str, Any]:
    taken = [[number, None if item < 0 else items[item], label] for number, item, label in batch.taken_back]
    said = {name: [getattr(batch, name)] for name in ("time", "said", "kind", "author", "run", "note", "key")}
    said["vocabulary"] = [batch.vocabulary]
    return said | {"changes": [changes_text(batch.changes)], "takes_back": [json.dumps(taken)]}


def _padded(columns: dict[str, Any]) -> Any:
    count = len(columns["batch"])
    return pa.table(
        {
            one.name: pa.array(columns[one.name], one.type) if one.name in columns else pa.nulls(count, one.type)
            for one in SCHEMA
        },
        schema=SCHEMA,
    )


def restore(url: PathLike | Place, path: PathLike) -> Ledger:
    """A new ledger that says what the file says, batch by batch, with its numbers and times."""
    if not is_statements(path):
        raise DataError(f"{path}: is not what `partly ledger export --statements` writes.")
    with Ledger.making(url) as ledger, ledger.store.writing() as connection:
        store = ledger.store
        try:
            for number, (head, body) in enumerate(_groups(path), 1):
                _restored(store, connection, number, head, body)
            replayed(reader.batches(store, connection))  # what cannot be is refused before it is there
        except (pa.ArrowException, ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
            raise DataError(f"{path}: damaged, or changed by hand ({error}). No ledger was made of it.") from None
    return ledger


def _groups(path: PathLike) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Each batch: the row that says what it is, and its statements as tables."""
    head: dict[str, Any] | None = None
    body: list[Any] = []
    words = [field.name for field in SCHEMA if pa.types.is_string(field.type)]
    with pq.ParquetFile(path, pre_buffer=False, read_dictionary=words) as file:
        for block in _decoded(file, Budget(Path(path))):
            heads = np.flatnonzero(pc.is_valid(block.column("kind")).to_numpy(zero_copy_only=False)).tolist()
            body += [block.slice(0, heads[0] if heads else len(block))]  # goes on from the block before
            for start, stop in pairwise([*heads, len(block)]):
                if head is not None:
                    yield head, [part for part in body if len(part)]
                elif any(map(len, body)):
                    raise ValueError("statements stand before the first batch")
                head, body = block.slice(start, 1).to_pylist()[0], [block.slice(start + 1, stop - start - 1)]
    if head is not None:
        yield head, [part for part in body if len(part)]
    elif any(map(len, body)):
        raise ValueError("there is no batch in it")


def _decoded(file: Any, budget: Budget) -> Iterator[Any]:
    for batch in file.iter_batches(ROWS):
        yield from decode_dictionaries(batch, budget)


def _restored(store: Store, connection: Any, number: int, head: dict[str, Any], body: list[Any]) -> None:
    if head["batch"] != number or any(pc.unique(part.column("batch")).to_pylist() != [number] for part in body):
        raise ValueError(f"batch {number} is not where it should be")
    row = {name: head[name] for name in ("kind", "author", "run", "note", "key", "vocabulary", "changes")}
    plain_text("batch", [str(one) for one in row.values()])
    micro = {name: None if head[name] is None else int(head[name].timestamp() * 1e6 + 0.5) for name in ("time", "said")}
    names = [name for part in body for name in part.column("item").to_pylist()]
    plain_text("items", names)
    known = dict.fromkeys(names)
    item = dict(zip(known, writer.item_numbers(store, connection, list(known)), strict=True))
    label, z, sure = (
        np.concatenate([np.empty(0), *(_filled(part.column(one), blank) for part in body)])
        for one, blank in (("label", -1), ("value", 0), ("confidence", np.nan))
    )
    if not np.isin(z, (-1, 0, 1)).all() or not ((label >= -1) & (label < writer.MOST)).all():
        raise ValueError(f"batch {number} has values that are not 1, -1 or 0, or labels that cannot be")
    taken = [
        (batch, -1 if name is None else writer.item_numbers(store, connection, [name])[0], which)
        for batch, name, which in json.loads(head["takes_back"])
    ]
    columns = (
        np.array([item[name] for name in names], np.int64),
        label.astype(np.int64),
        z.astype(np.int8),
        None if np.isnan(sure).all() else sure.astype(np.float32),
    )
    writer.insert(store, connection, row | {"number": number, **micro}, columns, taken)


def _filled(column: Any, blank: float) -> Any:
    return column.cast(pa.float64()).fill_null(blank).to_numpy(zero_copy_only=False)
