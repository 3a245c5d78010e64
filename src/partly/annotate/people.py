"""Who may come in: accounts by invitation, passwords, sessions. Of tokens digests are kept, of passwords scrypt."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from partly.annotate import commits, records
from partly.annotate.passwords import (
    MOST,
    NOBODY,
    TRIES_BY_ADDRESS,
    TRIES_BY_NAME,
    Refused,
    Tries,
    check_password,
    hashed,
    matches,
)
from partly.labels.names import fold
from partly.ledger.store import Store

Role = Literal["annotator", "admin"]
ROLES: tuple[Role, ...] = ("annotator", "admin")
SESSION = 14 * 86400.0  # seconds that a session lasts
INVITATION = 7 * 86400.0  # and an invitation, until somebody takes it
KEPT = 2.0  # seconds for which a session is taken for good without a look; what ends one here ends it at once


@dataclass(frozen=True)
class Person:
    id: int
    name: str
    role: Role
    blocked: bool = False

    @property
    def admin(self) -> bool:
        return self.role == "admin"


@dataclass
class People:
    """Accounts and sessions in a database."""

    store: Store
    now: Callable[[], float] = time.time
    tries: Tries = field(default_factory=Tries)
    _seen: dict[str, tuple[float, Person]] = field(default_factory=dict, repr=False)  # digest -> until when, who

    # ---------------------------------------------------------------- coming in

    def local(self, name: str) -> int:
        """Who works alone on this machine: an admin without a password, who comes in by the address of the start."""
        with commits.writing(self.store) as connection:
            known = connection.scalar(select(records.people.c.id).where(records.people.c.folded == fold(name)))
            return int(known) if known is not None else _added(connection, name, None, "admin", self.now())

    def invite(self, role: Role, person: int | None = None) -> str:
        """A token that lets somebody new in once, in this role, or this person again."""
        if role not in ROLES:
            raise Refused(f"There is no role {role!r}; there is: {', '.join(ROLES)}.", 422)
        token = secrets.token_urlsafe(32)
        with commits.writing(self.store) as connection:
            row = {"digest": digest(token), "role": role, "person": person, "expires": self.now() + INVITATION}
            connection.execute(insert(records.invitations).values(row))
        return token

    def start(self, token: str) -> str:
        """A session for the person that a token of the start names."""
        with commits.writing(self.store) as connection:
            _, person = self._spent(connection, token)
            if person is None:
                raise Refused("This is an invitation. Open it where people join.")
            table = records.people
            if connection.scalar(select(table.c.secret).where(table.c.id == person)):
                raise Refused("This address is for another password, and no way in without one.")
            return self._session(connection, person)

    def join(self, token: str, name: str, password: str) -> str:
        """An account for somebody new, and its session. An invitation is spent only where the account is made."""
        name = checked_name(name)
        check_password(password)
        secret = hashed(password)
        with commits.writing(self.store) as connection:
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
        self.tries.count(f"address {address}", TRIES_BY_ADDRESS)
        person = self._recognised(name, password)
        with commits.writing(self.store) as connection:
            return self._session(connection, person)

    def _recognised(self, name: str, password: str) -> int:
        """Whose name and password these are."""
        by_name = f"name {fold(name)[:128]}"
        self.tries.count(by_name, TRIES_BY_NAME)
        table = records.people
        with self.store.reading() as connection:
            found = connection.execute(select(table.c.id, table.c.secret).where(table.c.folded == fold(name))).first()
        secret = found.secret if found is not None and found.secret else NOBODY
        right = len(password) <= MOST and matches(password, secret)
        if found is None or not found.secret or not right:
            raise Refused("The name or the password is wrong.", 401)
        self.tries.forget(by_name)
        return int(found.id)

    def log_out(self, token: str) -> None:
        with commits.writing(self.store) as connection:
            connection.execute(records.sessions.delete().where(records.sessions.c.digest == digest(token)))
        self._ended()

    # ---------------------------------------------------------------- passwords, and who is kept out

    def change_password(self, person: Person, old: str, new: str) -> str:
        """Of one's own. Every session of the person ends; the one that is returned is new."""
        check_password(new)
        try:
            self._recognised(person.name, old)
        except Refused as refused:  # not 401: who asks is in
            raise Refused(str(refused), 429 if refused.status == 429 else 403) from None
        secret = hashed(new)
        with commits.writing(self.store) as connection:
            made = self._renewed(connection, person.id, secret)
        self._ended()
        return made

    def renewal(self, person: int) -> str:
        """A token with which this person chooses another password, once."""
        found = next((one for one in self.everybody() if one.id == person), None)
        if found is None:
            raise Refused("There is no such person.", 404)
        return self.invite(found.role, person)

    def renew(self, token: str, password: str) -> str:
        """Another password for the person that a token names; every session of that person ends but the new one."""
        check_password(password)
        secret = hashed(password)
        with commits.writing(self.store) as connection:
            _, person = self._spent(connection, token)
            if person is None:
                raise Refused("This is an invitation. Open it where people join.")
            made = self._renewed(connection, person, secret)
        self._ended()
        return made

    def _renewed(self, connection: Connection, person: int, secret: str) -> str:
        sessions = records.sessions
        connection.execute(update(records.people).where(records.people.c.id == person).values(secret=secret))
        connection.execute(sessions.delete().where(sessions.c.person == person))
        return self._session(connection, person)

    def block(self, person: int, by: Person) -> None:
        """Keep somebody out: every session ends, and so does what was held. What was said stays."""
        if person == by.id:
            raise Refused("Nobody can block himself: another admin can.", 409)
        questions, sessions = records.questions, records.sessions
        with commits.writing(self.store) as connection:
            if connection.scalar(select(records.people.c.id).where(records.people.c.id == person)) is None:
                raise Refused("There is no such person.", 404)
            if not _is_blocked(connection, person):
                row = {"person": person, "since": self.now(), "by": by.name}
                connection.execute(insert(records.blocked).values(row))
            connection.execute(sessions.delete().where(sessions.c.person == person))
            held = (questions.c.person == person, questions.c.state == "open")
            connection.execute(update(questions).where(*held).values(person=None, until=None))
        self._ended()

    def unblock(self, person: int) -> None:
        with commits.writing(self.store) as connection:
            connection.execute(records.blocked.delete().where(records.blocked.c.person == person))

    # ---------------------------------------------------------------- being in

    def person(self, token: str) -> Person | None:
        """Whose session it is, where it is one and has not ended."""
        now, key = self.now(), digest(token)
        until, person = self._seen.get(key, (0.0, None))
        if person is not None and now < until:
            return person
        sessions, table = records.sessions, records.people
        asked = select(table.c.id, table.c.name, table.c.role, sessions.c.expires)
        asked = asked.join(sessions, sessions.c.person == table.c.id)
        asked = asked.where(sessions.c.digest == key, sessions.c.expires > now)
        with self.store.reading() as connection:
            found = connection.execute(asked).first()
        if found is None:
            return None
        person = Person(found.id, found.name, found.role)
        self._seen[key] = min(now + KEPT, found.expires), person
        return person

    def _ended(self) -> None:
        """Sessions, by whatever was written just now: all are looked up again."""
        self._seen.clear()

    def everybody(self) -> list[Person]:
        table, blocked = records.people, records.blocked
        asked = select(table.c.id, table.c.name, table.c.role, blocked.c.since)
        asked = asked.outerjoin(blocked, blocked.c.person == table.c.id).order_by(table.c.id)
        with self.store.reading() as connection:
            return [Person(row.id, row.name, row.role, row.since is not None) for row in connection.execute(asked)]

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
        if _is_blocked(connection, person):
            raise Refused("This account is blocked. Ask somebody who looks after these pages.")
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


def _is_blocked(connection: Connection, person: int) -> bool:
    table = records.blocked
    return connection.scalar(select(table.c.person).where(table.c.person == person)) is not None


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
