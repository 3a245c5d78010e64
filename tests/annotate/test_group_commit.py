"""Many who write at once: one commit, all told after it, and nobody pays for another's fault."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, insert, select

from annotate.making import Project, project
from partly.annotate import group_commit, tables
from partly.errors import DataError

table = tables.invitations


def row(name: str) -> dict[str, object]:
    return {"digest": name, "role": "admin", "expires": 1.0}


def there(made: Project) -> set[str]:
    with made.ledger.store.reading() as connection:
        return set(connection.scalars(select(table.c.digest)))


def writes(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get("partly_writes"))


def together(made: Project, names: list[str], write) -> dict[str, object]:
    """All of them while one holds the turn, so that they wait for each other; name -> whether it then saw what it had
    written, or its fault."""
    begun, enough = threading.Event(), threading.Event()

    def holds() -> None:
        with group_commit.transaction(made.ledger.store) as connection:
            connection.execute(insert(table).values(row("holder")))
            begun.set()
            assert enough.wait(60)

    def one(name: str) -> object:
        try:
            with group_commit.transaction(made.ledger.store) as connection:
                write(connection, name)
        except Exception as fault:
            return fault
        return name in there(made)

    with ThreadPoolExecutor(len(names) + 1) as people:
        first = people.submit(holds)
        assert begun.wait(60)
        found = {name: people.submit(one, name) for name in names}
        waiting = group_commit._queues[made.ledger.store]
        while waiting._waiting < len(names):
            threading.Event().wait(0.001)
        enough.set()
        told = {name: future.result(60) for name, future in found.items()}
        told["holder"] = first.exception(60)
    return told


def test_who_waits_shares_a_commit_and_goes_on_after_it(tmp_path: Path):
    made, written = project(tmp_path), []
    event.listen(made.ledger.store.engine, "commit", lambda one: written.append(one) if writes(one) else None)
    names = [f"person {i}" for i in range(8)]
    told = together(made, names, lambda connection, name: connection.execute(insert(table).values(row(name))))
    assert told == dict.fromkeys(names, True) | {"holder": None}
    assert there(made) == {*names, "holder"}
    assert len(written) == 1


def test_who_is_refused_takes_nobody_else_back(tmp_path: Path):
    made = project(tmp_path)

    def write(connection, name: str) -> None:
        connection.execute(insert(table).values(row(name)))
        if name == "b":
            made.ledger.store.known_items["in vain"] = 7  # and who follows must not build on it
            raise ValueError(name)

    told = together(made, ["a", "b", "c"], write)
    assert isinstance(told.pop("b"), ValueError)
    assert "in vain" not in made.ledger.store.known_items
    assert told == {"a": True, "c": True, "holder": None}
    assert there(made) == {"a", "c", "holder"}


def test_where_the_database_fails_nobody_is_told_that_it_is_written(tmp_path: Path):
    made = project(tmp_path)
    made.ledger.store.known_items["in vain"] = 7

    def write(connection, name: str) -> None:
        connection.execute(insert(table).values(row(name)))
        if name == "b":
            connection.execute(insert(table).values(row("holder")))  # there already

    told = together(made, ["b"], write)
    assert [type(told[name]) for name in ("b", "holder")] == [DataError, DataError]
    assert there(made) == set()
    assert "in vain" not in made.ledger.store.known_items
    with group_commit.transaction(made.ledger.store) as connection:  # and it goes on
        connection.execute(insert(table).values(row("later")))
    assert there(made) == {"later"}


def test_a_store_that_cannot_be_opened_lets_the_next_one_try(tmp_path: Path):
    made = project(tmp_path)
    place = tmp_path / "labels.db"
    place.rename(tmp_path / "away.db")
    for _ in range(2):
        with pytest.raises(DataError), group_commit.transaction(made.ledger.store):
            pass
    (tmp_path / "away.db").rename(place)
    with group_commit.transaction(made.ledger.store) as connection:
        connection.execute(insert(table).values(row("later")))
    assert there(made) == {"later"}
