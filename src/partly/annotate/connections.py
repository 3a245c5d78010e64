"""Connections that make no progress are closed, so that nobody can hold the server up by opening many.

uvicorn waits for ever for the end of a request's headers and for a client to read its answer, and refuses everybody
once there are too many connections. Here a connection has a time for each. Where there are too many connections, of one
address or in all, one makes room: the one that has waited longest for its client, of clients that are not signed in as
long as there are any. So a browser of somebody who is signed in keeps its connections, and a new client that sends its
request at once is served, whoever else holds connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0  # from the opening, or the first letter after a request that is over, until the headers are there
WRITE_SECONDS = 20.0  # for a client to read what was sent
MAX_CONNECTIONS = 400
MAX_PER_ADDRESS = 100  # a browser takes up to six, and people of one office may share an address


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 with times for headers and reading, and with caps on connections."""

    header_seconds: ClassVar[float] = HEADER_SECONDS
    write_seconds: ClassVar[float] = WRITE_SECONDS
    max_connections: ClassVar[int] = MAX_CONNECTIONS
    max_per_address: ClassVar[int] = MAX_PER_ADDRESS
    proxies: ClassVar[frozenset[str]] = frozenset()  # addresses that stand for many clients

    _header_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _person = False
    since = 0.0  # the opening, the beginning of a request, or the end of its answer

    # ---------------------------------------------------------------- caps

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.since = self.loop.time()
        super().connection_made(transport)
        self._start_header_timer()
        others = [one for one in self.connections if isinstance(one, LimitedProtocol) and one is not self]
        others = [one for one in others if not one.transport.is_closing()]
        same = [one for one in others if one.address == self.address]
        if self.address not in self.proxies and len(same) >= self.max_per_address:
            self._make_room(same)
        elif len(others) >= self.max_connections:
            self._make_room(others)

    def _make_room(self, among: Sequence[LimitedProtocol]) -> None:
        """Close another connection, or this one where all others are at work for people who are signed in."""
        rest = [one for one in among if one.waits_for_client or not one.is_signed_in]
        key = lambda one: (one.is_signed_in, not one.waits_for_client, one.since)  # noqa: E731
        min(rest, key=key, default=self).transport.abort()

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def is_signed_in(self) -> bool:
        """Tell whether a request on this connection was that of a person whom the guards have let in."""
        self._person = self._person or (self.scope is not None and "person" in self.scope["state"])
        return self._person

    @property
    def waits_for_client(self) -> bool:
        """Between requests, in the middle of one, or with an answer that is not read."""
        at_work = self.cycle is not None and not self.cycle.response_complete
        return not at_work or self.cycle.more_body or self.flow.write_paused

    # ---------------------------------------------------------------- times

    def data_received(self, data: bytes) -> None:
        before: Any = self.cycle
        if self._header_timer is None and (before is None or before.response_complete):
            self._start_header_timer()
        super().data_received(data)
        if self.cycle is not before:  # a request has begun
            self.since = self.loop.time()
            self._stop_header_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_write_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def on_response_complete(self) -> None:
        self._person = self.is_signed_in  # before there is another request
        super().on_response_complete()
        self.since = self.loop.time()
        if self.transport.get_write_buffer_size():  # what is left may never be read, and a close would wait for it
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
