"""Attacks `partly annotate` on this machine, without a session, while somebody who is signed in works.

    python tests/annotate/attacking.py --seconds 5 --clients 150

Each attack runs for so many seconds, by processes of their own. Printed are how long the person waited for an answer,
in the middle and at most, how many requests were not served, and the largest memory of the server.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import re
import socket
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from annotate.running import Running, running

PROCESSES = 2
PASSWORD = "a long password"
Attack = Callable[[int, int, float], None]  # port, clients, until when


def head(port: int, method: str, path: str, *more: str) -> bytes:
    host = f"127.0.0.1:{port}"
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Origin: http://{host}", "Content-Type: application/json"]
    return "\r\n".join([*lines, *more, "", ""]).encode()


def sending(request: Callable[[int, int], bytes], read: bool = True) -> Attack:
    """Clients that send a request again and again, and read the answer, or do not."""

    def attack(port: int, clients: int, until: float) -> None:
        os.nice(19)  # clients are elsewhere, and take nothing from the server's processor

        def client(number: int) -> None:
            count = number * 1_000_000
            while time.time() < until:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                    while time.time() < until:
                        count += 1
                        connection.sendall(request(port, count))
                        if read and not connection.recv(1 << 16):
                            break
                time.sleep(0.01)

        threads = [threading.Thread(target=client, args=(i,), daemon=True) for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until - time.time()) + 10)

    return attack


def waiting(beginning: Callable[[int], bytes]) -> Attack:
    """Connections that begin a request and never end it; new ones for those that are dropped."""

    def attack(port: int, clients: int, until: float) -> None:
        os.nice(19)
        held: list[socket.socket] = []
        while time.time() < until:
            with suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", port), timeout=5))
                held[-1].sendall(beginning(port))
            if len(held) > 2 * clients:
                held.pop(0).close()
            time.sleep(0.002)

    return attack


def body(port: int, path: str, given: Any) -> bytes:
    content = json.dumps(given).encode()
    return head(port, "POST", path, f"Content-Length: {len(content)}") + content


ATTACKS: dict[str, Attack | None] = {
    "nobody attacks": None,
    "junk at /api/join": sending(
        lambda port, i: body(port, "/api/join", {"token": f"junk {i}", "name": f"n{i}", "password": PASSWORD})
    ),
    "junk at /api/renew": sending(
        lambda port, i: body(port, "/api/renew", {"token": f"junk {i}", "password": PASSWORD})
    ),
    "junk at /api/log-in": sending(lambda port, i: body(port, "/api/log-in", {"name": f"n{i}", "password": PASSWORD})),
    "16 MB at /api/import": sending(
        lambda port, i: head(port, "POST", "/api/import", f"Content-Length: {16 << 20}") + b"[" * (16 << 20)
    ),
    "half-open connections": waiting(lambda port: b"GET / HTTP/1.1\r\n"),
    "slow bodies": waiting(lambda port: head(port, "POST", "/api/log-in", "Content-Length: 1000") + b"{"),
    "answers that nobody reads": sending(lambda port, i: head(port, "GET", "/static/page.js") * 50, read=False),
    "made-up cookies": sending(lambda port, i: head(port, "GET", "/label", f"Cookie: partly-{port}=made-up-{i}")),
}


class Somebody:
    """Signed in, and working: the questions, a page and a file by turns."""

    def __init__(self, server: Running) -> None:
        self.port, self.cookie, self.token = int(server.address.rpartition(":")[2]), "", ""
        self.connection: http.client.HTTPConnection | None = None
        token = server.link.partition("token=")[2]
        _, headers, _ = self.call("POST", "/api/join", {"token": token, "name": "Anna", "password": PASSWORD})
        self.cookie = headers["set-cookie"].partition(";")[0]
        page = self.call("GET", "/label")[2].decode()
        self.token = re.findall(r'name="partly-page" content="(\w+)"', page)[0]

    def call(self, method: str, path: str, given: Any = None) -> tuple[int, Any, bytes]:
        """As browsers do: on a connection that stays, and again on a new one where that was closed meanwhile."""
        headers = {"origin": f"http://127.0.0.1:{self.port}", "content-type": "application/json"}
        headers |= {"cookie": self.cookie, "x-partly-page": self.token}
        content = None if given is None else json.dumps(given)
        while True:
            kept, self.connection = self.connection, None
            connection = kept or http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                connection.request(method, path, content, headers)
                found = connection.getresponse()
                body = found.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                if kept is None:
                    raise
                continue
            self.connection = connection
            return found.status, found.headers, body

    def work(self, until: float) -> tuple[list[float], int]:
        """Seconds that each request took, and how many were not served."""
        took, lost = [], 0
        asked = [("POST", "/api/questions", {"view": "label", "count": 5}), ("GET", "/label", None)]
        asked += [("GET", "/static/page.js", None)]
        while time.time() < until:
            for request in asked:
                started = time.perf_counter()
                try:
                    lost += self.call(*request)[0] != 200
                except (OSError, http.client.HTTPException):
                    lost += 1
                took.append(time.perf_counter() - started)
                time.sleep(0.05)
        return took, lost


@contextmanager
def attacked(attack: Attack | None, port: int, clients: int, until: float) -> Iterator[None]:
    context = multiprocessing.get_context("fork")
    made = [
        context.Process(target=attack, args=(port, clients // PROCESSES, until), daemon=True)
        for _ in range(PROCESSES if attack is not None else 0)
    ]
    for process in made:
        process.start()
    try:
        yield
    finally:
        for process in made:
            process.kill()
            process.join()


def memory(server: Running) -> int:
    """Megabytes that the server holds."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) >> 10


