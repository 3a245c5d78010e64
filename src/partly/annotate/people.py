"""Who may come in: accounts by invitation, passwords, sessions. Of tokens digests are kept, of passwords scrypt."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from partly.annotate import records
from partly.errors import PartlyError
from partly.labels.names import fold
from partly.ledger.store import Store

Role = Literal["annotator", "admin"]
ROLES: tuple[Role, ...] = ("annotator", "admin")
SESSION = 14 * 86400.0  # seconds that a session lasts
INVITATION = 7 * 86400.0  # and an invitation, until somebody takes it
N, R, P = 1 << 15, 8, 3  # of scrypt: 32 MB and about a tenth of a second, one of OWASP's equal choices
AT_ONCE = threading.BoundedSemaphore(2)  # passwords looked at: many at once would take the memory
LEAST, MOST = 10, 200  # letters of a password
WINDOW = 900.0  # seconds for which tries count
TRIES_BY_NAME, TRIES_BY_ADDRESS = 10, 50
MOST_COUNTED = 10_000  # names and addresses that are remembered


class Refused(PartlyError):
    """Somebody may not come in, or not do this. status: of HTTP."""

    def __init__(self, message: str, status: int = 403) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Person:
    id: int
    name: str
    role: Role

    @property
    def admin(self) -> bool:
        return self.role == "admin"


@dataclass
class Tries:
    """Tries to log in, by name and by address. In memory: who guesses cannot start the program anew, and who can need
    not guess."""

    now: Callable[[], float] = time.time
    _times: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, key: str, most: int) -> None:
        """One try more. Counted before it is looked at, so that many at once are no way around."""
        with self._lock:
            times = self._times.setdefault(key, deque())
            self._times.move_to_end(key)
            while len(self._times) > MOST_COUNTED:
                self._times.popitem(last=False)
            while times and times[0] < self.now() - WINDOW:
                times.popleft()
            if len(times) >= most:
                raise Refused("Too many tries. Wait a quarter of an hour.", 429)
            times.append(self.now())

    def forget(self, key: str) -> None:
        with self._lock:
            self._times.pop(key, None)


@dataclass
class People:
    """Accounts and sessions in a database."""

    store: Store
    now: Callable[[], float] = time.time
    tries: Tries = field(default_factory=Tries)

    # ---------------------------------------------------------------- coming in

    def local(self, name: str) -> int:
        """Who works alone on this machine: an admin without a password, who comes in by the address of the start."""
        with records.writing(self.store) as connection:
            known = connection.scalar(select(records.people.c.id).where(records.people.c.folded == fold(name)))
            return int(known) if known is not None else _added(connection, name, None, "admin", self.now())

    def invite(self, role: Role, person: int | None = None) -> str:
        """A token that lets somebody new in once, in this role, or this person again."""
        if role not in ROLES:
            raise Refused(f"There is no role {role!r}; there is: {', '.join(ROLES)}.", 422)
        token = secrets.token_urlsafe(32)
        with records.writing(self.store) as connection:
            row = {"digest": digest(token), "role": role, "person": person, "expires": self.now() + INVITATION}
            connection.execute(insert(records.invitations).values(row))
        return token

    def start(self, token: str) -> str:
        """A session for the person that a token of the start names."""
        with records.writing(self.store) as connection:
            _, person = self._spent(connection, token)
            if person is None:
                raise Refused("This is an invitation. Open it where people join.")
            return self._session(connection, person)

    def join(self, token: str, name: str, password: str) -> str:
        """An account for somebody new, and its session. An invitation is spent only where the account is made."""
        name = checked_name(name)
        _check_password(password)
        secret = hashed(password)
        with records.writing(self.store) as connection:
            role, person = self._spent(connection, token)
            if person is not None:
                raise Refused("This address is not an invitation.")
            try:
                with connection.begin_nested():
                    person = _added(connection, name, secret, role, self.now())
            except IntegrityError:
                raise Refused(f"The name {name!r}, or one that looks like it, is taken.", 409) from None
            return self._session(connection, person)

    def log_in(self, name: str, password: str, address: str) -> str:
        """A session. It takes as long and says the same whether there is no such name or another password."""
        by_name = f"name {fold(name)[:128]}"
        self.tries.count(f"address {address}", TRIES_BY_ADDRESS)
        self.tries.count(by_name, TRIES_BY_NAME)
        table = records.people
        with self.store.reading() as connection:
            found = connection.execute(select(table.c.id, table.c.secret).where(table.c.folded == fold(name))).first()
        secret = found.secret if found is not None and found.secret else NOBODY
        right = len(password) <= MOST and matches(password, secret)
        if found is None or not found.secret or not right:
            raise Refused("The name or the password is wrong.", 401)
        self.tries.forget(by_name)
        with records.writing(self.store) as connection:
            return self._session(connection, int(found.id))

    def log_out(self, token: str) -> None:
        with records.writing(self.store) as connection:
            connection.execute(records.sessions.delete().where(records.sessions.c.digest == digest(token)))

    # ---------------------------------------------------------------- being in

    def person(self, token: str) -> Person | None:
        """Whose session it is, where it is one and has not ended."""
        sessions, table = records.sessions, records.people
        asked = select(table.c.id, table.c.name, table.c.role).join(sessions, sessions.c.person == table.c.id)
        asked = asked.where(sessions.c.digest == digest(token), sessions.c.expires > self.now())
        with self.store.reading() as connection:
            found = connection.execute(asked).first()
        return None if found is None else Person(found.id, found.name, found.role)

    def everybody(self) -> list[Person]:
        table = records.people
        with self.store.reading() as connection:
            found = connection.execute(select(table.c.id, table.c.name, table.c.role).order_by(table.c.id))
            return [Person(row.id, row.name, row.role) for row in found]

    # ---------------------------------------------------------------- inside

    def _spent(self, connection: Connection, token: str) -> tuple[Role, int | None]:
        """What a token stands for, which it then does no more. In one statement: of two who come at once, one does."""
        table = records.invitations
        good = (table.c.digest == digest(token), table.c.used.is_(None), table.c.expires > self.now())
        found = connection.execute(select(table.c.role, table.c.person).where(*good)).first()
        if found is None or connection.execute(update(table).where(*good).values(used=self.now())).rowcount != 1:
            raise Refused("This address was used already, or is too old. Ask for another one.")
        return found.role, found.person

    def _session(self, connection: Connection, person: int) -> str:
        token, table = secrets.token_urlsafe(32), records.sessions
        connection.execute(table.delete().where(table.c.expires < self.now()))
        row = {"digest": digest(token), "person": person, "expires": self.now() + SESSION}
        connection.execute(insert(table).values(row))
        return token


def _added(connection: Connection, name: str, secret: str | None, role: Role, now: float) -> int:
    row = {"name": name, "folded": fold(name), "secret": secret, "role": role, "made": now}
    made = connection.execute(insert(records.people).values(row)).inserted_primary_key
    assert made is not None
    return int(made[0])


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def page_token(session: str) -> str:
    """What a page of ours sends along with everything that changes something: no other page knows it. A function of
    the session, so that it outlives a restart."""
    return hmac.new(session.encode(), b"partly page", "sha256").hexdigest()


def checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not 1 <= len(name) <= 64 or not name.isprintable():
        raise Refused("A name has 1 to 64 letters, and none that cannot be seen.", 422)
    return name


def _check_password(password: str) -> None:
    if not LEAST <= len(password) <= MOST:
        raise Refused(f"A password has {LEAST} to {MOST} letters; a sentence is easy to keep.", 422)


def hashed(password: str) -> str:
    salt = secrets.token_bytes(16)
    return f"scrypt${N}${R}${P}${salt.hex()}${_scrypt(password, salt, N, R, P).hex()}"


def matches(password: str, secret: str) -> bool:
    _, n, r, p, salt, key = secret.split("$")
    found = _scrypt(password, bytes.fromhex(salt), int(n), int(r), int(p))
    return hmac.compare_digest(found, bytes.fromhex(key))


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    with AT_ONCE:
        return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=32)


NOBODY = f"scrypt${N}${R}${P}${'00' * 16}${'00' * 32}"  # no password is this one
