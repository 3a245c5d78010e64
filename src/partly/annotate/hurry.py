"""A connection on which a request does not come along within seconds is closed.

uvicorn waits for ever for the end of a request's headers: a few hundred clients that send a letter now and then would
keep everybody else out. (`doors` has the same limit for bodies.)
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

SECONDS = 10.0


class Hurried(H11Protocol):
    """The time runs from the opening of a connection, and from the first letter after a request that is over, until
    the headers are there; how long an answer takes is no business of it."""

    seconds = SECONDS
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._hurry()

    def data_received(self, data: bytes) -> None:
        before: RequestResponseCycle | None = self.cycle
        if self._timer is None and (before is None or before.response_complete):
            self._hurry()
        super().data_received(data)
        if self.cycle is not before:  # a request has begun
            self._calm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def _hurry(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self.transport.close)

    def _calm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
