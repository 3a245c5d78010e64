"""The tables of a ledger and their transactions: one writer at a time, readers see one state, writes are atomic.

A batch is a row: its source, its time, and its changes of the vocabulary. Its statements are stored as binary columns,
up to `STATEMENTS_PER_ROW` in a row: ten million rows would take Python ten times as long to read as to resolve, and
the columns carry a checksum, which SQLite does not have. `partly ledger export` writes them as a table.

SQLite uses a rollback journal. A write-ahead log can damage a file with several writers (up to SQLite 3.51.2, and
common Pythons have older ones), and it needs shared memory, which network drives lack. On PostgreSQL an advisory lock
gives writers the same order; readers do not wait.
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

STATEMENTS_PER_ROW = 1 << 14
LOCK_SECONDS = 120.0  # a writer waits this long for others
BLOBS = ("items", "labels", "answers", "confidences")
ACTIVE_CLAUSES = (
    "ON CONFLICT",
    "CASCADE",
    "SET NULL",
    "SET DEFAULT",
    "GENERATED",
    "VIRTUAL",
)  # in the schema of a table
MISSING_LIBRARY = "A ledger needs SQLAlchemy, and psycopg for a server: pip install 'partly[ledger]'."


def tables() -> MetaData:
    """Return the schema; SQLAlchemy is imported only if there is a ledger."""
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
        sa.Column("time", sa.BigInteger, nullable=False),  # microseconds since 1970, never decreasing
        sa.Column("said", sa.BigInteger),  # original time, if it was stated elsewhere
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
        sa.Column("labels", sa.LargeBinary, nullable=False),  # int32; -1: records only that the item exists
        sa.Column("answers", sa.LargeBinary, nullable=False),  # int8: 1 yes, -1 no, 0 cannot tell
        sa.Column("confidences", sa.LargeBinary, nullable=False),  # float32; empty: none given
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
        raise DataError(MISSING_LIBRARY) from error
    return sqlalchemy


class LedgerNotFound(DataError):
    """Raised when the place of a ledger is empty, so that a ledger could be created there."""


class Store:
    """A database with one ledger. Its errors are DataErrors that name the place and quote no parameters."""

    def __init__(self, place: Place, create: bool = False) -> None:
        self.place, self.sa = place, library()
        self.schema = Schema("format", "the tables of the ledger", tables(), LEDGER_STEPS)
        self.tables = self.schema.metadata.tables
        self.forget()
        self.engine: Engine = _file_engine(self.sa, place, create) if place.file else _server_engine(self.sa, place)
        if not create:
            self._check()

    # ---------------------------------------------------------------- transactions

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read transaction, which sees one state."""
        with self._data_errors(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open the only write transaction; a second writer waits before it reads anything."""
        with self._data_errors(), self.engine.connect() as connection:
            # On a server, a writer must see what was committed while it waited.
            level = {} if self.place.file else {"isolation_level": "READ COMMITTED"}
            connection = connection.execution_options(partly_writes=True, **level)
            try:
                with connection.begin():
                    yield connection
            except BaseException:
                self.forget()
                raise

    def forget(self) -> None:
        """Clear the caches, which may hold values of a transaction that failed."""
        self.known_items: dict[str, int] = {}  # names -> numbers, not all
        self.known_structure: tuple[int, Any] | None = None  # last batch that was read, and its history

    @contextmanager
    def _data_errors(self) -> Iterator[None]:
        try:
            yield
        except (self.sa.exc.SQLAlchemyError, sqlite3.Error, OSError, UnicodeError) as error:
            message = " ".join(str(getattr(error, "orig", None) or error).split())
            raise DataError(f"{self.place.address}: {_describe_error(message)}") from None  # hides quoted parameters

    # ---------------------------------------------------------------- creating and checking

    @contextmanager
    def creating(self) -> Iterator[Connection]:
        """Create the tables, together with everything that is written within this context, or nothing."""
        with self.writing() as connection:
            if self.sa.inspect(connection).get_table_names():
                raise DataError(f"{self.place.address}: it is not empty. Choose another place.")
            self.schema.metadata.create_all(connection)
            connection.execute(self.tables["about"].insert().values(name="kind", value="partly ledger"))
            stamp(self, connection, self.schema)
            if self.place.file is not None:
                connection.exec_driver_sql(f"PRAGMA application_id = {int.from_bytes(MARK)}")
            yield connection

    def _refuse_active_schema(self, connection: Connection) -> None:
        """Refuse a database with triggers or views, which would act when we write to it."""
        if self.place.file is not None:
            query = "SELECT type, name, sql FROM sqlite_master"
            schema = [(kind, name, str(sql).upper()) for kind, name, sql in connection.exec_driver_sql(query)]
            active = [f"the {kind} {name!r}" for kind, name, _ in schema if kind not in ("table", "index")]
            active += [
                f"the table {name!r}" for _, name, sql in schema if any(clause in sql for clause in ACTIVE_CLAUSES)
            ]
        else:
            query = "SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal"
            query += " AND relnamespace = current_schema()::regnamespace"
            active = [f"the trigger {name!r}" for (name,) in connection.exec_driver_sql(query)]
            active += [f"the view {name!r}" for name in self.sa.inspect(connection).get_view_names()]
        if active:
            raise DataError(
                f"{self.place.address}: {', '.join(active[:5])} would run code on writes, and partly makes no "
                "triggers and no views. Nothing was changed. Ask its owner for an export: "
                "partly ledger export --statements."
            )

    def _check(self) -> None:
        """Refuse a database without a ledger, or with one of a newer version."""
        refusal = f"{self.place.address}: is a database without a ledger"
        with self.reading() as connection:
            self._refuse_active_schema(connection)
            existing = set(self.sa.inspect(connection).get_table_names())
            if not existing:
                raise LedgerNotFound(f"{self.place.address}: is empty. Create a ledger: partly ledger init.")
            if self.place.file is not None:
                mark = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
                if mark != int.from_bytes(MARK):
                    raise DataError(f"{refusal} (its application id is {mark}). Create one: partly ledger init.")
            if "about" not in existing:
                raise DataError(f"{refusal} (it has no table 'about'). Create one: partly ledger init.")
            about = self.tables["about"]
            values = dict(map(tuple, connection.execute(self.sa.select(about.c.name, about.c.value))))
        if values.get("kind") != "partly ledger":
            raise DataError(f"{refusal} (its table 'about' has no entry for it). Create one: partly ledger init.")
        if "format" not in values:
            raise DataError(f"{self.place.address}: damaged, its table 'about' names no format. Restore a copy.")
        migrate(self, self.schema)
        with self.reading() as connection:
            lost = sorted(set(self.tables) - set(self.sa.inspect(connection).get_table_names()))
        if lost:
            raise DataError(f"{self.place.address}: damaged, tables are missing: {', '.join(lost)}. Restore a copy.")


class BoundStore(Store):
    """A store within a transaction that the caller begins and ends."""

    def __init__(self, store: Store, connection: Connection) -> None:
        vars(self).update(vars(store))
        self._connection = connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        yield self._connection

    reading = writing


def digest_of(batch: int, part: int, blobs: Sequence[bytes]) -> bytes:
    """Return the checksum of a row of statements; SQLite does not notice a flipped byte."""
    sha = hashlib.sha256(f"{batch}.{part}:{','.join(str(len(blob)) for blob in blobs)}:".encode())
    for blob in blobs:
        sha.update(blob)
    return sha.digest()


def now() -> int:
    return time.time_ns() // 1000


def changes_text(changes: Sequence[Any]) -> str:
    return json.dumps([change.plain() for change in changes], ensure_ascii=False) if changes else ""


def _file_engine(sa: Any, place: Place, create: bool) -> Engine:
    """Return an engine for a file. Only SQLite opens the file: when a process closes any descriptor of a file, POSIX
    drops all locks that the process holds on it, even those of a transaction in another thread."""
    path = place.file
    assert path is not None
    try:
        refuse_link(path)
        if create:
            new = not os.path.lexists(path)
            with closing(sqlite3.connect(sqlite_uri(path, "rwc"), uri=True)):
                pass  # creates an empty file
            if new:
                os.chmod(path, 0o600)  # SQLite gives its journals the same mode
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError("it is not a regular file")
    except (OSError, ValueError, sqlite3.Error) as error:
        message = f"{path}: cannot be opened ({getattr(error, 'strerror', None) or error})."
        if isinstance(error, FileNotFoundError) and not create:
            raise LedgerNotFound(f"{message} Create a ledger: partly ledger init {path}") from None
        raise DataError(message) from None
    name = sqlite_uri(path, "rw")

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            name, uri=True, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in ("journal_mode = DELETE", "synchronous = EXTRA", "foreign_keys = ON", "trusted_schema = OFF"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    engine: Engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.NullPool, hide_parameters=True)

    @sa.event.listens_for(engine, "begin")  # type: ignore[untyped-decorator]
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("partly_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _server_engine(sa: Any, place: Place) -> Engine:
    try:
        url = sa.engine.make_url(f"postgresql+psycopg://{place.server}")
        engine: Engine = sa.create_engine(
            url, poolclass=sa.pool.NullPool, hide_parameters=True, isolation_level="REPEATABLE READ"
        )
    except ImportError as error:
        raise DataError(MISSING_LIBRARY) from error
    except (sa.exc.ArgumentError, ValueError):
        raise DataError(f"{place.address}: is not the URL of a server: postgresql://user@host/database.") from None

    @sa.event.listens_for(engine, "begin")  # type: ignore[untyped-decorator]
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("partly_writes"):
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (int.from_bytes(MARK),))

    return engine


def _describe_error(message: str) -> str:
    """Return an error of the database with what to do about it."""
    if "locked" in message:
        return f"other writers held the ledger for {LOCK_SECONDS:.0f} s ({message}). Nothing was changed; try again."
    if "not a database" in message:
        return "is not a SQLite database, or its header is damaged. Nothing was changed."
    if "malformed" in message or "corrupt" in message:
        return f"damaged ({message}). Restore a copy; `sqlite3 FILE .recover` may save what is left."
    if "readonly" in message or "read-only" in message or "unable to open" in message:
        return f"cannot be written ({message}). Nothing was changed."
    if "full" in message or "disk I/O" in message:
        return f"cannot be written ({message}). What was acknowledged before is intact."
    return f"the database refused ({message})."
