"""The door by itself, message by message: what comes in, what does not, and what every answer wears."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from partly.annotate.security_middleware import (
    MAX_BODY_BYTES,
    MAX_IMPORT_BYTES,
    RESPONSE_HEADERS,
    SecurityMiddleware,
    local_address,
    public_address,
)
from partly.errors import SettingError

HOST, ORIGIN = "127.0.0.1:8765", "http://127.0.0.1:8765"
JSON = "application/json"


def asked(
    method: str = "GET",
    path: str = "/",
    headers: list[tuple[str, str]] | None = None,
    parts: list[Any] | None = None,
    seconds: float = 5.0,
    kind: str = "http",
    address: Any = None,
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body that come out of the doors before an app that gives back what it was sent."""
    sent: list[Any] = []
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts or []]
    waiting += [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        message = waiting.pop(0)
        if message.get("body") == "never":
            await asyncio.sleep(60)
        return message

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        try:
            while more:
                message = await receive()
                body, more = body + message["body"], message["more_body"]
        except HTTPException as error:
            return await JSONResponse({"error": error.detail}, error.status_code)(scope, receive, send)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
        await send({"type": "http.response.body", "body": body})

    scope = {"type": kind, "method": method, "path": path}
    scope["headers"] = [(key.encode(), value.encode()) for key, value in headers or []]
    asyncio.run(SecurityMiddleware(app, address or local_address(8765), seconds)(scope, receive, send))
    if sent[0]["type"] == "websocket.close":
        return sent[0]["code"], {}, b""
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, sent[1]["body"]


def posted(*more: tuple[str, str], **how: Any) -> int:
    return asked("POST", headers=[("host", HOST), ("origin", ORIGIN), ("content-type", JSON), *more], **how)[0]


@pytest.mark.parametrize("host", [HOST, "localhost:8765", "[::1]:8765", "LOCALHOST:8765"])
def test_our_own_names(host: str) -> None:
    assert asked(headers=[("host", host)])[0] == 200


@pytest.mark.parametrize(
    "hosts",
    [["evil.example"], ["evil.example:8765"], ["127.0.0.1:8765.evil.example"], [], ["evil", HOST], [""]],
)
def test_a_name_that_was_pointed_here_is_turned_away(hosts: list[str]) -> None:
    status, headers, _ = asked(headers=[("host", host) for host in hosts])
    assert status == 400
    assert headers["content-security-policy"] == RESPONSE_HEADERS["content-security-policy"]


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8765", None]
)
def test_other_origins_change_nothing(origin: str | None) -> None:
    headers = [("host", HOST), ("content-type", JSON), *([] if origin is None else [("origin", origin)])]
    assert asked("POST", headers=headers)[0] == 403
    assert asked("GET", headers=headers)[0] == 200  # which brings no answer that they could read


def test_two_origins_are_none() -> None:
    assert posted(("origin", "http://evil.example")) == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_foreign_form_can_send_is_not_taken(kind: str) -> None:
    assert asked("POST", headers=[("host", HOST), ("origin", ORIGIN), ("content-type", kind)])[0] == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods(method: str) -> None:
    assert asked(method, headers=[("host", HOST), ("origin", ORIGIN), ("content-type", JSON)])[0] == 405


def test_a_body_comes_through_whole() -> None:
    headers = [("host", HOST), ("origin", ORIGIN), ("content-type", f"{JSON}; charset=utf-8")]
    assert asked("POST", headers=headers, parts=[b"one ", b"two"])[2] == b"one two"


def test_an_oversized_body() -> None:
    assert posted(("content-length", str(MAX_BODY_BYTES + 1))) == 413  # before anything is read
    assert posted(("content-length", "much")) == 413
    assert posted(parts=[b"x" * 1000] * (MAX_BODY_BYTES // 1000 + 1)) == 413  # whatever it has declared
    assert posted(parts=[b"x" * MAX_BODY_BYTES]) == 200
    assert posted(parts=[b"x" * (MAX_BODY_BYTES + 1)], path="/api/import") == 200
    assert posted(("content-length", str(MAX_IMPORT_BYTES + 1)), path="/api/import") == 413


def test_a_slow_body() -> None:
    assert posted(parts=[b"a", "never"], seconds=0.05) == 408


def test_there_are_no_websockets() -> None:
    assert asked(kind="websocket", headers=[("host", HOST)])[0] == 1008


def test_every_answer_wears_the_headers() -> None:
    _, headers, _ = asked(headers=[("host", HOST)])
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert part in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["x-own"] == "1"


def test_a_public_address() -> None:
    found = public_address("https://Labels.example.org:443/")
    assert (found.hosts, found.secure) == (["labels.example.org"], True)
    assert asked(headers=[("host", "labels.example.org")], address=found)[0] == 200
    assert asked(headers=[("host", HOST)], address=found)[0] == 400
    for wrong in ("labels.example.org", "ftp://x", "https://x/path", "https://user@x", "https://x?y"):
        with pytest.raises(SettingError, match="--public-url"):
            public_address(wrong)
