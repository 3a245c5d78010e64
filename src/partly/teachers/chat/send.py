"""Send one request, and bound the size of the reply and the time of the exchange. Redirects are not followed."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from partly.teachers.chat.endpoint import Endpoint, resolve

MAX_REPLY_BYTES = 1 << 20
MAX_WAIT_SECONDS = 300.0  # upper bound for Retry-After
CHUNK_BYTES = 1 << 14


@dataclass(frozen=True)
class Response:
    """Status, body and the seconds of Retry-After, if given."""

    status: int
    body: str
    retry_after: float | None = None


def send(endpoint: Endpoint, body: bytes, key: str, timeout: float) -> Response:
    """Send a request with this idempotency key. Raise OSError (also for timeouts) if the reply is incomplete.

    A reply longer than `MAX_REPLY_BYTES` is truncated, so it cannot be parsed.
    """
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Idempotency-Key": key,
        "User-Agent": "partly",
        "Connection": "close",
    }
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=timeout)
    with _connect(endpoint, timeout) as connection.sock:
        try:
            connection.request("POST", endpoint.path, body, headers)
            response = connection.getresponse()
            content = _read(response)
        except http.client.HTTPException as error:
            raise ConnectionError(f"the reply is no whole HTTP reply ({type(error).__name__})") from None
        finally:
            connection.close()
    return Response(response.status, content, parse_retry_after(response.getheader("Retry-After")))


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds in a Retry-After header (a number or a date), at most `MAX_WAIT_SECONDS`."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), MAX_WAIT_SECONDS) if seconds == seconds else None


@contextmanager
def _connect(endpoint: Endpoint, timeout: float) -> Iterator[socket.socket]:
    """Connect to the checked address, and shut the connection down when the time is over.

    A timeout per read is not enough: a server can send one byte at a time without end. Certificates are checked against
    the host name.
    """
    begun, expired = time.monotonic(), threading.Event()
    connection = socket.create_connection((resolve(endpoint), endpoint.port), timeout)

    def expire() -> None:
        expired.set()
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    watch = threading.Timer(max(0.0, timeout - (time.monotonic() - begun)), expire)
    watch.daemon = True
    watch.start()
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if endpoint.scheme == "https":
            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=endpoint.host)
        yield connection
    except OSError:
        if not expired.is_set():
            raise
    finally:
        watch.cancel()
        connection.close()
    if expired.is_set():
        raise TimeoutError("the reply took too long")


def _read(response: http.client.HTTPResponse) -> str:
    pieces, size = [], 0
    while size <= MAX_REPLY_BYTES:
        piece = response.read1(CHUNK_BYTES)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    else:
        pieces = [b"".join(pieces)[:MAX_REPLY_BYTES]]
        return pieces[0].decode("utf-8", "replace")
    if response.length:
        raise ConnectionError("the connection was closed before the end of the reply")
    return b"".join(pieces).decode("utf-8", "replace")