def run(folder: Path, seconds: float, clients: int) -> list[dict[str, Any]]:
    (folder / "x.csv").write_text("item,a,b\n" + "".join(f"i{i},{i % 7},{i % 5}\n" for i in range(200)))
    (folder / "y.csv").write_text("item,cat,dog\n" + "".join(f"i{i},{i % 2},\n" for i in range(200)))
    told = []
    with running(folder, "x.csv", "--labels", "y.csv", "--ledger", "labels.db", "--accounts") as server:
        threading.Thread(target=lambda: [None for _ in server.process.stderr or ()], daemon=True).start()
        somebody = Somebody(server)
        for name, attack in ATTACKS.items():
            until, largest = time.time() + seconds, [memory(server)]
            with attacked(attack, somebody.port, clients, until):
                watch = threading.Thread(target=lambda: _watch(server, until, largest), daemon=True)  # noqa: B023
                watch.start()
                took, lost = somebody.work(until)
                watch.join(5)
            told.append(_line(name, took, lost, largest))
            print(json.dumps(told[-1]), flush=True)
            time.sleep(1)
        told.append(_locked(folder / "labels.db", somebody, seconds, clients))
        print(json.dumps(told[-1]), flush=True)
    return told


def _watch(server: Running, until: float, largest: list[int]) -> None:
    while time.time() < until:
        largest.append(memory(server))
        time.sleep(0.1)


def _line(name: str, took: list[float], lost: int, largest: list[int]) -> dict[str, Any]:
    took = sorted(took)
    middle, most = round(took[len(took) // 2], 3), round(took[-1], 3)
    return {"attack": name, "requests": len(took), "lost": lost, "middle": middle, "most": most, "MB": max(largest)}


def _locked(path: Path, somebody: Somebody, seconds: float, clients: int) -> dict[str, Any]:
    """Another process holds the database, and made-up cookies come: static files are served."""
    until = time.time() + seconds
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    took, lost = [], 0
    with attacked(ATTACKS["made-up cookies"], somebody.port, clients, until):
        while time.time() < until:
            started = time.perf_counter()
            try:
                lost += somebody.call("GET", "/static/page.js")[0] != 200
            except (OSError, http.client.HTTPException):
                lost += 1
            took.append(time.perf_counter() - started)
            time.sleep(0.05)
    connection.execute("ROLLBACK")
    connection.close()
    return _line("the database is locked: static files", took, lost, [0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=150)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = run(Path(folder), asked.seconds, asked.clients)
    sys.exit(any(line["lost"] for line in told))


if __name__ == "__main__":
    main()
