"""What anybody can send costs little, and holds up nobody who is signed in."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from annotate.making import ORIGIN, PORT, Browser, browser, pose, project
from annotate.test_app import SAID, concrete, routes
from partly.annotate import passwords
from partly.annotate.app import make_app
from partly.annotate.app_context import AppContext
from partly.annotate.errors import ApiError
from partly.annotate.limits import WorkerPool
from partly.errors import DataError


def answered_without_body(context: AppContext, path: str, cookie: str = "") -> tuple[int, dict[str, str]]:
    """Status and headers of the answer to a POST of which only the headers were sent."""
    sent: list[Any] = []

    async def receive() -> Any:
        pytest.fail(f"the body of {path} is read")

    async def send(message: Any) -> None:
        sent.append(message)

    headers = {"host": f"127.0.0.1:{PORT}", "origin": ORIGIN, "content-type": "application/json", "cookie": cookie}
    headers |= {"content-length": "60000", "x-partly-page": "guess"}
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": [(key.encode(), value.encode()) for key, value in headers.items()], "root_path": ""}
    scope |= {"scheme": "http", "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 5), "http_version": "1.1"}
    asyncio.run(make_app(context)(scope, receive, send))
    return sent[0]["status"], {key.decode(): value.decode() for key, value in sent[0]["headers"]}


def test_nothing_of_a_body_is_read_without_a_session_and_a_role(tmp_path: Path) -> None:
    """By any route but those of the door. The connection is closed, so that the rest does not come."""
    made = project(tmp_path)
    context = made.context(has_accounts=True)
    annotator = made.people.join(made.people.invite("annotator"), "Bela", "a long password")
    taking = [path for method, path in routes(context) if method == "POST"]
    doors = {"/api/log-in", "/api/join", "/api/renew"}
    assert {"/api/import", "/api/answer", "/api/block"} <= set(taking) - doors
    for path in set(taking) - doors:
        for cookie, status in (("", 401), ("guess", 401), (annotator, 403)):  # without the token of a page
            told, headers = answered_without_body(context, concrete(path), f"{context.cookie_name}={cookie}")
            assert (path, told, headers.get("connection")) == (path, status, "close")


def test_hashing_passwords_holds_up_nobody_who_is_signed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = project(tmp_path)
    pose(made, [(0, 1)])
    busy, go_on = threading.Barrier(3), threading.Event()

    def slow(password: str, secret: str) -> bool:
        busy.wait(30)
        return not go_on.wait(30)

    monkeypatch.setattr(passwords, "verify_password", slow)
    context = made.context(has_accounts=True)
    one = browser(made)
    one.app.app.app.state.context = context  # type: ignore[attr-defined]
    guesser = Browser(context)
    assert guesser.call("/api/log-in", {}).status_code == 422  # FastAPI builds a route on its first request
    guesses = [
        threading.Thread(target=guesser.call, args=("/api/log-in", {"name": f"n{i}", "password": "guess"}))
        for i in range(60)
    ]
    for thread in guesses:
        thread.start()
    busy.wait(30)  # both threads of the pool are at it
    monkeypatch.setattr(passwords, "verify_password", lambda *_: False)
    assert one.call("/api/questions", {"view": "label", "count": 1}).status_code == 200
    assert one.get("/static/page.js").status_code == 200
    go_on.set()
    for thread in guesses:
        thread.join(30)


def test_a_pool_has_an_end() -> None:
    """Who comes when all places are taken is told to come again; so is whose job takes too long."""
    go_on = threading.Event()

    async def asked() -> list[Any]:
        pool = WorkerPool("test", threads=1, max_waiting=1, seconds=0.2)
        found = await asyncio.gather(*(pool.run(go_on.wait, 30) for _ in range(4)), return_exceptions=True)
        go_on.set()
        return found

    found = asyncio.run(asked())
    assert [(type(one), one.status) for one in found] == [(ApiError, 503)] * 4


def test_static_files_need_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process holds the database, made-up cookies wait for it; files, and pages of the door, do not."""
    made = project(tmp_path)
    context = made.context(has_accounts=True)
    context.sessions = WorkerPool("test", threads=2, max_waiting=100, seconds=2)
    held, go_on = threading.Event(), threading.Event()

    def locked(token: str) -> None:
        held.set()
        go_on.wait(30)

    browsers = [Browser(context, f"made up {i}") for i in range(50)]
    for one in browsers:
        assert one.get("/label").status_code == 303  # FastAPI builds a route on its first request
    monkeypatch.setattr(made.people, "find_session", locked)
    found: list[int] = []
    waiting = [threading.Thread(target=lambda b=b: found.append(b.get("/label").status_code)) for b in browsers]
    for thread in waiting:
        thread.start()
    assert held.wait(30)
    nobody = Browser(context, "made up")
    for path in ("/static/page.js", "/static/page.css", "/log-in", "/join?token=x", "/renew?token=x"):
        assert nobody.get(path).status_code == 200
    for thread in waiting:
        thread.join(60)
    assert found == [503] * 50  # to be tried again
    go_on.set()


def test_a_fault_of_the_server_is_503_and_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the page keeps the answer and sends it again; files, hosts and users are for the console."""
    made = project(tmp_path)
    pose(made, [(0, 1)])
    one = browser(made)
    number = one.call("/api/questions", {"view": "label", "count": 1}).json()["questions"][0]["id"]

    def locked(*_: object, **__: object) -> int:
        raise DataError("/home/anna/labels.db: postgresql://anna@db: others have been writing for 120 s")

    with monkeypatch.context() as broken:
        broken.setattr("partly.ledger.Ledger.append", locked)
        broken.setattr("partly.ledger.Ledger.labels", locked)
        answers = [one.call("/api/answer", SAID | {"question": number}), one.get("/overview")]
    for answer in answers:
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "anna@" not in answer.text
        assert "labels.db" not in answer.text
    assert one.call("/api/answer", SAID | {"question": number}).status_code == 200
    assert made.known() == {("item 0", "cat"): 1}
