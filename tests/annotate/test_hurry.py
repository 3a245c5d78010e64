"""A client that does not come to the end of its headers is dropped; others are served meanwhile and afterwards."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn

from partly.annotate.hurry import Hurried

WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class Impatient(Hurried):
    seconds = 0.3


async def app(scope, receive, send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        how = {"http": Impatient, "ws": "none", "lifespan": "off", "log_level": "error", "timeout_keep_alive": 60}
        server = uvicorn.Server(uvicorn.Config(app, **how))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(30)


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        yield client


def served(client: socket.socket) -> bool:
    client.sendall(WHOLE)
    found = b""
    while not found.endswith(b"ok"):
        part = client.recv(1000)
        if not part:
            return False
        found += part
    return True


@pytest.mark.parametrize("sent", [b"", WHOLE[:-2]])
def test_a_slow_client_is_dropped(port: int, sent: bytes) -> None:
    with connected(port) as client:
        client.sendall(sent)
        assert client.recv(1000) == b""  # within the time of the client


def test_a_client_that_is_slow_the_second_time_is_dropped_too(port: int) -> None:
    with connected(port) as client:
        assert served(client)
        client.sendall(WHOLE[:5])
        assert client.recv(1000) == b""


def test_who_is_quiet_between_two_requests_is_not(port: int) -> None:
    with connected(port) as client:
        assert served(client)
        threading.Event().wait(2 * Impatient.seconds)
        assert served(client)
