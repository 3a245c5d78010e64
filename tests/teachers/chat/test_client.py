"""The client against a stub server: caching, failures, limits, kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from partly.errors import DataError
from partly.teachers.chat import client as client_module
from partly.teachers.chat.client import Client
from partly.teachers.chat.endpoint import KEY_VARIABLE, parse_url
from partly.teachers.chat.limits import Caps, Meter, most_tokens
from partly.teachers.chat.replies import Replies
from partly.teachers.chat.request import Content, Style, answer_body, identify
from partly.teachers.chat.send import parse_retry_after, send
from tests.teachers.chat.stub import TOKENS, Stub, serve


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.001)


def bodies(count: int) -> list[bytes]:
    return [answer_body(Style("m"), Content(f"item {k} secret-text"), "cat") for k in range(count)]


def client_of(stub: Stub, folder: Path, caps: Caps | None = None, **settings: Any) -> Client:
    settings = {"timeout": 5.0} | settings
    return Client(parse_url(stub.url), Replies(folder / "replies.sqlite"), Meter(caps or Caps()), **settings)


def test_a_request_is_sent_once(tmp_path: Path) -> None:
    with serve() as stub:
        client = client_of(stub, tmp_path)
        first = client.ask(bodies(6) + bodies(3))
        assert all(reply is not None and reply.text == "no" for reply in first)
        assert len(stub.bodies) == 6
        again = client_of(stub, tmp_path)
        assert again.ask(bodies(6)) == first[:6]
        assert len(stub.bodies) == 6
        assert (again.counts.cached, again.meter.calls) == (6, 0)
        assert {headers["Idempotency-Key"] for headers in stub.headers} == {identify(body) for body in bodies(6)}
        assert {headers["path"] for headers in stub.headers} == {"/v1/chat/completions"}


@pytest.mark.parametrize("fault", ["429", "500", "503", "drop", "half"])
def test_failures_are_tried_again(fault: str, tmp_path: Path) -> None:
    with serve(Stub(plan=[fault, fault])) as stub:
        client = client_of(stub, tmp_path, concurrency=1)
        (reply,) = client.ask(bodies(1))
        assert reply is not None
        assert (len(stub.bodies), client.counts.retried, client.counts.failed) == (3, 2, 0)


def test_retry_after_is_honored(tmp_path: Path) -> None:
    with serve(Stub(plan=["429:0.4"])) as stub:
        begun = time.monotonic()
        assert client_of(stub, tmp_path).ask(bodies(1)) != [None]
        assert time.monotonic() - begun >= 0.4


def test_retry_after_is_a_number_or_a_date_and_bounded() -> None:
    assert parse_retry_after("3") == 3
    assert parse_retry_after("1e9") == 300
    assert parse_retry_after("-5") == 0
    assert parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert parse_retry_after("Wed, 21 Oct 2099 07:28:00 GMT") == 300
    assert parse_retry_after("soon") is parse_retry_after(None) is parse_retry_after("nan") is None


def test_a_body_that_trickles_ends_at_the_timeout(tmp_path: Path) -> None:
    with serve(Stub(plan=["slow"])) as stub:
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            send(parse_url(stub.url), bodies(1)[0], "key", 0.5)
        assert time.monotonic() - begun < 2


@pytest.mark.parametrize("fault", ["garbage", "huge"])
def test_malformed_replies_are_kept_and_counted(fault: str, tmp_path: Path) -> None:
    with serve(Stub(plan=[fault])) as stub:
        client = client_of(stub, tmp_path)
        assert client.ask(bodies(1)) == [None]
        assert client.counts.malformed == 1
        assert client.ask(bodies(1)) == [None]
        assert len(stub.bodies) == 1


def test_a_refused_request_is_kept_and_others_go_on(tmp_path: Path) -> None:
    with serve(Stub(plan=["answer", "413"])) as stub:
        client = client_of(stub, tmp_path, concurrency=1)
        replies = client.ask(bodies(3))
        assert [reply is None for reply in replies] == [False, True, False]
        assert client.counts.refused == 1
        assert client.meter.calls == 2  # a refusal costs nothing


@pytest.mark.parametrize("status", ["401", "403", "404", "redirect"])
def test_refusals_of_everything_end_the_run_without_quoting(
    status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "the-key")
    with serve(Stub(plan=[status] * 50)) as stub:
        client = client_of(stub, tmp_path)
        with pytest.raises(DataError, match=r"refused requests with status \d+") as caught:
            client.ask(bodies(20))
        assert "secret-text" not in str(caught.value)
        assert "the-key" not in str(caught.value)
        assert len(stub.bodies) <= 4
        assert stub.headers[0]["Authorization"] == "Bearer the-key"
    assert b"the-key" not in (tmp_path / "replies.sqlite").read_bytes()
    assert b"secret-text" not in (tmp_path / "replies.sqlite").read_bytes()


def test_bad_requests_only_end_the_run(tmp_path: Path) -> None:
    with serve(Stub(plan=["400"] * 50)) as stub, pytest.raises(DataError, match=r"status 400 \(some_code\)"):
        client_of(stub, tmp_path).ask(bodies(20))


def test_an_endpoint_that_is_gone_ends_the_run(tmp_path: Path) -> None:
    with serve() as stub:
        client = client_of(stub, tmp_path, retries=1)
    with pytest.raises(DataError, match="no reply to 10 requests in a row"):
        client.ask(bodies(30))
    assert client.meter.calls == 0  # nothing was sent


def test_concurrency_is_limited(tmp_path: Path) -> None:
    with serve(Stub(delay=0.05)) as stub:
        client_of(stub, tmp_path, concurrency=3).ask(bodies(12))
        assert stub.most_under_way == 3


# ---------------------------------------------------------------- caps


@pytest.mark.parametrize("concurrency", [1, 8])
def test_the_cap_on_calls_is_exact(concurrency: int, tmp_path: Path) -> None:
    with serve() as stub:
        client = client_of(stub, tmp_path, Caps(calls=7), concurrency=concurrency)
        replies = client.ask(bodies(20))
        assert len(stub.bodies) == 7 == sum(reply is not None for reply in replies)
        assert client.meter.reached == "calls"
        assert client.ask(bodies(25)[20:]) == [None] * 5
        later = client_of(stub, tmp_path, Caps(calls=100))
        assert None not in later.ask(bodies(20))
        assert len(stub.bodies) == 20


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("kind", ["tokens", "money"])
def test_caps_on_tokens_and_money_are_never_exceeded(kind: str, concurrency: int, tmp_path: Path) -> None:
    most = sum(most_tokens(bodies(1)[0]))
    with serve() as stub:
        prices = {"input_price": 1e6, "output_price": 1e6}  # a token costs 1
        cap = most + 5 * sum(TOKENS)
        client = client_of(stub, tmp_path, Caps(**{kind: cap}, **prices), concurrency=concurrency)
        client.ask(bodies(200))
        spent = client.meter.tokens if kind == "tokens" else client.meter.money
        assert spent == len(stub.bodies) * sum(TOKENS) <= cap
        assert client.meter.reached == kind
        assert concurrency > 1 or len(stub.bodies) == 6  # the sixth could have been the most


def test_the_cap_on_minutes_ends_the_run(tmp_path: Path) -> None:
    with serve(Stub(delay=0.05)) as stub:
        client = client_of(stub, tmp_path, Caps(minutes=0.3 / 60), concurrency=1)
        replies = client.ask(bodies(200))
        assert 0 < len(stub.bodies) < 20
        assert client.meter.reached == "minutes"
        assert sum(reply is not None for reply in replies) == len(stub.bodies)


def test_without_counts_a_reply_is_taken_for_the_most_it_can_be(tmp_path: Path) -> None:
    with serve(Stub(usage=False)) as stub:
        client = client_of(stub, tmp_path)
        client.ask(bodies(1))
        assert client.meter.tokens == sum(most_tokens(bodies(1)[0]))
        assert client.meter.estimated == 1


# ---------------------------------------------------------------- kills

SCRIPT = """
import sys
from tests.teachers.chat.test_client import bodies
from pathlib import Path
from partly.teachers.chat.client import Client
from partly.teachers.chat.endpoint import parse_url
from partly.teachers.chat.limits import Meter
from partly.teachers.chat.replies import Replies
client = Client(parse_url(sys.argv[1]), Replies(Path(sys.argv[2])), Meter(), concurrency=2, timeout=20.0)
replies = client.ask(bodies(12))
print(sum(reply is not None for reply in replies), client.counts.repeated)
"""


def test_a_kill_between_send_and_store_loses_nothing(tmp_path: Path) -> None:
    """The server kills its client in the middle of a request, five times. What was stored is never asked again."""
    running: list[subprocess.Popen[str]] = []
    kills = {3, 5, 8, 10, 13}
    stored_before: list[int] = []

    def kill(number: int) -> None:
        if number in kills:
            os.kill(running[-1].pid, signal.SIGKILL)

    with serve(Stub(on_request=kill, delay=0.02)) as stub:
        for _ in range(20):
            command = [sys.executable, "-c", SCRIPT, stub.url, str(tmp_path / "replies.sqlite")]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3], env=os.environ.copy()
            ) as process:
                running.append(process)
                output = process.communicate(timeout=60)[0]
            found = Replies(tmp_path / "replies.sqlite").find([identify(body) for body in bodies(12)])
            stored_before.append(len(found))
            if process.returncode == 0:
                break
        assert len(running) == len(kills) + 1
        assert output.split()[0] == "12"
        assert stored_before[-1] == 12
        keys = [headers["Idempotency-Key"] for headers in stub.headers]
        assert set(keys) == {identify(body) for body in bodies(12)}
        # At most the two requests under way were sent again, each with its first key, so that they can be charged once.
        assert len(keys) <= 12 + 2 * len(kills)


def test_ctrl_c_keeps_the_replies_under_way(tmp_path: Path) -> None:
    running: list[subprocess.Popen[str]] = []

    def interrupt(number: int) -> None:
        if number == 5:
            os.kill(running[0].pid, signal.SIGINT)

    with serve(Stub(on_request=interrupt, delay=0.3)) as stub:
        command = [sys.executable, "-c", SCRIPT, stub.url, str(tmp_path / "replies.sqlite")]
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3], env=os.environ.copy()
        ) as process:
            running.append(process)
            errors = process.communicate(timeout=60)[1]
        assert process.returncode != 0
        assert "KeyboardInterrupt" in errors
        found = Replies(tmp_path / "replies.sqlite").find([identify(body) for body in bodies(12)])
        assert len(found) == len(stub.bodies) == sum(stub.answered.values()) < 12


def test_what_is_stored_before_a_kill_is_not_sent_again(tmp_path: Path) -> None:
    with serve() as stub:
        client_of(stub, tmp_path).ask(bodies(5))
        client = client_of(stub, tmp_path)
        client.replies.note_sent([identify(bodies(6)[5])])  # as a kill between send and store leaves it
        client.ask(bodies(6))
        assert client.counts.repeated == 1
        assert max(stub.answered.values()) == 1


def test_a_damaged_cache_and_a_link_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(DataError, match=r"bad\.sqlite"):
        Replies(tmp_path / "bad.sqlite")
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="symbolic link"):
        Replies(tmp_path / "link.sqlite")
    Replies(tmp_path / "good.sqlite")
    assert (tmp_path / "good.sqlite").stat().st_mode & 0o777 == 0o600


def test_replies_are_json_of_the_endpoint(tmp_path: Path) -> None:
    replies = Replies(tmp_path / "replies.sqlite")
    replies.keep("a", 200, "first")
    replies.keep("a", 200, json.dumps("second"))
    assert replies.find(["a", "b"])["a"].body == "first"
