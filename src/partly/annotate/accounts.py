"""Accounts: invitations, passwords, sessions. Tokens are stored as digests, passwords as scrypt hashes."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import get_args

from sqlalchemy import Connection, Select, insert, select, update
from sqlalchemy.exc import IntegrityError

from partly.annotate import links, passwords, tables
from partly.annotate.errors import ApiError
from partly.annotate.group_commit import transaction
from partly.annotate.limits import AttemptLimiter, network_of
from partly.annotate.links import Link, Role, digest
from partly.labels.names import fold
from partly.ledger.store import Store

ROLES: tuple[Role, ...] = get_args(Role)
SESSION_SECONDS = 14 * 86400.0
# Failed attempts within `limits.WINDOW_SECONDS`. The limit of the account alone does not hold for addresses from which
# its owner has signed in, so that guesses from elsewhere do not lock the owner out.
ATTEMPTS_BY_ADDRESS, ATTEMPTS_BY_ADDRESS_AND_ACCOUNT, ATTEMPTS_BY_ACCOUNT = 50, 10, 100
MAX_KNOWN_ADDRESSES = 10_000  # pairs of address and account
NOT_A_RESET_LINK = "This is an invitation. Open it as a link to join."
NO_SUCH_PERSON = "There is no such person."


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
class Accounts:
    """Accounts and sessions in a database."""

    store: Store
    now: Callable[[], float] = time.time
    attempts: AttemptLimiter = field(default_factory=AttemptLimiter)
    _known_addresses: dict[tuple[str, str], None] = field(default_factory=dict, repr=False)  # oldest first

    # ---------------------------------------------------------------- links and signing in

    def local_admin(self, name: str) -> int:
        """Return the admin without a password who works alone on this machine; create the account if needed."""
        with transaction(self.store) as connection:
            known = connection.scalar(select(tables.people.c.id).where(tables.people.c.folded == fold(name)))
            return int(known) if known is not None else _insert_person(connection, name, None, "admin", self.now())

    def invite(self, role: Role, maker: Person | None = None) -> str:
        """Return a token with which one new person joins, once, in this role."""
        return self._create_link(role, links.INVITATION_SECONDS, maker=maker)

    def create_start_token(self, person: int) -> str:
        """Return a token that signs in the person who started the server, once, without a password."""
        return self._create_link("admin", links.START_LINK_SECONDS, person)

    def create_reset_token(self, person: int, maker: Person | None = None) -> str:
        """Return a token with which this person sets a new password, once.

        Admins reset annotators. Only the person who runs the server (maker None) resets admins.
        """
        target = next((account for account in self.list_people() if account.id == person), None)
        if target is None:
            raise ApiError(NO_SUCH_PERSON, 404)
        if target.admin and maker is not None:
            raise ApiError(
                "An admin cannot reset another admin's password. The person who runs the server can: "
                "partly annotate --new-password."
            )
        return self._create_link(target.role, links.PASSWORD_RESET_SECONDS, person, maker)

    def _create_link(self, role: Role, seconds: float, person: int | None = None, maker: Person | None = None) -> str:
        with transaction(self.store) as connection:
            maker_id = None if maker is None else maker.id
            return links.create_link(connection, role, self.now(), seconds, person, maker_id)

    def sign_in_by_link(self, token: str, address: str = "") -> str:
        """Return a session for the person that a start token names."""
        with self._count_attempt(token, address), transaction(self.store) as connection:
            person = links.use_link(connection, token, self.now()).person
            if person is None:
                raise ApiError(NOT_A_RESET_LINK)
            if connection.scalar(select(tables.people.c.secret).where(tables.people.c.id == person)):
                raise ApiError("This link resets a password. It does not sign you in.")
            return self._create_session(connection, person)

    def join(self, token: str, name: str, password: str, address: str = "") -> str:
        """Create an account and return its session. The invitation stays valid if the account is refused."""
        name = normalize_name(name)
        passwords.check_password(password)
        with self._count_attempt(token, address):
            secret = passwords.hash_password(password)
            with transaction(self.store) as connection:
                link = links.use_link(connection, token, self.now())
                if link.person is not None:
                    raise ApiError("This link is not an invitation.")
                try:
                    with connection.begin_nested():
                        person = _insert_person(connection, name, secret, link.role, self.now())
                except IntegrityError:
                    raise ApiError(f"The name {name!r}, or one that looks like it, is taken.", 409) from None
                return self._create_session(connection, person)

    @contextmanager
    def _count_attempt(self, token: str, address: str) -> Iterator[None]:
        """Check a token before the expensive hashing of a password, and count bad tokens."""
        with self.attempts.attempt({f"link from {network_of(address)}": ATTEMPTS_BY_ADDRESS}):
            with self.store.reading() as connection:
                links.find_link(connection, token, self.now())
            yield

    def sign_in(self, name: str, password: str, address: str) -> str:
        """Return a session. Unknown names and wrong passwords take as long and get the same answer."""
        person = self._authenticate(name, password, address)
        with transaction(self.store) as connection:
            return self._create_session(connection, person)

    def _authenticate(self, name: str, password: str, address: str) -> int:
        account, network = fold(name)[:128], network_of(address)
        pair = f"account {account!r} from {network}"
        limits = {f"from {network}": ATTEMPTS_BY_ADDRESS, pair: ATTEMPTS_BY_ADDRESS_AND_ACCOUNT}
        if (network, account) not in self._known_addresses:
            limits[f"account {account!r}"] = ATTEMPTS_BY_ACCOUNT
        table = tables.people
        with self.attempts.attempt(limits):
            with self.store.reading() as connection:
                query = select(table.c.id, table.c.secret).where(table.c.folded == fold(name))
                row = connection.execute(query).first()
            secret = row.secret if row is not None and row.secret else passwords.DUMMY_HASH
            fits = len(password) <= passwords.MAX_PASSWORD_LENGTH and passwords.verify_password(password, secret)
            if row is None or not row.secret or not fits:
                raise ApiError("The name or the password is wrong.", 401)
        self.attempts.forget(pair)
        self._known_addresses[network, account] = None
        while len(self._known_addresses) > MAX_KNOWN_ADDRESSES:
            self._known_addresses.pop(next(iter(self._known_addresses)))
        return int(row.id)

    def sign_out(self, token: str) -> None:
        with transaction(self.store) as connection:
            connection.execute(tables.sessions.delete().where(tables.sessions.c.digest == digest(token)))

    # ---------------------------------------------------------------- passwords, links, blocking

    def change_password(self, person: Person, old: str, new: str, address: str = "") -> str:
        """Change the person's own password; end all of their sessions and return a new one."""
        passwords.check_password(new)
        try:
            self._authenticate(person.name, old, address)
        except ApiError as error:  # not 401: the person is signed in
            raise ApiError(str(error), 429 if error.status == 429 else 403) from None
        secret = passwords.hash_password(new)
        with transaction(self.store) as connection:
            return self._replace_password(connection, person.id, secret)

    def reset_password(self, token: str, password: str, address: str = "") -> str:
        """Set a new password for the person that a token names; return the only session that is left."""
        passwords.check_password(password)
        with self._count_attempt(token, address):
            secret = passwords.hash_password(password)
            with transaction(self.store) as connection:
                person = links.use_link(connection, token, self.now()).person
                if person is None:
                    raise ApiError(NOT_A_RESET_LINK)
                return self._replace_password(connection, person, secret)

    def _replace_password(self, connection: Connection, person: int, secret: str) -> str:
        connection.execute(update(tables.people).where(tables.people.c.id == person).values(secret=secret))
        connection.execute(tables.sessions.delete().where(tables.sessions.c.person == person))
        return self._create_session(connection, person)

    def list_links(self) -> list[Link]:
        with self.store.reading() as connection:
            return links.list_links(connection, self.now())

    def revoke_link(self, link: str) -> None:
        with transaction(self.store) as connection:
            links.revoke_link(connection, link, self.now())

    def block(self, person: int, by: Person) -> None:
        """Block an account on every server of this database: its sessions, leases and links end, its answers stay."""
        if person == by.id:
            raise ApiError("You cannot block your own account. Ask another admin.", 409)
        questions, sessions = tables.questions, tables.sessions
        with transaction(self.store) as connection:
            _require_person(connection, person)
            if not _is_blocked(connection, person):
                row = {"person": person, "since": self.now(), "by": by.name}
                connection.execute(insert(tables.blocked).values(row))
            links.void_links_of(connection, person, self.now())
            connection.execute(sessions.delete().where(sessions.c.person == person))
            leased = (questions.c.person == person, questions.c.state == "open")
            connection.execute(update(questions).where(*leased).values(person=None, until=None))

    def unblock(self, person: int) -> None:
        with transaction(self.store) as connection:
            connection.execute(tables.blocked.delete().where(tables.blocked.c.person == person))

    # ---------------------------------------------------------------- sessions and people

    def find_session(self, token: str) -> Person | None:
        """Return the person of a valid session. Asks the database every time: another server may have ended it."""
        sessions = tables.sessions
        query = _active_people().join(sessions, sessions.c.person == tables.people.c.id)
        query = query.where(sessions.c.digest == digest(token), sessions.c.expires > self.now())
        with self.store.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else Person(row.id, row.name, row.role)

    def has_admin(self) -> bool:
        """Tell whether an admin can sign in."""
        admins = _active_people().where(tables.people.c.role == "admin", tables.people.c.secret.is_not(None))
        with self.store.reading() as connection:
            return connection.execute(admins).first() is not None

    def find_by_name(self, name: str) -> Person:
        person = next((person for person in self.list_people() if fold(person.name) == fold(name)), None)
        if person is None:
            raise ApiError(f"There is no account {name!r}.", 404)
        return person

    def list_people(self) -> list[Person]:
        table, blocked = tables.people, tables.blocked
        query = select(table.c.id, table.c.name, table.c.role, blocked.c.since)
        query = query.outerjoin(blocked, blocked.c.person == table.c.id).order_by(table.c.id)
        with self.store.reading() as connection:
            return [Person(row.id, row.name, row.role, row.since is not None) for row in connection.execute(query)]

    def _create_session(self, connection: Connection, person: int) -> str:
        if _is_blocked(connection, person):
            raise ApiError("This account is blocked. Ask an admin.")
        token, table = secrets.token_urlsafe(32), tables.sessions
        connection.execute(table.delete().where(table.c.expires < self.now()))
        row = {"digest": digest(token), "person": person, "expires": self.now() + SESSION_SECONDS}
        connection.execute(insert(table).values(row))
        return token

    # ---------------------------------------------------------------- assigned labels

    def read_assignments(self, labels: Sequence[str]) -> dict[int, list[str]]:
        """Return the labels assigned to each person, in the order of `labels`; people without any are left out."""
        table, place = tables.assignments, {label: place for place, label in enumerate(labels)}
        with self.store.reading() as connection:
            rows = connection.execute(select(table.c.person, table.c.label)).all()
        assigned: dict[int, list[str]] = {}
        for person, label in sorted(rows, key=lambda row: place.get(row.label, -1)):
            assigned.setdefault(person, []).append(label)
        return assigned

    def assign(self, person: int, labels: Sequence[str]) -> None:
        """Ask a person only about these labels, or about all if none is given; release leases on other labels."""
        table, questions = tables.assignments, tables.questions
        with transaction(self.store) as connection:
            _require_person(connection, person)
            connection.execute(table.delete().where(table.c.person == person))
            if labels:
                rows = [{"person": person, "label": label} for label in dict.fromkeys(labels)]
                connection.execute(insert(table), rows)
                leased = (questions.c.person == person, questions.c.state == "open", questions.c.label.not_in(labels))
                connection.execute(update(questions).where(*leased).values(person=None, until=None))


