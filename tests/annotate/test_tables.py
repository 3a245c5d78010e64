"""Databases of partly 0.2 are migrated, and become what a new one is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from annotate import tables_of_0_2 as old
from annotate.conftest import ledger_places
from partly import Ledger
from partly.annotate import tables
from partly.ledger.store import Store

databases = ledger_places.databases


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    if request.param == "sqlite":
        names = iter("ab")
        return lambda: str(tmp_path / f"{next(names)}.db")
    return databases(request.getfixturevalue("server"))


def described(store: Store) -> dict[str, Any]:
    """Columns, keys and indices of all tables, as the database tells them."""
    found = {}
    with store.reading() as connection:
        look = sa.inspect(connection)
        for table in look.get_table_names():
            columns = {one["name"]: (str(one["type"]), one["nullable"]) for one in look.get_columns(table)}
            keys = {(*one["constrained_columns"], one["referred_table"]) for one in look.get_foreign_keys(table)}
            indices = {(one["name"], *one["column_names"]) for one in look.get_indexes(table)}
            found[table] = columns, keys, indices
    return found


def database_of_0_2(where: str) -> Ledger:
    ledger = Ledger.create(where, names=["cat"])
    with ledger.store.writing() as connection:
        old.metadata.create_all(connection)
        person = {"id": 1, "name": "Anna", "folded": "anna", "secret": None, "role": "admin", "made": 1.0}
        connection.execute(old.people.insert().values(person))
        for digest, used in (("a", None), ("b", 2.0)):
            row = {"digest": digest * 64, "role": "admin", "person": 1, "expires": 9e9, "used": used}
            connection.execute(old.invitations.insert().values(row))
    return ledger


def test_a_database_of_0_2_becomes_what_a_new_one_is(place: Callable[[], str]) -> None:
    migrated, new = database_of_0_2(place()), Ledger.create(place(), names=["cat"])
    for ledger in (migrated, new, migrated):
        tables.prepare(ledger.store)
    assert described(migrated.store) == described(new.store)
    with migrated.store.reading() as connection:
        assert connection.scalars(sa.select(tables.people.c.name)).all() == ["Anna"]
        links = connection.execute(sa.select(tables.invitations.c.used, tables.invitations.c.maker)).all()
    assert links == [(2.0, None)]  # links of which nobody knows the maker let nobody in any more
