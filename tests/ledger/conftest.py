"""Ledgers in files, and on a PostgreSQL server that the tests start for themselves, as nobody in particular."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

PASSWORD = "s3cret-w0rd"
WHO = "postgres"  # whom Debian's package makes; the server refuses to be run by root


def binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    there = shutil.which("initdb")
    return found[-1].parent if found else None if there is None else Path(there).resolve().parent


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """user:password@host:port of a new server."""
    bin_ = binaries()
    if bin_ is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    root = os.geteuid() == 0
    try:
        owner = pwd.getpwnam(WHO) if root else pwd.getpwuid(os.geteuid())
    except KeyError:
        pytest.skip(f"PostgreSQL is not run by root, and there is no user {WHO}")
    folder = Path(tempfile.mkdtemp(prefix="partly-pg-"))
    try:
        (folder / "word").write_text(PASSWORD)
        for path in (folder, folder / "word"):
            os.chown(path, owner.pw_uid, owner.pw_gid)

        def call(*command: str) -> None:
            subprocess.run(
                command,
                check=True,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                user=owner.pw_uid if root else None,
                group=owner.pw_gid if root else None,
                extra_groups=[] if root else None,
            )

        data = str(folder / "data")
        made = [
            "--no-sync",
            "--username=anna",
            "--pwfile=word",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
        ]
        call(str(bin_ / "initdb"), "-D", data, *made)
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        how = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        call(str(bin_ / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log"), "-o", how, "start")
        try:
            yield f"anna:{PASSWORD}@127.0.0.1:{port}"
        finally:
            call(str(bin_ / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Where a new ledger can be, a place a call."""
    number = count()
    if request.param == "sqlite":
        return lambda: str(tmp_path / f"labels-{next(number)}.db")
    return databases(request.getfixturevalue("server"))


_made = count()


def databases(server: str) -> Callable[[], str]:
    """A new database a call."""
    import psycopg

    def new() -> str:
        name = f"ledger_{next(_made)}"
        with psycopg.connect(f"postgresql://{server}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://{server}/{name}"

    return new
