"""Security checks of every request and security headers of every response, as ASGI middleware.

- `TrustedHostMiddleware` refuses foreign host names that point to this machine (DNS rebinding).
- Every change is a POST of JSON whose Origin is ours. A form of another site cannot send JSON.
- A body has a maximum size and time. It is read only when a route asks for it, so a client without a session cannot
  fill memory. If a body is not read to its end, the connection is closed.
- WebSockets are refused.
- Responses allow only our own scripts, styles and images, and forbid framing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from partly.errors import SettingError

MAX_BODY_BYTES = 64 << 10
IMPORT_PATH = "/api/import"  # where admins upload files
MAX_IMPORT_BYTES = 16 << 20
BODY_SECONDS = 10.0

RESPONSE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True)
class ServerAddress:
    """The origins under which browsers reach the server."""

    origins: frozenset[str]  # http://127.0.0.1:8765
    secure: bool = False  # send cookies over TLS only

    @property
    def hosts(self) -> list[str]:
        names = (urlsplit(origin).hostname or "" for origin in self.origins)
        return [f"[{name}]" if ":" in name else name for name in names]


def local_address(port: int) -> ServerAddress:
    """Return the address for browsers on this machine only."""
    return ServerAddress(frozenset(f"http://{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")))


def public_address(url: str) -> ServerAddress:
    """Return the address behind a reverse proxy or in a trusted network."""
    split_url = urlsplit(url)
    plain = (
        split_url.path in ("", "/") and not split_url.query and not split_url.fragment and split_url.username is None
    )
    if split_url.scheme not in ("http", "https") or not split_url.hostname or not plain:
        raise SettingError(f"--public-url {url!r}: give a URL without a path, such as https://labels.example.org")
    default_port = f":{443 if split_url.scheme == 'https' else 80}"  # which browsers leave out
    origin = f"{split_url.scheme}://{split_url.netloc.lower().removesuffix(default_port)}"
    return ServerAddress(frozenset({origin}), split_url.scheme == "https")


class SecurityMiddleware:
    """Check requests before the application sees them, and add security headers to all responses."""

    def __init__(self, app: ASGIApp, address: ServerAddress, body_seconds: float = BODY_SECONDS) -> None:
        self.app = TrustedHostMiddleware(app, allowed_hosts=address.hosts, www_redirect=False)
        self._origins, self._body_seconds = address.origins, body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] != "http":
            await self.app(scope, receive, send)
        elif (refusal := self._refusal(scope)) is not None:
            await refusal(scope, receive, _add_headers(send))
        else:
            body = _LimitedBody(receive, _max_bytes(scope), self._body_seconds, complete=scope["method"] != "POST")
            await self.app(scope, body.receive, body.close_unless_read(_add_headers(send)))

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        """Return the response to a request that the application must not see."""
        method, headers = scope["method"], Headers(scope=scope)
        if method in ("GET", "HEAD"):
            return None
        if method != "POST":
            return _refuse(405, "Use GET or POST.")
        if headers.getlist("origin") not in [[origin] for origin in self._origins]:
            return _refuse(403, "Only pages of this server may change anything here.")
        if [kind.partition(";")[0].strip().lower() for kind in headers.getlist("content-type")] != ["application/json"]:
            return _refuse(415, "Send JSON.")
        lengths = headers.getlist("content-length")
        if lengths and (len(lengths) != 1 or not lengths[0].isdecimal() or int(lengths[0]) > _max_bytes(scope)):
            return _refuse(413, f"Send at most {_max_bytes(scope)} bytes.")
        return None


class _LimitedBody:
    """A request body with a maximum size and time; reading past either raises an HTTP error."""

    def __init__(self, receive: Receive, max_bytes: int, seconds: float, complete: bool) -> None:
        self._receive, self._max_bytes, self._seconds, self._complete = receive, max_bytes, seconds, complete
        self._size, self._deadline = 0, 0.0

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        now = asyncio.get_running_loop().time()
        self._deadline = self._deadline or now + self._seconds
        try:
            message = await asyncio.wait_for(self._receive(), self._deadline - now)
        except TimeoutError:
            raise HTTPException(408, f"The request body must arrive within {self._seconds:g} seconds.") from None
        self._size += len(message.get("body", b""))
        if self._size > self._max_bytes:
            raise HTTPException(413, f"Send at most {self._max_bytes} bytes.")
        self._complete = not message.get("more_body", False)
        return message

    def close_unless_read(self, send: Send) -> Send:
        """Close the connection after a response that does not wait for the rest of the body."""

        async def send_closing(message: Message) -> None:
            if message["type"] == "http.response.start" and not self._complete:
                MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        return send_closing


def _max_bytes(scope: Scope) -> int:
    return MAX_IMPORT_BYTES if scope["path"] == IMPORT_PATH else MAX_BODY_BYTES


def _refuse(status: int, text: str) -> PlainTextResponse:
    return PlainTextResponse(text, status, headers={"connection": "close"})


def _add_headers(send: Send) -> Send:
    """Add the security headers; forbid caching unless the response allows it."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(RESPONSE_HEADERS)
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return send_with_headers
