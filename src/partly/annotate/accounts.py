"""Who may come in: accounts by invitation, passwords, sessions. Of tokens digests are kept, of passwords scrypt."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from partly.annotate import group_commit, links, tables
from partly.annotate.limits import Attempts, network_of
from partly.annotate.links import Link, Role, digest
from partly.annotate.passwords import MOST, NOBODY, Refused, check_password, hashed, matches
from partly.labels.names import fold
from partly.ledger.store import Store

ROLES: tuple[Role, ...] = ("annotator", "admin")
SESSION = 14 * 86400.0  # seconds that a session lasts
# Failed attempts within a quarter of an hour. Guesses from elsewhere do not keep an account's owner out: the limit of
# the account alone does not hold for addresses from which somebody has signed in to it.
ATTEMPTS_BY_ADDRESS, ATTEMPTS_BY_ADDRESS_AND_ACCOUNT, ATTEMPTS_BY_ACCOUNT = 50, 10, 100
MAX_KNOWN = 10_000  # pairs of address and account that are remembered
NO_INVITATION = "This is an invitation. Open it where people join."


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
    attempts: Attempts = field(default_factory=Attempts)
    _known: dict[tuple[str, str], None] = field(default_factory=dict, repr=False)  # address and account, oldest first

    # ---------------------------------------------------------------- coming in

    def local(self, name: str) -> int:
        """Who works alone on this machine: an admin without a password, who comes in by the address of the start."""
        with group_commit.writing(self.store) as connection:
            known = connection.scalar(select(tables.people.c.id).where(tables.people.c.folded == fold(name)))
            return int(known) if known is not None else _added(connection, name, None, "admin", self.now())

    def invite(self, role: Role, maker: Person | None = None) -> str:
        """Return a token with which somebody new joins once, in this role."""
        if role not in ROLES:
            raise Refused(f"There is no role {role!r}; there is: {', '.join(ROLES)}.", 422)
        with group_commit.writing(self.store) as connection:
            by = None if maker is None else maker.id
            return links.make(connection, role, self.now(), links.INVITATION_SECONDS, maker=by)

    def starting(self, person: int) -> str:
        """Return a token with which the person who has started the program comes in once, without a password."""
        with group_commit.writing(self.store) as connection:
            return links.make(connection, "admin", self.now(), links.START_SECONDS, person)

    def start(self, token: str, address: str = "") -> str:
        """Return a session for the person that a token of the start names."""
        with self._trying(token, address), group_commit.writing(self.store) as connection:
            person = links.spend(connection, token, self.now()).person
            if person is None:
                raise Refused(NO_INVITATION)
            table = tables.people
            if connection.scalar(select(table.c.secret).where(table.c.id == person)):
                raise Refused("This address is for another password, and no way in without one.")
            return self._session(connection, person)

    def join(self, token: str, name: str, password: str, address: str = "") -> str:
        """Make an account; return its session. An invitation is spent only where the account is made."""
        name = checked_name(name)
        check_password(password)
        with self._trying(token, address):
            secret = hashed(password)
            with group_commit.writing(self.store) as connection:
                link = links.spend(connection, token, self.now())
                if link.person is not None:
                    raise Refused("This address is not an invitation.")
                try:
                    with connection.begin_nested():
                        person = _added(connection, name, secret, link.role, self.now())
                except IntegrityError:
                    raise Refused(f"The name {name!r}, or one that looks like it, is taken.", 409) from None
                return self._session(connection, person)

    @contextmanager
    def _trying(self, token: str, address: str) -> Iterator[None]:
        """A token is looked at before a password is hashed, which is expensive, and bad ones are counted."""
        with self.attempts.attempt({f"link from {network_of(address)}": ATTEMPTS_BY_ADDRESS}):
            with self.store.reading() as connection:
                links.find(connection, token, self.now())
            yield

    def log_in(self, name: str, password: str, address: str) -> str:
        """Return a session. It takes as long and says the same whether there is no such name or another password."""
        person = self._recognized(name, password, address)
        with group_commit.writing(self.store) as connection:
            return self._session(connection, person)

    def _recognized(self, name: str, password: str, address: str) -> int:
        """Return whose name and password these are."""
        account, network = fold(name)[:128], network_of(address)
        limits = {f"from {network}": ATTEMPTS_BY_ADDRESS}
        both = f"account {account!r} from {network}"
        limits[both] = ATTEMPTS_BY_ADDRESS_AND_ACCOUNT
        if (network, account) not in self._known:
            limits[f"account {account!r}"] = ATTEMPTS_BY_ACCOUNT
        table = tables.people
        with self.attempts.attempt(limits):
            with self.store.reading() as connection:
                asked = select(table.c.id, table.c.secret).where(table.c.folded == fold(name))
                found = connection.execute(asked).first()
            secret = found.secret if found is not None and found.secret else NOBODY
            right = len(password) <= MOST and matches(password, secret)
            if found is None or not found.secret or not right:
                raise Refused("The name or the password is wrong.", 401)
        self.attempts.forget(both)
        self._known[network, account] = None
        while len(self._known) > MAX_KNOWN:
            self._known.pop(next(iter(self._known)))
        return int(found.id)

    def log_out(self, token: str) -> None:
        with group_commit.writing(self.store) as connection:
            connection.execute(tables.sessions.delete().where(tables.sessions.c.digest == digest(token)))

    # ---------------------------------------------------------------- passwords, and who is kept out

    def change_password(self, person: Person, old: str, new: str, address: str = "") -> str:
        """Change one's own password. Every session of the person ends; the one that is returned is new."""
        check_password(new)
        try:
            self._recognized(person.name, old, address)
        except Refused as refused:  # not 401: who asks is in
            raise Refused(str(refused), 429 if refused.status == 429 else 403) from None
        secret = hashed(new)
        with group_commit.writing(self.store) as connection:
            return self._renewed(connection, person.id, secret)

    def renewal(self, person: int, maker: Person | None = None) -> str:
        """Return a token with which this person chooses another password, once. Admins do that for annotators; for
        admins only who has started the program does, who has no need of an account (maker: None)."""
        found = next((one for one in self.everybody() if one.id == person), None)
        if found is None:
            raise Refused("There is no such person.", 404)
        if found.admin and maker is not None:
            raise Refused(
                "No admin gives an admin a new password. Whoever runs the server does: partly annotate --new-password."
            )
        with group_commit.writing(self.store) as connection:
            by = None if maker is None else maker.id
            return links.make(connection, found.role, self.now(), links.RENEWAL_SECONDS, person, by)

    def renew(self, token: str, password: str, address: str = "") -> str:
        """Set another password for the person that a token names; return a session, the only one that is left."""
        check_password(password)
        with self._trying(token, address):
            secret = hashed(password)
            with group_commit.writing(self.store) as connection:
                person = links.spend(connection, token, self.now()).person
                if person is None:
                    raise Refused(NO_INVITATION)
                return self._renewed(connection, person, secret)

    def links(self) -> list[Link]:
        """Every address that still lets somebody in."""
        with self.store.reading() as connection:
            return links.listed(connection, self.now())

    def revoke(self, link: str) -> None:
        with group_commit.writing(self.store) as connection:
            links.revoke(connection, link, self.now())

    def _renewed(self, connection: Connection, person: int, secret: str) -> str:
        sessions = tables.sessions
        connection.execute(update(tables.people).where(tables.people.c.id == person).values(secret=secret))
        connection.execute(sessions.delete().where(sessions.c.person == person))
        return self._session(connection, person)

    def block(self, person: int, by: Person) -> None:
        """Keep somebody out, on every server that uses this database: sessions and leases end, and so does every link
        that this person has made or that is for this person. What was said stays."""
        if person == by.id:
            raise Refused("You cannot block your own account. Ask another admin.", 409)
        questions, sessions = tables.questions, tables.sessions
        with group_commit.writing(self.store) as connection:
            if connection.scalar(select(tables.people.c.id).where(tables.people.c.id == person)) is None:
                raise Refused("There is no such person.", 404)
            if not _is_blocked(connection, person):
                row = {"person": person, "since": self.now(), "by": by.name}
                connection.execute(insert(tables.blocked).values(row))
            links.void_of(connection, person, self.now())
            connection.execute(sessions.delete().where(sessions.c.person == person))
            held = (questions.c.person == person, questions.c.state == "open")
            connection.execute(update(questions).where(*held).values(person=None, until=None))

    def unblock(self, person: int) -> None:
        with group_commit.writing(self.store) as connection:
            connection.execute(tables.blocked.delete().where(tables.blocked.c.person == person))

    # ---------------------------------------------------------------- being in

    def person(self, token: str) -> Person | None:
        """Whose session it is, where it is one and has not ended. The database is asked every time: another server may
        have ended it."""
        sessions, table, blocked = tables.sessions, tables.people, tables.blocked
        asked = select(table.c.id, table.c.name, table.c.role).join(sessions, sessions.c.person == table.c.id)
        asked = asked.outerjoin(blocked, blocked.c.person == table.c.id).where(blocked.c.person.is_(None))
        asked = asked.where(sessions.c.digest == digest(token), sessions.c.expires > self.now())
        with self.store.reading() as connection:
            found = connection.execute(asked).first()
        return None if found is None else Person(*found)

    def has_admin(self) -> bool:
        """Tell whether an admin can sign in."""
        table, blocked = tables.people, tables.blocked
        asked = select(table.c.id).outerjoin(blocked, blocked.c.person == table.c.id).where(blocked.c.person.is_(None))
        with self.store.reading() as connection:
            admin = asked.where(table.c.role == "admin", table.c.secret.is_not(None))
            return connection.execute(admin).first() is not None

    def named(self, name: str) -> Person:
        found = next((one for one in self.everybody() if fold(one.name) == fold(name)), None)
        if found is None:
            raise Refused(f"There is no account {name!r}.", 404)
        return found

    def everybody(self) -> list[Person]:
        table, blocked = tables.people, tables.blocked
        asked = select(table.c.id, table.c.name, table.c.role, blocked.c.since)
        asked = asked.outerjoin(blocked, blocked.c.person == table.c.id).order_by(table.c.id)
        with self.store.reading() as connection:
            return [Person(row.id, row.name, row.role, row.since is not None) for row in connection.execute(asked)]

    def _session(self, connection: Connection, person: int) -> str:
        if _is_blocked(connection, person):
            raise Refused("This account is blocked. Ask somebody who looks after these pages.")
        token, table = secrets.token_urlsafe(32), tables.sessions
        connection.execute(table.delete().where(table.c.expires < self.now()))
        row = {"digest": digest(token), "person": person, "expires": self.now() + SESSION}
        connection.execute(insert(table).values(row))
        return token


def _added(connection: Connection, name: str, secret: str | None, role: Role, now: float) -> int:
    row = {"name": name, "folded": fold(name), "secret": secret, "role": role, "made": now}
    made = connection.execute(insert(tables.people).values(row)).inserted_primary_key
    assert made is not None
    return int(made[0])


def _is_blocked(connection: Connection, person: int) -> bool:
    table = tables.blocked
    return connection.scalar(select(table.c.person).where(table.c.person == person)) is not None


def page_token(session: str) -> str:
    """What a page of ours sends along with everything that changes something: no other page knows it. A function of
    the session, so that it outlives a restart."""
    return hmac.new(session.encode(), b"partly page", "sha256").hexdigest()


def checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not 1 <= len(name) <= 64 or not name.isprintable():
        raise Refused("A name has 1 to 64 letters, and none that cannot be seen.", 422)
    return name
