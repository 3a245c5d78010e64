"""HTTP connections with limits, so that a client cannot block the server by opening many.

uvicorn waits indefinitely for request headers and for clients that do not read responses, and refuses all clients once
there are too many connections. Here both have a time limit. If there are too many connections, of one address or in
total, the one that has waited longest for its client is closed, first among clients that are not signed in. So people
who are signed in keep their connections, and a new client that sends its request at once is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0  # until the headers of a request are complete
WRITE_SECONDS = 20.0  # for a client to read a response
MAX_CONNECTIONS = 400
MAX_PER_ADDRESS = 100  # a browser opens up to six; people of one office may share an address


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 with time limits for headers and reading, and with caps on connections."""

    header_seconds: ClassVar[float] = HEADER_SECONDS
    write_seconds: ClassVar[float] = WRITE_SECONDS
    max_connections: ClassVar[int] = MAX_CONNECTIONS
    max_per_address: ClassVar[int] = MAX_PER_ADDRESS
    proxies: ClassVar[frozenset[str]] = frozenset()  # addresses that stand for many clients

    _header_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _was_signed_in = False
    since = 0.0  # start of the connection or of the last request, or end of the last response

    # ---------------------------------------------------------------- caps

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.since = self.loop.time()
        super().connection_made(transport)
        self._start_header_timer()
        others = [peer for peer in self.connections if isinstance(peer, LimitedProtocol) and peer is not self]
        others = [peer for peer in others if not peer.transport.is_closing()]
        same_address = [peer for peer in others if peer.address == self.address]
        if self.address not in self.proxies and len(same_address) >= self.max_per_address:
            self._close_one(same_address)
        elif len(others) >= self.max_connections:
            self._close_one(others)

    def _close_one(self, peers: Sequence[LimitedProtocol]) -> None:
        """Close one of these, or this connection if all others serve signed-in people right now."""
        closable = [peer for peer in peers if peer.waits_for_client or not peer.is_signed_in]
        key = lambda peer: (peer.is_signed_in, not peer.waits_for_client, peer.since)  # noqa: E731
        min(closable, key=key, default=self).transport.abort()

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def is_signed_in(self) -> bool:
        """Tell whether a request on this connection had a valid session."""
        self._was_signed_in = self._was_signed_in or (self.scope is not None and "person" in self.scope["state"])
        return self._was_signed_in

    @property
    def waits_for_client(self) -> bool:
        """Tell whether the connection is idle, sends a request, or does not read the response."""
        is_busy = self.cycle is not None and not self.cycle.response_complete
        return not is_busy or self.cycle.more_body or self.flow.write_paused

    # ---------------------------------------------------------------- time limits

    def data_received(self, data: bytes) -> None:
        previous: Any = self.cycle
        if self._header_timer is None and (previous is None or previous.response_complete):
            self._start_header_timer()
        super().data_received(data)
        if self.cycle is not previous:  # headers are complete
            self.since = self.loop.time()
            self._stop_header_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_write_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def on_response_complete(self) -> None:
        self._was_signed_in = self.is_signed_in  # before the next request replaces the scope
        super().on_response_complete()
        self.since = self.loop.time()
        if self.transport.get_write_buffer_size():  # a client that does not read would delay closing forever
            self._start_write_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(self.header_seconds, self.transport.abort)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _start_write_timer(self) -> None:
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.write_seconds, self._drop_unread)

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _drop_unread(self) -> None:
        self._write_timer = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()
