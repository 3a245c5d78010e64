"""The tables of a ledger, and who may touch them: one writer at a time, readers of one state, nothing half done.

A batch is a row: who said something, when, and what it does to the vocabulary. Its statements are columns of numbers in
rows of up to PART statements each, and not a row each: ten million rows take Python ten times as long to read as to
fold, and as bytes they carry a checksum, which SQLite has none of. `partly ledger export` writes them as a table.

SQLite keeps a rollback journal and no write-ahead log: up to 3.51.2 that can damage a file that several write (the
library of common Pythons is older), and it needs memory that all share, which network drives have not. PostgreSQL is
held to the same order by a lock that a writer has until his transaction ends; readers are not held up.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from partly.errors import DataError
from partly.ledger.location import MARK, Place, refuse_link, sqlite_uri
from partly.ledger.migrations import LEDGER_STEPS, Schema, migrate, stamp

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, MetaData

PART = 1 << 14  # statements in a row
WAIT = 120.0  # seconds for which a writer waits for others
BLOBS = ("items", "labels", "answers", "confidences")
ACTING = ("ON CONFLICT", "CASCADE", "SET NULL", "SET DEFAULT", "GENERATED", "VIRTUAL")  # in the schema of a table
NEEDED = "A ledger needs SQLAlchemy, and psycopg for a server: pip install 'partly[ledger]'."


def tables() -> MetaData:
    """The schema, in SQLAlchemy's words; imported only where there is a ledger."""
    sa = library()
    data: MetaData = sa.MetaData()
    sa.Table("about", data, sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False))
    sa.Table(
        "items",
        data,
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False, unique=True),
    )
    sa.Table(
        "batches",
        data,
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.BigInteger, nullable=False),  # microseconds since 1970, never before those of the last
        sa.Column("said", sa.BigInteger),  # when it was said, where that was elsewhere
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("vocabulary", sa.BigInteger, nullable=False),
        sa.Column("changes", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("key", sa.Text, unique=True),
    )
    batch = sa.ForeignKey("batches.number")
    sa.Table(
        "statements",
        data,
        sa.Column("batch", sa.BigInteger, batch, primary_key=True, autoincrement=False),
        sa.Column("part", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("first_item", sa.BigInteger, nullable=False),
        sa.Column("last_item", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("items", sa.LargeBinary, nullable=False),  # int32, little-endian
        sa.Column("labels", sa.LargeBinary, nullable=False),  # the same; -1: the item is there, and no more is said
        sa.Column("answers", sa.LargeBinary, nullable=False),  # int8: 1 yes, -1 no, 0 cannot tell
        sa.Column("confidences", sa.LargeBinary, nullable=False),  # float32; empty: nothing is said of it
    )
    sa.Table(
        "taken_back",
        data,
        sa.Column("batch", sa.BigInteger, sa.ForeignKey("batches.number"), primary_key=True, autoincrement=False),
        sa.Column("taken", sa.BigInteger, sa.ForeignKey("batches.number"), primary_key=True, autoincrement=False),
        sa.Column("item", sa.BigInteger, primary_key=True, autoincrement=False),  # -1: the whole batch
        sa.Column("label", sa.BigInteger, primary_key=True, autoincrement=False),
    )
    return data


def library() -> Any:
    try:
        import sqlalchemy
    except ImportError as error:
        raise DataError(NEEDED) from error
    return sqlalchemy


class NothingThere(DataError):
    """Where a ledger should be there is neither one nor anything else: one could be made."""


class Store:
    """A database that holds one ledger. What goes wrong with it is a DataError that says where, never with what."""

    def __init__(self, place: Place, create: bool = False) -> None:
        self.place, self.sa = place, library()
        self.schema = Schema("format", "the tables of the ledger", tables(), LEDGER_STEPS)
        self.tables = self.schema.metadata.tables
        self.forget()
        self.engine: Engine = _file(self.sa, place, create) if place.file else _server(self.sa, place)
        if not create:
            self._check()

    # ---------------------------------------------------------------- transactions

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One state of everything, however long it is looked at."""
        with self._told(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Alone, and all or nothing: whoever comes second waits before he has read anything."""
        with self._told(), self.engine.connect() as connection:
            # A server's writer must see what came while he waited, so he keeps no state from before.
            level = {} if self.place.file else {"isolation_level": "READ COMMITTED"}
            connection = connection.execution_options(partly_writes=True, **level)
            try:
                with connection.begin():
                    yield connection
            except BaseException:
                self.forget()
                raise

    def forget(self) -> None:
        """What is remembered of the tables: of a transaction that came to nothing it may be untrue."""
        self.known_items: dict[str, int] = {}  # names -> numbers, of some
        self.known_structure: tuple[int, Any] | None = None  # the last batch that was seen, and its history

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (self.sa.exc.SQLAlchemyError, sqlite3.Error, OSError, UnicodeError) as error:
            words = " ".join(str(getattr(error, "orig", None) or error).split())
            raise DataError(f"{self.place.shown}: {_reason(words)}") from None  # its own words may quote parameters

    # ---------------------------------------------------------------- is it one of ours?

    @contextmanager
    def creating(self) -> Iterator[Connection]:
        """The tables of a new ledger, and all that is written within this: there as a whole or not at all."""
        with self.writing() as connection:
            if self.sa.inspect(connection).get_table_names():
                raise DataError(f"{self.place.shown}: there is something in it already. Choose another place.")
            self.schema.metadata.create_all(connection)
            connection.execute(self.tables["about"].insert().values(name="kind", value="partly ledger"))
            stamp(self, connection, self.schema)
            if self.place.file is not None:
                connection.exec_driver_sql(f"PRAGMA application_id = {int.from_bytes(MARK)}")
            yield connection

    def _refuse_acting(self, connection: Connection) -> None:
        """Refuse a database of a stranger that does something by itself when others write to it."""
        if self.place.file is not None:
            query = "SELECT type, name, sql FROM sqlite_master"
            found = [(kind, name, str(sql).upper()) for kind, name, sql in connection.exec_driver_sql(query)]
            acting = [f"the {kind} {name!r}" for kind, name, _ in found if kind not in ("table", "index")]
            acting += [f"the table {name!r}" for _, name, sql in found if any(word in sql for word in ACTING)]
        else:
            query = "SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal"
            query += " AND relnamespace = current_schema()::regnamespace"
            acting = [f"the trigger {name!r}" for (name,) in connection.exec_driver_sql(query)]
            acting += [f"the view {name!r}" for name in self.sa.inspect(connection).get_view_names()]
        if acting:
            raise DataError(
                f"{self.place.shown}: {', '.join(acting[:5])} would act by itself, and partly makes no triggers and no "
                "views. Nothing was changed. Ask who made the ledger for an export: partly ledger export --statements."
            )

    def _check(self) -> None:
        """Refuse a database that holds something else, or what a newer version wrote."""
        refusal = f"{self.place.shown}: is a database, but no ledger"
        with self.reading() as connection:
            self._refuse_acting(connection)
            there = set(self.sa.inspect(connection).get_table_names())
            if not there:
                raise NothingThere(f"{self.place.shown}: is empty. Make a ledger of it: partly ledger init.")
            if self.place.file is not None:
                mark = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
                if mark != int.from_bytes(MARK):
                    raise DataError(f"{refusal} (its application id is {mark}). Make one: partly ledger init.")
            if "about" not in there:
                raise DataError(f"{refusal} (it has no table 'about'). Make one: partly ledger init.")
            about = self.tables["about"]
            said = dict(map(tuple, connection.execute(self.sa.select(about.c.name, about.c.value))))
        if said.get("kind") != "partly ledger":
            raise DataError(f"{refusal} (its table 'about' does not say so). Make one: partly ledger init.")
        if "format" not in said:
            raise DataError(f"{self.place.shown}: damaged, its table 'about' names no format. Restore a copy.")
        migrate(self, self.schema)
        with self.reading() as connection:
            lost = sorted(set(self.tables) - set(self.sa.inspect(connection).get_table_names()))
        if lost:
            raise DataError(f"{self.place.shown}: damaged, tables are missing: {', '.join(lost)}. Restore a copy.")


class Joined:
    """A store in the middle of a transaction, which others begin and end."""

    def __init__(self, store: Store, connection: Connection) -> None:
        self._store, self._connection = store, connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        yield self._connection

    reading = writing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def digest_of(batch: int, part: int, blobs: Sequence[bytes]) -> bytes:
    """Of a row of statements: SQLite notices no flipped byte."""
    sha = hashlib.sha256(f"{batch}.{part}:{','.join(str(len(blob)) for blob in blobs)}:".encode())
    for blob in blobs:
        sha.update(blob)
    return sha.digest()


def now() -> int:
    return time.time_ns() // 1000


def changes_text(changes: Sequence[Any]) -> str:
    return json.dumps([one.plain() for one in changes], ensure_ascii=False) if changes else ""


def _file(sa: Any, place: Place, create: bool) -> Engine:
    """Make an engine for a file. Only SQLite ever opens it: when a process closes any descriptor of a file, POSIX drops
    all locks that the process holds on it, also those of a transaction in another thread."""
    path = place.file
    assert path is not None
    try:
        refuse_link(path)
        if create:
            new = not os.path.lexists(path)
            with closing(sqlite3.connect(sqlite_uri(path, "rwc"), uri=True)):
                pass  # the file is there now, and empty
            if new:
                os.chmod(path, 0o600)  # SQLite gives its journals the same mode
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError("it is no plain file")
    except (OSError, ValueError, sqlite3.Error) as error:
        told = f"{path}: cannot be opened ({getattr(error, 'strerror', None) or error})."
        if isinstance(error, FileNotFoundError) and not create:
            raise NothingThere(f"{told} Make one: partly ledger init {path}") from None
        raise DataError(told) from None
    name = sqlite_uri(path, "rw")

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(name, uri=True, timeout=WAIT, isolation_level=None, check_same_thread=False)
        for said in ("journal_mode = DELETE", "synchronous = EXTRA", "foreign_keys = ON", "trusted_schema = OFF"):
            connection.execute(f"PRAGMA {said}")
        return connection

    engine: Engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.NullPool, hide_parameters=True)

    @sa.event.listens_for(engine, "begin")  # type: ignore[untyped-decorator]
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("partly_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _server(sa: Any, place: Place) -> Engine:
    try:
        url = sa.engine.make_url(f"postgresql+psycopg://{place.server}")
        engine: Engine = sa.create_engine(
            url, poolclass=sa.pool.NullPool, hide_parameters=True, isolation_level="REPEATABLE READ"
        )
    except ImportError as error:
        raise DataError(NEEDED) from error
    except (sa.exc.ArgumentError, ValueError):
        raise DataError(f"{place.shown}: is no URL of a server: postgresql://user@host/database.") from None

    @sa.event.listens_for(engine, "begin")  # type: ignore[untyped-decorator]
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("partly_writes"):
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (int.from_bytes(MARK),))

    return engine


def _reason(words: str) -> str:
    """In words of ours where something is to be done about it."""
    if "locked" in words:
        return f"others have been writing for {WAIT:.0f} s ({words}). Nothing was changed; try again."
    if "not a database" in words:
        return "is no SQLite database, or its beginning is damaged; nothing was changed."
    if "malformed" in words or "corrupt" in words:
        return f"damaged ({words}). Restore a copy; `sqlite3 FILE .recover` may save what is left."
    if "readonly" in words or "read-only" in words or "unable to open" in words:
        return f"cannot be written ({words}). Nothing was changed."
    if "full" in words or "disk I/O" in words:
        return f"cannot be written ({words}). What was acknowledged before is intact."
    return f"the database refused ({words})."
