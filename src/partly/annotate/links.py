"""Addresses that let somebody in once: an invitation, a new password, the start of the program.

The database holds the digest of each, who made it, and for whom. It is void when it is used, when its hours are over,
when somebody revokes it, and when its maker is blocked.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, insert, or_, select, update

from partly.annotate import tables
from partly.annotate.passwords import Refused

INVITATION_SECONDS = 48 * 3600.0
RENEWAL_SECONDS = 4 * 3600.0
START_SECONDS = 12 * 3600.0
USED = "This address was used already, is too old, or was revoked. Ask for another one."

Role = Literal["annotator", "admin"]

table = tables.invitations


@dataclass(frozen=True)
class Link:
    """An address that still lets somebody in. person: who gets a new password by it, or nothing for an invitation;
    maker: nothing where the program made it at its start."""

    id: str  # the digest of its token, which lets nobody in
    role: str
    person: str | None
    maker: str | None
    expires: float


class Target(NamedTuple):
    """Whom a link lets in: somebody new in this role, or this person."""

    role: Role
    person: int | None


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def make(
    connection: Connection, role: str, now: float, seconds: float, person: int | None = None, maker: int | None = None
) -> str:
    """Return the token of a new link. A maker who has been blocked meanwhile makes none."""
    blocked = tables.blocked
    if connection.scalar(select(blocked.c.person).where(blocked.c.person == maker)) is not None:
        raise Refused("This account is blocked.")
    token = secrets.token_urlsafe(32)
    row = {"digest": digest(token), "role": role, "person": person, "expires": now + seconds}
    connection.execute(insert(table).values(row | {"maker": maker, "made": now}))
    return token


def find(connection: Connection, token: str, now: float) -> Target:
    """Role and person of a link that lets somebody in; refused where it does not."""
    found = connection.execute(select(table.c.role, table.c.person).where(_is_good(now), _is(token))).first()
    if found is None:
        raise Refused(USED)
    return Target(*found)


def spend(connection: Connection, token: str, now: float) -> Target:
    """`find`, and the link is used up. Of two who come at the same time one does."""
    found = find(connection, token, now)
    if connection.execute(update(table).where(_is_good(now), _is(token)).values(used=now)).rowcount != 1:
        raise Refused(USED)
    return found


def listed(connection: Connection, now: float) -> list[Link]:
    """Every link that still lets somebody in, the newest first."""
    makers = tables.people.alias("makers")
    asked = select(table.c.digest, table.c.role, tables.people.c.name, makers.c.name.label("maker"), table.c.expires)
    asked = asked.outerjoin(tables.people, tables.people.c.id == table.c.person)
    asked = asked.outerjoin(makers, makers.c.id == table.c.maker)
    rows = connection.execute(asked.where(_is_good(now)).order_by(table.c.made.desc()))
    return [Link(*row) for row in rows]


def revoke(connection: Connection, link: str, now: float) -> None:
    if connection.execute(update(table).where(table.c.digest == link, _is_good(now)).values(voided=now)).rowcount != 1:
        raise Refused("This address lets nobody in any more.", 404)


def void_of(connection: Connection, person: int, now: float) -> None:
    """Void every link that a person has made, or that is for this person."""
    of = or_(table.c.maker == person, table.c.person == person)
    connection.execute(update(table).where(of, _is_good(now)).values(voided=now))


def _is(token: str) -> ColumnElement[bool]:
    return table.c.digest == digest(token)


def _is_good(now: float) -> ColumnElement[bool]:
    return and_(table.c.used.is_(None), table.c.voided.is_(None), table.c.expires > now)
