"""Features in a table: one column holds the ids (`item`, `id` or the one that the caller names), the others features.

Label columns that the caller names, and a column `split` with train and test, are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from partly.data.dataset import Dataset, empty_labels
from partly.data.formats.wide import refuse_bad_ids
from partly.data.item_columns import detect_content
from partly.data.label_semantics import LabelSemantics
from partly.data.matching import refuse_unwritable
from partly.data.paths import check_file, format_suffix
from partly.data.protocols import DatasetFormat
from partly.data.table_layout import ID, SPLIT, find_columns, has_split, with_id_column
from partly.data.tables import READABLE, SUFFIXES, Table, is_table, open_table, text_column, write_table
from partly.errors import DataError, listing
from partly.items import Arrays, Items, features, matrix_rows
from partly.items.arrays import refuse_infinite
from partly.items.columns import TEXT_COLUMNS_REMEDY
from partly.items.encoding import Column
from partly.items.table_rows import TableRows, parse_column, table_rows

BLOCK = 1 << 14  # largest number of rows read or written at a time
MIN_IDS = 10  # different texts that look like ids
BLOCK_CELLS = {".parquet": 1 << 25}  # per block: every group of a Parquet file costs some bytes per column


def recognizes(path: Path) -> bool:
    """Return whether this is a table without texts, images or entries; other content is refused when it is read."""
    return is_table(path) and path.exists() and detect_content(path) is None


def read(path: Path, semantics: LabelSemantics = LabelSemantics()) -> Dataset:  # noqa: B008 (it is frozen)
    table = with_id_column(open_table(check_file(path, READABLE)), semantics.id_column)
    labels = find_columns(table.header, semantics.label_columns)
    ignored = {ID, *labels, *([SPLIT] if has_split(table) else [])}
    items, ids = read_rows(table, [name for name in table.header if name not in ignored], semantics.missing)
    if table.by_position:
        _refuse_ids(items, path)
    return Dataset(items, empty_labels(ids))


def _refuse_ids(items: Items, path: Path) -> None:
    """Refuse a table without ids if a text column has a different value in every row: it may hold the ids."""
    for column in items.table.columns if isinstance(items, TableRows) else ():
        if column.kind == "category" and len(items) >= MIN_IDS and len(set(column.values)) == len(items):
            raise DataError(
                f"{path}: column {column.name!r} has a different text in every row ({column.values[0]!r:.40}, ...). "
                f"If it holds the ids of the items: --id-column {column.name} (id_column=). Otherwise leave it out."
            )


def write(data: Dataset, path: Path) -> None:
    labels, items = data.labels, data.items
    names = items.names or tuple(f"feature {j}" for j in range(items.shape[0]))
    if items.kind != "features":
        raise DataError(f"{path}: a table holds features; these items are {items.kind}.")
    blocks = (items.take(slice(i, i + BLOCK)).numpy() for i in range(0, len(items), BLOCK))
    write_numbers(path, map(labels.id_at, range(len(labels))), names, blocks)


def write_numbers(path: Path, ids: Iterable[str], names: Sequence[str], blocks: Iterable[npt.NDArray[Any]]) -> None:
    """Write blocks of rows with their ids, one column per name; only one block is held in memory."""
    refuse_unwritable((), names, path)
    if ID in names:
        raise DataError(f"{path}: only the column of ids can be named {ID!r}. Rename the other one.")
    schema = pa.schema([(ID, pa.string()), *((name, pa.float32()) for name in names)])

    rows = min(BLOCK, max(1, BLOCK_CELLS.get(format_suffix(path), 1 << 20) // max(1, len(names))))

    def batches() -> Iterator[Any]:
        rest = iter(ids)
        for columns in _columns(blocks, len(names), rows):
            block_ids = list(islice(rest, columns.shape[1]))
            refuse_unwritable(block_ids, (), path)
            values = (pa.array(column, from_pandas=True) for column in columns)  # NaN becomes a blank cell
            yield pa.record_batch([pa.array(block_ids, pa.string()), *values], schema)

    write_table(path, schema, batches())


def _columns(blocks: Iterable[npt.NDArray[Any]], width: int, rows: int) -> Iterator[npt.NDArray[np.float32]]:
    """Regroup blocks of rows into columns [width, rows]: small blocks would make small Parquet row groups."""
    columns, filled = np.empty((width, rows), np.float32), 0
    for block in blocks:
        while len(block):
            part = block[: rows - filled]
            columns[:, filled : filled + len(part)] = part.T
            block, filled = block[len(part) :], filled + len(part)
            if filled == rows:
                yield columns
                columns, filled = (
                    np.empty((width, rows), np.float32),
                    0,
                )  # a new array: the writer may still use the old one
    if filled:
        yield np.ascontiguousarray(columns[:, :filled])


def read_rows(table: Table, columns: Sequence[str], missing: Sequence[str] = ()) -> tuple[Items, tuple[str, ...]]:
    """Read features and ids; rows of a table if some columns are not numbers.

    missing : further text cells that mean missing.
    """
    text_columns = dict[str, str]()
    ids: list[str] = []
    blocks: list[npt.NDArray[np.float64]] = [np.empty((0, len(columns)))]
    for block_ids, x in number_blocks(table, columns, text_columns):
        ids += block_ids
        blocks.append(x)
    refuse_bad_ids(table, ids)
    x = np.concatenate(blocks)

    def place(i: int, j: int) -> str:
        return f"{table.place(i)}: item {ids[i]!r}, column {columns[j]!r}"

    if not text_columns:
        return matrix_rows(x, str(table.path), tuple(columns), place), tuple(ids)
    refuse_infinite(x, str(table.path), tuple(columns), place)
    typed = {column.name: column for column in _read_typed(table, list(text_columns), missing)}
    numeric = (Column(name, "number", x[:, j]) for j, name in enumerate(columns))
    return table_rows([typed.get(column.name, column) for column in numeric], str(table.path)), tuple(ids)


def _read_typed(table: Table, names: Sequence[str], missing: Sequence[str]) -> Iterator[Column]:
    """Read columns that are not all numbers; their cells decide the kind."""
    batches = list(table.batches(names))
    wrong = []
    for j, name in enumerate(names):
        cells = pa.chunked_array([batch.column(j) for batch in batches]).combine_chunks()
        try:
            yield parse_column(name, cells, missing, table.decimal_comma)
        except DataError as error:
            wrong.append(str(error))
    if wrong:
        raise DataError(
            f"{table.path}: columns that cannot be encoded: {len(wrong)}"
            + listing(wrong, len(wrong))
            + f"\n{TEXT_COLUMNS_REMEDY}"
        )


def read_numbers(table: Table, columns: Sequence[str]) -> tuple[Arrays, tuple[str, ...]]:
    """Read numbers [N, D] and ids."""
    ids: list[str] = []
    blocks: list[npt.NDArray[np.float64]] = [np.empty((0, len(columns)))]
    for block_ids, x in number_blocks(table, columns):
        ids += block_ids
        blocks.append(x)
        table.budget.hold(2 * x.nbytes)  # the blocks, and the concatenated matrix
    refuse_bad_ids(table, ids)

    def place(i: int, j: int) -> str:
        return f"{table.place(i)}: item {ids[i]!r}, column {columns[j]!r}"

    return features(np.concatenate(blocks), str(table.path), tuple(columns), place), tuple(ids)


def number_blocks(
    table: Table, columns: Sequence[str], found_text: dict[str, str] | None = None
) -> Iterator[tuple[list[str], npt.NDArray[np.float64]]]:
    """Yield blocks of ids and numbers [B, D].

    Columns that are not numbers are refused at the end. With `found_text`, their values are NaN and the first text of
    each is added to it.
    """
    start, text_columns = 0, dict[str, str]() if found_text is None else found_text
    for batch in table.batches([ID, *columns]):
        table.budget.hold_rows(batch.num_rows)
        if table.decimal_comma:
            _refuse_mixed_decimals(table, columns, batch)
        x = np.full((batch.num_rows, len(columns)), np.nan)
        for j, (name, column) in enumerate(zip(columns, batch.columns[1:], strict=True)):
            try:
                x[:, j] = _numbers(column, table.decimal_comma)
            except pa.ArrowException:
                text_columns.setdefault(
                    name, f"column {name!r}, {table.place(start + _first_text(column, table.decimal_comma))}"
                )
        start += batch.num_rows
        if found_text is not None or not text_columns:
            yield text_column(batch.column(0), ID, table.path).to_pylist(), x
    if text_columns and found_text is None:
        raise DataError(
            f"{table.path}: columns that are not numbers: {len(text_columns)}"
            + listing(text_columns.values(), len(text_columns))
            + f"\n{TEXT_COLUMNS_REMEDY}"
        )


def _refuse_mixed_decimals(table: Table, columns: Sequence[str], batch: Any) -> None:
    """Refuse 1.000 next to 1,5: it may mean one or one thousand."""
    examples = dict[str, str]()
    for name, column in zip(columns, batch.columns[1:], strict=True):
        for sign, pattern in ((",", r"^[+-]?[0-9]+,[0-9]+$"), (".", r"^[+-]?[0-9]{1,3}([.][0-9]{3})+$")):
            cells = column.filter(pc.match_substring_regex(column, pattern))
            if len(cells):
                examples.setdefault(sign, f"column {name!r}: {cells[0].as_py()}")
    if len(examples) > 1:
        raise DataError(
            f"{table.path}: some numbers have a decimal comma and others a point"
            + listing(examples.values(), len(examples))
            + "\nUse the same decimal sign for all, and no thousands separators."
        )


def _numbers(column: Any, decimal_comma: bool = False) -> npt.NDArray[np.float64]:
    """Parse numbers, blank as NaN. decimal_comma: 1,5 is a number, unless other cells have a point."""
    if pa.types.is_string(column.type):
        column = pc.if_else(pc.equal(column, ""), None, column)
        if decimal_comma and not pc.any(pc.match_substring(column, ".")).as_py():
            column = pc.replace_substring(column, ",", ".")
    numbers: npt.NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _first_text(column: Any, decimal_comma: bool) -> int:
    """Return the position of the first cell that is not a number."""
    for i in range(len(column)):
        try:
            _numbers(column.slice(i, 1), decimal_comma)
        except pa.ArrowException:
            return i
    return 0


FORMAT = DatasetFormat("items", recognizes, read, write, suffixes=SUFFIXES)
