"""A stub of an OpenAI-compatible endpoint. It reads items as texts that name their labels, and can misbehave."""

from __future__ import annotations

import json
import math
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, str], tuple[str, float]]  # (item, label) -> word and probability of yes
TOKENS = 10, 2  # of every reply


def named_in_text(item: str, label: str) -> tuple[str, float]:
    """Say yes to labels that the item names, and unsure to items that say so."""
    if "unclear" in item:
        return "unsure", 0.5
    return ("yes", 0.9) if label in item else ("no", 0.1)


@dataclass
class Stub:
    """What the server does, and what it saw. `plan`: what to do with the first requests, one word each."""

    answer: Answer = named_in_text
    logprobs: bool = True
    usage: bool = True
    plan: list[str] = field(default_factory=list)
    on_request: Callable[[int], None] | None = None
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)  # by idempotency key
    url: str = ""
    port: int = 0
    delay: float = 0.0
    under_way: int = 0
    most_under_way: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def reply_to(stub: Stub, body: dict[str, Any]) -> dict[str, Any]:
    """Return the chat completion for a request."""
    user = body["messages"][-1]["content"]
    if isinstance(user, list):
        user = "".join(part.get("text", "[picture]") for part in user)
    item = (re.search(r"<item>\n?(.*?)\n?</item>", user, re.DOTALL) or ["", ""])[1]
    label = re.search(r"^Label: (.+?)(?:: .*)?$", user, re.MULTILINE)
    top: list[tuple[str, float]] = []
    if label:
        text, yes = stub.answer(item, label[1])
        top = [(" Yes", yes * 0.98), ("no", (1 - yes) * 0.98)] if text != "unsure" else [("uns", 0.9), ("yes", 0.05)]
        if text in ("yes", "no"):
            top.sort(key=lambda pair: pair[0].strip().lower() != text)
    elif "numbers" in user:
        numbers = re.findall(r"^(\d+)\. (.*)$", user, re.MULTILINE)
        named = [number for number, name in numbers if stub.answer(item, name)[0] == "yes"]
        text = ", ".join(named) or "none"
    else:
        text, top = "yes", [("yes", 0.99)]
    choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    if stub.logprobs and body.get("logprobs") and top:
        pairs = [{"token": token, "logprob": math.log(p)} for token, p in top if p > 0]
        choice["logprobs"] = {"content": [pairs[0] | {"top_logprobs": pairs}]}
    usage = dict(zip(("prompt_tokens", "completion_tokens"), TOKENS, strict=True))
    return {"model": f"{body['model']}-v1", "choices": [choice]} | ({"usage": usage} if stub.usage else {})


class Handler(BaseHTTPRequestHandler):
    """Serves the stub of the server."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        stub: Stub = self.server.stub  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with stub.lock:
            stub.bodies.append(body)
            stub.headers.append({**self.headers, "path": self.path})
            number = len(stub.bodies)
            doing = stub.plan.pop(0) if stub.plan else "answer"
            stub.under_way += 1
            stub.most_under_way = max(stub.most_under_way, stub.under_way)
        try:
            if stub.on_request is not None:
                stub.on_request(number)
            time.sleep(stub.delay)
            with suppress(OSError):
                self.act(stub, doing, body)
        finally:
            with stub.lock:
                stub.under_way -= 1

    def act(self, stub: Stub, doing: str, body: dict[str, Any]) -> None:
        if doing.isdigit() or doing.startswith("429:"):
            status, _, wait = doing.partition(":")
            error = {"code": "some_code", "message": f"cannot answer {body['messages'][-1]['content']!r}"}
            self.reply(json.dumps({"error": error}).encode(), int(status), {"Retry-After": wait} if wait else {})
        elif doing == "drop":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif doing == "half":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.close_connection = True
        elif doing == "slow":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.1)
            self.close_connection = True
        elif doing == "redirect":
            self.reply(b"", 302, {"Location": "http://127.0.0.1:1/"})
        elif doing == "huge":
            self.reply(b" " * (3 << 20))
        elif doing == "garbage":
            self.reply(b"<html>not JSON")
        elif doing.startswith("say "):
            content = {"choices": [{"message": {"content": doing[4:]}}]}
            self.reply(json.dumps(content).encode())
        else:
            with stub.lock:
                stub.answered[self.headers["Idempotency-Key"]] += 1
            self.reply(json.dumps(reply_to(stub, body)).encode())

    def reply(self, content: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class Server(ThreadingHTTPServer):
    """Threads end with the test; clients that go away are expected."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@contextmanager
def serve(stub: Stub | None = None) -> Iterator[Stub]:
    """Serve on a free port of loopback."""
    stub = stub or Stub()
    server = Server(("127.0.0.1", 0), Handler)
    server.stub = stub  # type: ignore[attr-defined]
    stub.port = server.server_port
    stub.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
