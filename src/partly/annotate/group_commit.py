"""Group commit: threads that write at the same time share one transaction, and so one sync to disk.

Threads write one after the other, each in its own savepoint, so an error rolls back only its own changes. The
transaction commits when no other thread waits, or after `MAX_MEMBERS` writers. Every writer returns only after that
commit, so whatever is acknowledged is on disk. Threads that arrive during a commit share the next transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from weakref import WeakKeyDictionary

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from partly.ledger import Ledger
from partly.ledger.store import BoundStore, Store

MAX_MEMBERS = 64  # writers per transaction, so that the first one does not wait forever


class _SharedTransaction:
    def __init__(self, store: Store) -> None:
        self._stack = ExitStack()
        self.connection = self._stack.enter_context(store.writing())
        self.finished = threading.Event()
        self.members = 0
        self.error: Exception | None = None

    def finish(self) -> None:
        """Commit; roll back everything if the database refused one writer, since it may have dropped all changes."""
        error = self.error
        try:
            self._stack.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
        except Exception as commit_error:
            self.error = commit_error
        self.finished.set()


class _WriterQueue:
    """The writers of one store, one at a time."""

    def __init__(self) -> None:
        self._turn, self._count_lock = threading.Lock(), threading.Lock()
        self._waiting = 0
        self._current: _SharedTransaction | None = None

    def acquire(self, store: Store) -> _SharedTransaction:
        """Wait for the turn; join the current transaction or begin one."""
        with self._count_lock:
            self._waiting += 1
        self._turn.acquire()
        with self._count_lock:
            self._waiting -= 1
        try:
            self._current = self._current or _SharedTransaction(store)
        except BaseException:
            self._turn.release()
            raise
        self._current.members += 1
        return self._current

    def release(self, shared: _SharedTransaction) -> None:
        """Let the next writer in; the last one commits."""
        if not self._waiting or shared.members >= MAX_MEMBERS or shared.error is not None:
            self._current = None
            shared.finish()
        self._turn.release()


_queues: WeakKeyDictionary[Store, _WriterQueue] = WeakKeyDictionary()
_queues_lock = threading.Lock()


@contextmanager
def transaction(store: Store) -> Iterator[Connection]:
    """Open a write transaction; afterwards all of it is on disk, or nothing."""
    with _queues_lock:
        queue = _queues.setdefault(store, _WriterQueue())
    shared = queue.acquire(store)
    try:
        with shared.connection.begin_nested():
            try:
                yield shared.connection
            except SQLAlchemyError as error:
                shared.error = error  # keep it: the savepoint of SQLite may raise another error after this one
                raise
    except SQLAlchemyError as error:
        shared.error = shared.error or error
    except BaseException:
        store.forget()  # later writers may have cached what is rolled back now
        raise
    finally:
        queue.release(shared)
    shared.finished.wait()
    if shared.error is not None:
        raise shared.error


@contextmanager
def joint_transaction(ledger: Ledger) -> Iterator[tuple[Ledger, Connection]]:
    """Open one transaction for the ledger and for the tables of the annotation server."""
    with transaction(ledger.store) as connection:
        yield Ledger(BoundStore(ledger.store, connection)), connection
