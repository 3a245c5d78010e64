"""One-time links: invitations, password resets, and the link that the server prints at its start.

The database stores the digest of each token, who created the link and for whom. A link ends when it is used, when it
expires, when an admin revokes it, and when the account that created it is blocked.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, insert, or_, select, update

from partly.annotate import tables
from partly.annotate.errors import ApiError

INVITATION_SECONDS = 48 * 3600.0
PASSWORD_RESET_SECONDS = 4 * 3600.0
START_LINK_SECONDS = 12 * 3600.0
INVALID_LINK = "This link was used already, has expired, or was revoked. Ask for a new one."

Role = Literal["annotator", "admin"]

table = tables.invitations


@dataclass(frozen=True)
class Link:
    """A link that can still be used.

    `person` is the account whose password it resets, or None for an invitation. `maker` is None if the server created
    the link at its start.
    """

    id: str  # the digest of the token, which is not enough to sign in
    role: str
    person: str | None
    maker: str | None
    expires: float


class LinkTarget(NamedTuple):
    """The account that a link signs in, or None for a new account with this role."""

    role: Role
    person: int | None


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def create_link(
    connection: Connection, role: str, now: float, seconds: float, person: int | None = None, maker: int | None = None
) -> str:
    """Return the token of a new link; refuse a maker who was blocked meanwhile."""
    blocked = tables.blocked
    if connection.scalar(select(blocked.c.person).where(blocked.c.person == maker)) is not None:
        raise ApiError("This account is blocked.")
    token = secrets.token_urlsafe(32)
    row = {"digest": digest(token), "role": role, "person": person, "expires": now + seconds}
    connection.execute(insert(table).values(row | {"maker": maker, "made": now}))
    return token


def find_link(connection: Connection, token: str, now: float) -> LinkTarget:
    """Return the target of a link; refuse one that has ended."""
    row = connection.execute(select(table.c.role, table.c.person).where(_is_valid(now), _has_token(token))).first()
    if row is None:
        raise ApiError(INVALID_LINK)
    return LinkTarget(*row)


def use_link(connection: Connection, token: str, now: float) -> LinkTarget:
    """Mark a link as used and return its target; of two concurrent requests one succeeds."""
    target = find_link(connection, token, now)
    if connection.execute(update(table).where(_is_valid(now), _has_token(token)).values(used=now)).rowcount != 1:
        raise ApiError(INVALID_LINK)
    return target


def list_links(connection: Connection, now: float) -> list[Link]:
    """Return every link that can still be used, the newest first."""
    people, makers = tables.people, tables.people.alias("makers")
    query = select(table.c.digest, table.c.role, people.c.name, makers.c.name.label("maker"), table.c.expires)
    query = query.outerjoin(people, people.c.id == table.c.person).outerjoin(makers, makers.c.id == table.c.maker)
    return [Link(*row) for row in connection.execute(query.where(_is_valid(now)).order_by(table.c.made.desc()))]


def revoke_link(connection: Connection, link: str, now: float) -> None:
    valid = and_(table.c.digest == link, _is_valid(now))
    if connection.execute(update(table).where(valid).values(voided=now)).rowcount != 1:
        raise ApiError("This link has ended already.", 404)


def void_links_of(connection: Connection, person: int, now: float) -> None:
    """Void every link that a person created or that signs this person in."""
    related = or_(table.c.maker == person, table.c.person == person)
    connection.execute(update(table).where(related, _is_valid(now)).values(voided=now))


def _has_token(token: str) -> ColumnElement[bool]:
    return table.c.digest == digest(token)


def _is_valid(now: float) -> ColumnElement[bool]:
    return and_(table.c.used.is_(None), table.c.voided.is_(None), table.c.expires > now)
