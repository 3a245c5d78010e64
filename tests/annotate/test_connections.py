"""Clients that make no progress are dropped and keep nobody out; others are served meanwhile and afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from partly.annotate.connections import LimitedProtocol

WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nbeginning"
WORK = b"GET /work HTTP/1.1\r\nHost: here\r\n\r\n"  # that takes long
PERSON = b"GET /person HTTP/1.1\r\nHost: here\r\n\r\n"  # the same, of somebody who is signed in
LARGE = b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n"
SIZE = 16 << 20  # more than the buffers of a socket hold


async def app(scope, receive, send) -> None:
    if scope["path"] == "/person":
        scope["state"]["person"] = "anna"
    if scope["path"] in ("/person", "/work"):
        await asyncio.sleep(60)
    if scope["method"] == "POST":
        await receive()
        await receive()
    body = b"x" * SIZE if scope["path"] == "/large" else b"ok"
    length = str(len(body)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def serving(protocol: type[LimitedProtocol]) -> Iterator[tuple[int, uvicorn.Server]]:
    with socket.create_server(("127.0.0.1", 0), backlog=500) as listening:
        how = {"http": protocol, "ws": "none", "lifespan": "off", "log_level": "error", "timeout_keep_alive": 60}
        server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=1, **how))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield listening.getsockname()[1], server
        server.should_exit = True
        thread.join(30)


class Impatient(LimitedProtocol):
    header_seconds = 0.3
    write_seconds = 0.3


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(Impatient) as (port, _):
        yield port


@contextlib.contextmanager
def connected(port: int, address: str = "127.0.0.1") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(address, 0)) as client:
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


def is_dropped(client: socket.socket) -> bool:
    """Within the time of the client."""
    try:
        return client.recv(1000) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", WHOLE[:-2]])
def test_a_slow_client_is_dropped(port: int, sent: bytes) -> None:
    with connected(port) as client:
        client.sendall(sent)
        assert is_dropped(client)


def test_a_client_that_is_slow_the_second_time_is_dropped_too(port: int) -> None:
    with connected(port) as client:
        assert served(client)
        client.sendall(WHOLE[:5])
        assert is_dropped(client)


def test_who_is_quiet_between_two_requests_is_not(port: int) -> None:
    with connected(port) as client:
        assert served(client)
        threading.Event().wait(2 * Impatient.header_seconds)
        assert served(client)


def test_a_client_that_never_reads_is_dropped() -> None:
    with serving(Impatient) as (port, server), connected(port) as client:
        client.sendall(LARGE)
        deadline = time.monotonic() + 30
        while not server.server_state.tasks and time.monotonic() < deadline:
            time.sleep(0.01)  # until its request is there
        while server.server_state.connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not server.server_state.connections
        assert not server.server_state.tasks


class Few(LimitedProtocol):
    max_per_address = 20
    max_connections = 40


@pytest.mark.parametrize("sent", [b"", WHOLE[:-2], POST, LARGE, WHOLE, WORK])
def test_many_connections_keep_nobody_out(sent: bytes) -> None:
    """Three times as many as one address may have, that never come to an end, never read, or just stay. Somebody who
    sends a request at once is served, from the same address and from another."""
    with serving(Few) as (port, server), contextlib.ExitStack() as stack:
        for _ in range(3 * Few.max_per_address):
            client = stack.enter_context(connected(port))
            with contextlib.suppress(OSError):  # dropped already
                client.sendall(sent)
        for address in ("127.0.0.1", "127.0.0.2"):
            for _ in range(5):
                assert served(stack.enter_context(connected(port, address)))
        assert len(server.server_state.connections) <= Few.max_connections


def test_many_addresses_keep_nobody_out() -> None:
    with serving(Few) as (port, server), contextlib.ExitStack() as stack:
        for i in range(3 * Few.max_connections):
            stack.enter_context(connected(port, f"127.0.1.{i + 1}"))
        assert served(stack.enter_context(connected(port)))
        assert len(server.server_state.connections) <= Few.max_connections


def test_the_request_of_a_person_is_not_dropped_for_others() -> None:
    with serving(Few) as (port, server), contextlib.ExitStack() as stack:
        person = stack.enter_context(connected(port))
        person.sendall(PERSON)
        deadline = time.monotonic() + 30
        while not any("person" in (one.scope or {}).get("state", {}) for one in list(server.server_state.connections)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for _ in range(3 * Few.max_per_address):
            client = stack.enter_context(connected(port))
            with contextlib.suppress(OSError):
                client.sendall(WORK)
        assert served(stack.enter_context(connected(port)))
        person.setblocking(False)
        with pytest.raises(BlockingIOError):  # it is still open
            person.recv(1)
        assert len(server.server_state.connections) <= Few.max_connections


class Proxied(Few):
    proxies = frozenset({"127.0.0.1"})


def test_a_proxy_stands_for_many_clients() -> None:
    with serving(Proxied) as (port, _), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(port)) for _ in range(Proxied.max_connections)]
        assert all(map(served, clients))
