"""What every request passes before anything of ours sees it, and every answer on its way out: a plain ASGI layer.

- The Host must be one of ours: a foreign name that was pointed to this machine (DNS rebinding) is turned away.
- What changes something is a POST of JSON from a page of ours: the Origin is compared, and a form of another page,
  which cannot send JSON, never gets here.
- A body has a size and a time, which hold while it is read. Nothing of it is read before somebody asks for it, so who
  has no session sends nothing that is kept; a connection on which a body was not read to its end is closed.
- There are no WebSockets.
- Answers let no other script, style or picture in than our own, and are shown in nobody's frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException

from partly.errors import SettingError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BYTES = 64 << 10
IMPORTED = "/api/import"  # by admins, of files
MOST_IMPORTED = 16 << 20
SECONDS = 10.0  # for a body to arrive

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class Address:
    """Under which names people reach the pages."""

    origins: frozenset[str]  # http://127.0.0.1:8765
    secure: bool = False  # cookies go over TLS only

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(urlsplit(origin).netloc for origin in self.origins)


def here(port: int) -> Address:
    """This machine and nobody else."""
    return Address(frozenset(f"http://{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")))


def public(url: str) -> Address:
    """What a reverse proxy, or a network that is trusted, makes of it."""
    parts = urlsplit(url)
    plain = parts.path in ("", "/") and not parts.query and not parts.fragment and parts.username is None
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
        raise SettingError(f"--public-url {url!r} should be an address without a path: https://labels.example.org")
    usual = f":{443 if parts.scheme == 'https' else 80}"  # which browsers leave out
    return Address(frozenset({f"{parts.scheme}://{parts.netloc.lower().removesuffix(usual)}"}), parts.scheme == "https")


@dataclass(frozen=True)
class Doors:
    """An app behind doors."""

    app: App
    address: Address
    seconds: float = SECONDS

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is None:
                await self._let_in(scope, receive, _dressed(send))
            else:
                await _answer(_dressed(send), *refusal)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Message) -> tuple[int, str] | None:
        """Status and words for what does not come in."""
        method, host = scope["method"], _headers(scope, b"host")
        if len(host) != 1 or host[0].lower() not in self.address.hosts:
            return 421, f"This is not the address of these pages: {', '.join(sorted(self.address.hosts))}."
        if method in ("GET", "HEAD"):
            return None
        if method != "POST":
            return 405, "GET or POST."
        if _headers(scope, b"origin") not in [[origin] for origin in self.address.origins]:
            return 403, "Only pages of this address may change anything here."
        if [kind.partition(";")[0].strip().lower() for kind in _headers(scope, b"content-type")] != [
            "application/json"
        ]:
            return 415, "What is sent here is JSON."
        length = _headers(scope, b"content-length")
        if length and (len(length) != 1 or not length[0].isdecimal() or int(length[0]) > _most(scope)):
            return 413, f"At most {_most(scope)} bytes."
        return None

    async def _let_in(self, scope: Message, receive: Receive, send: Send) -> None:
        body = _Body(receive, _most(scope), self.seconds, whole=scope["method"] != "POST")
        await self.app(scope, body.receive, body.closing(send))


class _Body:
    """A body that arrives in time and is not too long; else whoever reads it gets an HTTP error."""

    def __init__(self, receive: Receive, most: int, seconds: float, whole: bool) -> None:
        self._receive, self._most, self._seconds, self._whole = receive, most, seconds, whole
        self._size, self._ends = 0, 0.0

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()
        now = asyncio.get_running_loop().time()
        self._ends = self._ends or now + self._seconds
        try:
            message = await asyncio.wait_for(self._receive(), self._ends - now)
        except TimeoutError:
            raise HTTPException(408, f"What is sent must arrive within {self._seconds:g} seconds.") from None
        self._size += len(message.get("body", b""))
        if self._size > self._most:
            raise HTTPException(413, f"At most {self._most} bytes.")
        self._whole = not message.get("more_body", False)
        return message

    def closing(self, send: Send) -> Send:
        """Close the connection after an answer that does not wait for the rest of the body."""

        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start" and not self._whole:
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        return closing


def _most(scope: Message) -> int:
    return MOST_IMPORTED if scope["path"] == IMPORTED else MOST_BYTES


def _headers(scope: Message, name: bytes) -> list[str]:
    found: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for key, value in found if key.lower() == name]


def _dressed(send: Send) -> Send:
    """With our headers on every answer; kept by nobody, where it does not say otherwise."""

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = list(message.get("headers", ()))
            added = HEADERS if any(key.lower() == b"cache-control" for key, _ in there) else HEADERS | STORED
            message["headers"] = there + [(key.encode(), value.encode()) for key, value in added.items()]
        await send(message)

    return dressed


STORED = {"cache-control": "no-store"}


async def _answer(send: Send, status: int, words: str) -> None:
    content = words.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": content})
