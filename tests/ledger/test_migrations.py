"""Databases of older versions are migrated on open, whole or not at all; newer ones are refused."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from partly import Ledger
from partly.errors import DataError
from partly.ledger import store as store_module
from partly.ledger.migrations import Schema, add_column, migrate
from partly.ledger.store import Store

Place = Callable[[], str]


def schema(*steps: Callable[[sa.Connection], None]) -> Schema:
    """A table as its second version has it."""
    metadata = sa.MetaData()
    columns = [sa.Column("id", sa.Integer, primary_key=True)] + [sa.Column("note", sa.Text)] * bool(steps)
    sa.Table("notes", metadata, *columns)
    return Schema("notes", "notes", metadata, steps)


def add_note(connection: sa.Connection) -> None:
    add_column(connection, "notes", sa.Column("note", sa.Text))


def fail(connection: sa.Connection) -> None:
    raise DataError("this step fails")


def columns_of(store: Store, table: str) -> list[str]:
    with store.reading() as connection:
        return [column["name"] for column in sa.inspect(connection).get_columns(table)]


def stored(store: Store) -> dict[str, str]:
    with store.reading() as connection:
        return dict(map(tuple, connection.execute(sa.text("SELECT name, value FROM about"))))


def test_a_new_database_gets_the_newest_tables(place: Place) -> None:
    store = Ledger.create(place(), names=["cat"]).store
    migrate(store, schema(add_note))
    assert columns_of(store, "notes") == ["id", "note"]
    assert stored(store) == {"kind": "partly ledger", "format": "1", "notes": "2"}


def test_an_older_database_runs_the_missing_steps_once(place: Place) -> None:
    store = Ledger.create(place(), names=["cat"]).store
    migrate(store, schema())
    with store.writing() as connection:
        connection.exec_driver_sql("INSERT INTO notes (id) VALUES (7)")
    ran = []
    for _ in range(2):
        migrate(store, schema(add_note, lambda _: ran.append("third")))
    assert ran == ["third"]
    with store.reading() as connection:
        assert connection.execute(sa.text("SELECT id, note FROM notes")).all() == [(7, None)]
    assert stored(store)["notes"] == "3"


def test_tables_without_a_number_are_those_of_the_first_version(place: Place) -> None:
    store = Ledger.create(place(), names=["cat"]).store
    with store.writing() as connection:
        schema().metadata.create_all(connection)
    migrate(store, schema(add_note))
    assert columns_of(store, "notes") == ["id", "note"]


def test_a_step_that_fails_leaves_everything_as_it_was(place: Place) -> None:
    store = Ledger.create(place(), names=["cat"]).store
    migrate(store, schema())
    with pytest.raises(DataError, match="this step fails"):
        migrate(store, schema(add_note, fail))
    assert columns_of(store, "notes") == ["id"]
    assert stored(store)["notes"] == "1"


@pytest.mark.parametrize("version", ["3", "0", "-1", "many", ""])
def test_a_newer_or_senseless_version_is_refused(place: Place, version: str) -> None:
    store = Ledger.create(place(), names=["cat"]).store
    migrate(store, schema(add_note))
    with store.writing() as connection:
        connection.execute(sa.text("UPDATE about SET value = :v WHERE name = 'notes'"), {"v": version})
    with pytest.raises(DataError, match=f"notes have version '{version}', and this version of partly reads up to 2"):
        migrate(store, schema(add_note))
    assert stored(store)["notes"] == version


def test_of_several_who_open_at_once_one_migrates(place: Place) -> None:
    where = place()
    migrate(Ledger.create(where, names=["cat"]).store, schema())
    faults: list[Exception] = []
    start = threading.Barrier(4)

    def open_one() -> None:
        start.wait()
        try:
            migrate(Ledger(where).store, schema(add_note))  # a second ALTER TABLE would be refused
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=open_one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert columns_of(Ledger(where).store, "notes") == ["id", "note"]


def test_a_ledger_is_migrated_when_it_is_opened(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    where = place()
    Ledger.create(where, names=["cat"]).append(["a"], ["cat"], [1], author="anna")

    def add_colour(connection: sa.Connection) -> None:
        add_column(connection, "items", sa.Column("colour", sa.Text))

    monkeypatch.setattr(store_module, "LEDGER_STEPS", (add_colour,))
    ledger = Ledger(where)
    assert columns_of(ledger.store, "items") == ["number", "name", "colour"]
    assert ledger.labels().summary()["yes"] == 1
    monkeypatch.undo()
    with pytest.raises(DataError, match="version '2', and this version of partly reads up to 1"):
        Ledger(where)