def csrf_token(session: str) -> str:
    """Return the token that our pages send with every change; derived from the session, so it survives a restart."""
    return hmac.new(session.encode(), b"partly page", "sha256").hexdigest()


def normalize_name(name: str) -> str:
    """Return a name with single spaces; refuse an empty, long or invisible one."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= 64 or not name.isprintable():
        raise ApiError("A name needs 1 to 64 visible characters.", 422)
    return name


def _active_people() -> Select[tuple[int, str, Role]]:
    table, blocked = tables.people, tables.blocked
    query = select(table.c.id, table.c.name, table.c.role)
    return query.outerjoin(blocked, blocked.c.person == table.c.id).where(blocked.c.person.is_(None))


def _insert_person(connection: Connection, name: str, secret: str | None, role: Role, now: float) -> int:
    row = {"name": name, "folded": fold(name), "secret": secret, "role": role, "made": now}
    key = connection.execute(insert(tables.people).values(row)).inserted_primary_key
    assert key is not None
    return int(key[0])


def _require_person(connection: Connection, person: int) -> None:
    if connection.scalar(select(tables.people.c.id).where(tables.people.c.id == person)) is None:
        raise ApiError(NO_SUCH_PERSON, 404)


def _is_blocked(connection: Connection, person: int) -> bool:
    table = tables.blocked
    return connection.scalar(select(table.c.person).where(table.c.person == person)) is not None
