"""A ledger as a Parquet file and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partly import Ledger
from partly.errors import DataError, PartlyError
from partly.ledger import exchange, store
from partly.ledger.store import LedgerNotFound


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setattr(store, "STATEMENTS_PER_ROW", 3)
    monkeypatch.setattr("partly.ledger.writer.STATEMENTS_PER_ROW", 3)
    ledger = Ledger.create(tmp_path / "labels.db", names=["cat", "Animal"])
    first = ledger.append(list("abcdefg"), ["cat"] * 7, [1, 0, None, 1, 0, 1, 1], author="anna", note="n", key="k")
    ledger.append(["a", "b"], ["cat"] * 2, [0, 1], kind="model", run="runs/1", confidence=[0.5, 1])
    ledger.split("Animal", ["Bird"])
    ledger.rename("cat", "Cat")
    ledger.undo(first, item="a")
    ledger.undo(ledger.undo(first))
    return ledger


@pytest.mark.parametrize("rows", [1 << 16, 2])
def test_all_comes_back(
    told: Ledger, place: Callable[[], str], tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "ROWS_PER_BLOCK", rows)
    assert exchange.export(told, tmp_path / "all.parquet") == len(told.log())
    assert exchange.is_statements(tmp_path / "all.parquet")
    copy = exchange.restore(place(), tmp_path / "all.parquet")
    assert copy.log() == told.log()
    for at in range(len(told.log()) + 1):
        assert copy.labels(at, models=True) == told.labels(at, models=True)
    assert copy.show("a") == told.show("a")
    assert copy.add(["new"]) == told.add(["new"]), "numbers of labels go on where they were"
    assert copy.vocabulary() == told.vocabulary()


def test_a_file_that_was_changed_is_refused(told: Ledger, tmp_path: Path) -> None:
    exchange.export(told, tmp_path / "all.parquet")
    table = pq.read_table(tmp_path / "all.parquet")
    value = table.column_names.index("value")
    for number, wrong in enumerate(
        (
            table.slice(1),
            table.slice(2, 3),
            table.set_column(value, "value", pa.array([7] * len(table), pa.int8())),
            table.filter(pa.array([row["batch"] != 2 for row in table.to_pylist()])),
        )
    ):
        path = tmp_path / "wrong.parquet"
        pq.write_table(wrong, path)
        with pytest.raises(PartlyError):
            exchange.restore(tmp_path / f"{number}.db", path)
        with pytest.raises(LedgerNotFound):
            Ledger(tmp_path / f"{number}.db")
        whole = exchange.restore(tmp_path / f"{number}.db", tmp_path / "all.parquet")  # it is in nobody's way
        assert whole.log() == told.log()
    with pytest.raises(PartlyError, match="was not written by"):
        exchange.restore(tmp_path / "x.db", told.store.place.file or "")
    assert not (tmp_path / "x.db").exists()


def test_a_fold_by_blocks_is_the_same(told: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = told.labels(models=True)
    for block in (1, 2, 5):
        monkeypatch.setattr("partly.ledger.reader.BLOCK_STATEMENTS", block)
        assert told.labels(models=True) == whole


def test_an_export_that_would_become_gigabytes_is_refused(tmp_path: Path) -> None:
    """A few bytes of a Parquet file stand for the same long text in every row."""
    ledger = Ledger.create(tmp_path / "labels.db", names=["cat"])
    ledger.append(["a"], ["cat"], [1], author="anna")
    exchange.export(ledger, tmp_path / "all.parquet")
    table = pq.read_table(tmp_path / "all.parquet")
    rows = table.slice(len(table) - 1).take(np.zeros(20_000, np.int64))
    texts = pa.DictionaryArray.from_arrays(np.zeros(len(rows), np.int32), ["x" * 100_000])
    rows = rows.set_column(rows.schema.get_field_index("item"), "item", texts)
    bomb = tmp_path / "bomb.parquet"
    pq.write_table(rows, bomb, compression="zstd")
    assert bomb.stat().st_size < 100_000
    with pytest.raises(DataError, match="times as much"):
        exchange.restore(tmp_path / "new.db", bomb)
    exchange.restore(tmp_path / "new.db", tmp_path / "all.parquet")  # nothing is in the way of a good one
