"""Where a ledger is: a file (SQLite) or the URL of a PostgreSQL server, and which state of it is meant.

    labels.db    sqlite:///labels.db    postgresql://anna@server/labels    labels.db?at=12&policy=majority&models=yes

A URL may carry a password. It is never printed, and where a place is written down (`Place.shown`) it is left out.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

from partly.atomic_io import PathLike
from partly.errors import DataError, SettingError, did_you_mean

# A pathlib.Path makes one slash of two, so that one stands for both.
_SERVER = re.compile(r"(?:postgresql|postgres)(?:\+psycopg)?:/+(?P<rest>.*)", re.DOTALL | re.IGNORECASE)
_FILE = re.compile(r"sqlite:///(?P<path>.*)", re.DOTALL | re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.]*:/", re.IGNORECASE)
STATE = ("at", "policy", "models")  # what may be said after the ?
MARK = b"prtL"  # the application id of a SQLite file that holds a ledger
SMALLEST = 512  # bytes of a page, and so of a database; SQLite takes a file of one byte for an empty one


@dataclass(frozen=True)
class Place:
    """A file or a server, and the state that is meant. `shown` is for people and files: without a password."""

    file: Path | None
    server: str = field(default="", repr=False)  # what comes after postgresql://
    state: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        return str(self.file) if self.file is not None else f"postgresql://{_without_password(self.server)}"

    @property
    def has_password(self) -> bool:
        return self.file is None and self.server != _without_password(self.server)


def is_url(where: object) -> bool:
    """Whether this is the URL of a server, and no path."""
    return isinstance(where, str | os.PathLike) and bool(_SERVER.match(os.fspath(where)))


def place_of(where: PathLike | Place) -> Place:
    """Taken apart; refused, without showing what may be a password, where it is no place of a ledger."""
    if isinstance(where, Place):
        return where
    text = os.fspath(where)
    server, file = _SERVER.match(text), _FILE.match(text)
    if not server and not file and _SCHEME.match(text):
        raise DataError(
            f"{text.partition(':')[0]}: a ledger is a file, or lies on a server: postgresql://user@host/database."
        )
    if not server and os.path.lexists(text):
        return Place(Path(text))  # whatever its name looks like
    bare, _, query = text.partition("?")
    state, rest = _state(query)
    if server:
        bare = server["rest"].partition("?")[0]
        return Place(None, f"{bare}?{rest}" if rest else bare, state)
    if rest:
        raise SettingError(f"{bare}?...: may say {', '.join(STATE)} after the ?, and not {rest.partition('=')[0]!r}.")
    return Place(Path(unquote(file["path"].partition("?")[0]) if file else bare), state=state)


def without_password(where: PathLike | Place) -> Place:
    """The same, of who types it or writes it down: others see command lines, and places stand in run folders."""
    place = place_of(where)
    if place.has_password:
        raise DataError(
            f"{place.shown}: give no password with the place of a ledger, where others see it. Put it into the "
            "environment variable PGPASSWORD, or into ~/.pgpass."
        )
    return place


def _state(query: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """What is said of the state, and what is for the server."""
    pairs = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name in STATE]
    rest = "&".join(part for part in query.split("&") if part and part.partition("=")[0] not in STATE)
    return tuple(pairs), rest


def wanted(place: Place) -> dict[str, object]:
    """The state as settings of `Ledger.labels`."""
    found: dict[str, object] = dict(place.state)
    if "models" in found:
        if found["models"] not in ("yes", "no"):
            raise SettingError(f"models={found['models']}: may be yes or no.")
        found["models"] = found["models"] == "yes"
    return found


def is_sqlite(path: Path) -> bool:
    """Tell whether a file is a SQLite database, ledger or not, by its content.

    SQLite itself reads the header. If the process opened and closed the file, POSIX would drop every lock that SQLite
    holds on it for other threads, and two writers would damage it.
    """
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size < SMALLEST or not os.access(path, os.R_OK):
            return False
        with closing(sqlite3.connect(sqlite_uri(path, "ro"), uri=True, timeout=0)) as connection:
            connection.execute("PRAGMA application_id").fetchone()
    except (OSError, ValueError):
        return False
    except sqlite3.Error as error:  # locked, for one, is only what a database can be
        return error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_NOTADB
    return True


def sqlite_uri(path: Path, mode: str) -> str:
    """Return the URI of a file: quoted, so that its name cannot add options."""
    return f"file:{quote(os.path.abspath(path))}?mode={mode}"


def refuse_link(path: Path) -> None:
    """Nothing is written through links, neither the file nor the journal that SQLite keeps beside it."""
    for one in (path, path.with_name(f"{path.name}-journal")):
        if one.is_symlink():
            raise DataError(f"{one}: is a link, through which nothing is written. Give the file itself.")


def _without_password(rest: str) -> str:
    """user:password@host/database?password=x -> user@host/database."""
    bare, _, query = rest.partition("?")
    who, at, host = bare.rpartition("@")
    kept = "&".join(part for part in query.split("&") if part and "pass" not in part.partition("=")[0].lower())
    return f"{who.partition(':')[0]}{at}{host}" + (f"?{kept}" if kept else "")


def policy_of(name: str, known: tuple[str, ...]) -> str:
    if name not in known:
        raise SettingError(f"policy = {name!r}.{did_you_mean(name, known)}")
    return name
