"""Replies of endpoints, kept in SQLite by the SHA-256 of their request. A request that has a reply is never sent again.

A request is noted before it is sent. After a kill, those without a reply are known: they may have been answered, and
are sent again with the same idempotency key, so that an endpoint that honors it charges once.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from partly.errors import DataError
from partly.images.scan import cache_folder
from partly.ledger.location import refuse_link, sqlite_uri

FILE = "language-model.sqlite"
LOCK_SECONDS = 60.0
IDS_PER_QUERY = 500
MALFORMED = "is not the cache of replies, or it is damaged. Move it away; requests are then sent again"
SCHEMA = "CREATE TABLE IF NOT EXISTS replies (id TEXT PRIMARY KEY, sent REAL NOT NULL, batch INTEGER NOT NULL, "
SCHEMA += "answered REAL, status INTEGER, body TEXT) WITHOUT ROWID"


@dataclass(frozen=True)
class Kept:
    """A stored reply: HTTP status, body, and time of arrival (seconds since 1970)."""

    status: int
    body: str
    answered: float = 0.0


class Replies:
    """The cache of replies; one file serves several endpoints and processes.

    Parameters
    ----------
    path : Path, optional
        A SQLite file. Default: in the cache folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = cache_folder() / "teachers" / FILE if path is None else path
        self._lock = threading.Lock()
        with self._open() as connection:
            connection.execute(SCHEMA)

    def find(self, ids: Sequence[str]) -> dict[str, Kept]:
        """Return the stored replies by id; requests without one are missing."""
        found: dict[str, Kept] = {}
        with self._open() as connection:
            for start in range(0, len(ids), IDS_PER_QUERY):
                part = ids[start : start + IDS_PER_QUERY]
                marks = ",".join("?" * len(part))
                query = f"SELECT id, status, body, answered FROM replies WHERE status IS NOT NULL AND id IN ({marks})"
                found |= {key: Kept(status, body, at) for key, status, body, at in connection.execute(query, part)}
        return found

    def note_sent(self, ids: Iterable[str], batch: bool = False) -> None:
        """Note requests that are about to be sent, or written to a batch file."""
        now = time.time()
        statement = "INSERT INTO replies (id, sent, batch) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING"
        with self._open() as connection:
            connection.executemany(statement, [(key, now, int(batch)) for key in ids])

    def keep(self, key: str, status: int, body: str) -> None:
        """Store a reply. The first reply to a request is final."""
        statement = "INSERT INTO replies (id, sent, batch, answered, status, body) VALUES (?, ?, 0, ?, ?, ?) "
        statement += "ON CONFLICT (id) DO UPDATE SET answered = excluded.answered, status = excluded.status, "
        statement += "body = excluded.body WHERE status IS NULL"
        now = time.time()
        with self._open() as connection:
            connection.execute(statement, (key, now, now, status, body))

    def forget_sent(self, key: str) -> None:
        """Forget that a request was sent, since the endpoint refused it without an answer."""
        with self._open() as connection:
            connection.execute("DELETE FROM replies WHERE id = ? AND status IS NULL AND batch = 0", (key,))

    def forget(self, key: str) -> None:
        """Forget a request and its reply."""
        with self._open() as connection:
            connection.execute("DELETE FROM replies WHERE id = ?", (key,))

    def find_unanswered(self, ids: Sequence[str]) -> list[str]:
        """Return the ids of requests that were sent and have no reply."""
        found: list[str] = []
        with self._open() as connection:
            for start in range(0, len(ids), IDS_PER_QUERY):
                part = ids[start : start + IDS_PER_QUERY]
                marks = ",".join("?" * len(part))
                query = f"SELECT id FROM replies WHERE status IS NULL AND id IN ({marks})"
                found += [key for (key,) in connection.execute(query, part)]
        return found

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction. The errors of SQLite name the file and quote no values."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            refuse_link(self.path)
            with self._lock:
                if not self.path.exists():
                    os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))  # replies may quote items
                uri = sqlite_uri(self.path, "rw")
                with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS)) as connection, connection:
                    connection.execute("PRAGMA trusted_schema = OFF")
                    yield connection
        except sqlite3.DatabaseError as error:
            busy = isinstance(error, sqlite3.OperationalError)
            raise DataError(f"{self.path}: {error if busy else MALFORMED}.") from None
        except OSError as error:
            raise DataError(f"{self.path}: cannot be opened ({error.strerror or error}).") from None
