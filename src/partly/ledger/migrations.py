"""Numbered migrations: bring the tables of an older database to those of this version, on open.

The table `about` holds one version per schema: "format" for the ledger, "annotate" for the annotation server. A new
database gets the current tables. An older one runs the steps that it lacks, in order, in one
transaction: after a kill or an error the database is as it was. A newer one is refused.

To change a table:

1. Change its definition (`ledger/store.py`, `annotate/tables.py`); new databases are created from it.
2. Append a step to the list of its schema (`LEDGER_STEPS` below, `STEPS` in `annotate/tables.py`); older databases run
   it.

Never edit, reorder or remove a released step. A step spells out what it adds: a definition may change again later.
A test compares both ways, on SQLite and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from partly.errors import DataError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sqlalchemy import Column, Connection, MetaData

Step = Callable[["Connection"], None]

LEDGER_STEPS: tuple[Step, ...] = ()  # version 1 is that of partly 0.2


class Database(Protocol):
    """The part of a `Store` that migrations use."""

    place: Any

    @property
    def tables(self) -> Mapping[str, Any]: ...

    def reading(self) -> AbstractContextManager[Connection]: ...

    def writing(self) -> AbstractContextManager[Connection]: ...


@dataclass(frozen=True)
class Schema:
    """Tables that share a version number. Version 1 is that of partly 0.2; each step adds one."""

    key: str  # the row of `about` that holds the version
    title: str  # for messages
    metadata: MetaData
    steps: tuple[Step, ...] = ()

    @property
    def version(self) -> int:
        return 1 + len(self.steps)


def migrate(store: Database, schema: Schema) -> None:
    """Create the tables of a schema, or run the steps that they lack. Does not write where nothing is missing."""
    with store.reading() as connection:
        if _read_version(store, connection, schema) == schema.version:
            return
    with store.writing() as connection:
        version = _read_version(store, connection, schema)  # another process may have been faster
        if version == 0:
            schema.metadata.create_all(connection)
        for step in schema.steps[version - 1 :] if version else ():
            step(connection)
        stamp(store, connection, schema)


def stamp(store: Database, connection: Connection, schema: Schema) -> None:
    """Store the version of a schema."""
    about = store.tables["about"]
    connection.execute(about.delete().where(about.c.name == schema.key))
    connection.execute(about.insert().values(name=schema.key, value=str(schema.version)))


def add_column(connection: Connection, table: str, column: Column[Any]) -> None:
    """Add a column, which must allow NULL or have a server default; its foreign key comes along."""
    from sqlalchemy.schema import CreateColumn

    quote = connection.dialect.identifier_preparer.quote
    definition = str(CreateColumn(column).compile(dialect=connection.dialect))
    for key in column.foreign_keys:
        other, _, name = key.target_fullname.partition(".")
        definition += f" REFERENCES {quote(other)} ({quote(name)})"
    connection.exec_driver_sql(f"ALTER TABLE {quote(table)} ADD COLUMN {definition}")


def _read_version(store: Database, connection: Connection, schema: Schema) -> int:
    """Return the version of the existing tables; 0 for none. Databases of 0.2 store none for the annotation server."""
    from sqlalchemy import inspect, select

    about = store.tables["about"]
    stored = connection.scalar(select(about.c.value).where(about.c.name == schema.key))
    if stored is None:
        existing = inspect(connection).get_table_names()
        return 1 if any(name in existing for name in schema.metadata.tables) else 0
    if not stored.isdecimal() or not 1 <= int(stored) <= schema.version:
        raise DataError(
            f"{store.place.address}: {schema.title} have version {stored!r}, and this version of partly reads up to "
            f"{schema.version}. Nothing was changed. Open it with the version of partly that wrote it, or upgrade."
        )
    return int(stored)
