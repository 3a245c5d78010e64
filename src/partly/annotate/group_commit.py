"""One commit for all who wait: what forces a write to the disk takes as long for twenty answers as for one.

Threads of one process write one after the other. As long as somebody waits for his turn they write into the same
transaction, each into a savepoint of his own, so that who is refused takes nobody else back; the last one commits. All
of them go on only then: what was acknowledged is on the disk. Whoever comes while a commit is under way is of the next.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from weakref import WeakKeyDictionary

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from partly.ledger.store import Store

MOST = 64  # of one transaction, so that the first ones do not wait for ever


class _Group:
    """A transaction that several share."""

    def __init__(self, store: Store) -> None:
        self._stack = ExitStack()
        self.connection = self._stack.enter_context(store.writing())
        self.over = threading.Event()
        self.members = 0
        self.fault: Exception | None = None

    def end(self) -> None:
        """Commit; or, where the database has refused one of them, nothing of anybody: it may have dropped it all."""
        fault = self.fault
        try:
            self._stack.__exit__(type(fault) if fault else None, fault, fault.__traceback__ if fault else None)
        except Exception as told:
            self.fault = told
        self.over.set()


class _Turns:
    """Who writes to a store."""

    def __init__(self) -> None:
        self.turn, self._counting = threading.Lock(), threading.Lock()
        self.waiting = 0
        self.group: _Group | None = None

    def take(self, store: Store) -> _Group:
        """One's turn, and the transaction that is under way, or a new one."""
        with self._counting:
            self.waiting += 1
        self.turn.acquire()
        with self._counting:
            self.waiting -= 1
        try:
            self.group = self.group or _Group(store)
        except BaseException:
            self.turn.release()
            raise
        self.group.members += 1
        return self.group

    def give(self, group: _Group) -> None:
        """To the next; who is the last one commits."""
        if not self.waiting or group.members >= MOST or group.fault is not None:
            self.group = None
            group.end()
        self.turn.release()


_turns: WeakKeyDictionary[Store, _Turns] = WeakKeyDictionary()
_making = threading.Lock()


@contextmanager
def writing(store: Store) -> Iterator[Connection]:
    """A transaction that writes: all of it is on the disk afterwards, or nothing of it."""
    with _making:
        turns = _turns.setdefault(store, _Turns())
    group = turns.take(store)
    try:
        with group.connection.begin_nested():
            try:
                yield group.connection
            except SQLAlchemyError as fault:
                group.fault = fault  # what SQLite says of its savepoint after that is no reason
                raise
    except SQLAlchemyError as fault:
        group.fault = group.fault or fault
    except BaseException:
        store.forget()  # who follows may have seen what this one has written in vain
        raise
    finally:
        turns.give(group)
    group.over.wait()
    if group.fault is not None:
        raise group.fault
