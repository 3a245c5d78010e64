"""The place of a ledger: a SQLite file or the URL of a PostgreSQL server, and optionally a state of it.

    labels.db    sqlite:///labels.db    postgresql://anna@server/labels    labels.db?at=12&policy=majority&models=yes

A URL may hold a password. `Place.address`, which is printed and stored, leaves it out.
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

# pathlib.Path turns two slashes into one, so one is accepted.
_SERVER = re.compile(r"(?:postgresql|postgres)(?:\+psycopg)?:/+(?P<rest>.*)", re.DOTALL | re.IGNORECASE)
_FILE = re.compile(r"sqlite:///(?P<path>.*)", re.DOTALL | re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.]*:/", re.IGNORECASE)
STATE = ("at", "policy", "models")  # options after the ?
MARK = b"prtL"  # the application id of a SQLite file that holds a ledger
MIN_SQLITE_BYTES = 512  # one page; SQLite takes a file of one byte for an empty database


@dataclass(frozen=True)
class Place:
    """A file or a server, and a state. `shown` is for people and files: it has no password."""

    file: Path | None
    server: str = field(default="", repr=False)  # what comes after postgresql://
    state: tuple[tuple[str, str], ...] = ()

    @property
    def address(self) -> str:
        return str(self.file) if self.file is not None else f"postgresql://{_without_password(self.server)}"

    @property
    def has_password(self) -> bool:
        return self.file is None and self.server != _without_password(self.server)


def is_url(where: object) -> bool:
    """Tell whether this is the URL of a server, not a path."""
    return isinstance(where, str | os.PathLike) and bool(_SERVER.match(os.fspath(where)))


def place_of(where: PathLike | Place) -> Place:
    """Parse the place of a ledger. Error messages do not repeat what may be a password."""
    if isinstance(where, Place):
        return where
    text = os.fspath(where)
    server, file = _SERVER.match(text), _FILE.match(text)
    if not server and not file and _SCHEME.match(text):
        raise DataError(
            f"{text.partition(':')[0]}: a ledger is a file, or on a server: postgresql://user@host/database."
        )
    if not server and os.path.lexists(text):
        return Place(Path(text))  # even if its name looks like a URL
    bare, _, query = text.partition("?")
    state, rest = _state(query)
    if server:
        bare = server["rest"].partition("?")[0]
        return Place(None, f"{bare}?{rest}" if rest else bare, state)
    if rest:
        raise SettingError(f"{bare}?...: the options after ? are {', '.join(STATE)}, not {rest.partition('=')[0]!r}.")
    return Place(Path(unquote(file["path"].partition("?")[0]) if file else bare), state=state)


def without_password(where: PathLike | Place) -> Place:
    """Parse a place and refuse a password in it: command lines and run folders are visible to others."""
    place = place_of(where)
    if place.has_password:
        raise DataError(
            f"{place.address}: do not put a password into the URL, where others can see it. Use the "
            "environment variable PGPASSWORD or ~/.pgpass."
        )
    return place


def _state(query: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """Split the query into options of the state and options of the server."""
    pairs = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name in STATE]
    rest = "&".join(part for part in query.split("&") if part and part.partition("=")[0] not in STATE)
    return tuple(pairs), rest


def state_options(place: Place) -> dict[str, object]:
    """Return the state as keyword arguments of `Ledger.labels`."""
    options: dict[str, object] = dict(place.state)
    if "models" in options:
        if options["models"] not in ("yes", "no"):
            raise SettingError(f"models={options['models']}: may be yes or no.")
        options["models"] = options["models"] == "yes"
    return options


def is_sqlite(path: Path) -> bool:
    """Tell whether a file is a SQLite database, ledger or not, by its content.

    SQLite itself reads the header. If the process opened and closed the file, POSIX would drop every lock that SQLite
    holds on it for other threads, and two writers would damage it.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size < MIN_SQLITE_BYTES or not os.access(path, os.R_OK):
            return False
        with closing(sqlite3.connect(sqlite_uri(path, "ro"), uri=True, timeout=0)) as connection:
            connection.execute("PRAGMA application_id").fetchone()
    except (OSError, ValueError):
        return False
    except sqlite3.Error as error:  # "locked", for example, means that it is a database
        return error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_NOTADB
    return True


def sqlite_uri(path: Path, mode: str) -> str:
    """Return the URI of a file: quoted, so that its name cannot add options."""
    return f"file:{quote(os.path.abspath(path))}?mode={mode}"


def refuse_link(path: Path) -> None:
    """Refuse symbolic links, for the file and for the journal of SQLite."""
    for file in (path, path.with_name(f"{path.name}-journal")):
        if file.is_symlink():
            raise DataError(
                f"{file}: is a symbolic link, and partly does not write through links. Give the file itself."
            )


def _without_password(server: str) -> str:
    """user:password@host/database?password=x -> user@host/database."""
    bare, _, query = server.partition("?")
    who, at, host = bare.rpartition("@")
    rest = "&".join(part for part in query.split("&") if part and "pass" not in part.partition("=")[0].lower())
    return f"{who.partition(':')[0]}{at}{host}" + (f"?{rest}" if rest else "")


def check_policy(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise SettingError(f"policy = {name!r}.{did_you_mean(name, known)}")
