"""Kills the pages (SIGKILL) while somebody answers, at random moments, and looks at what the ledger holds afterwards.

    python tests/annotate/killing.py --answers 200 --seed 3

One process forks the others, so that nothing is imported twice: a server that is killed again and again, and somebody
who answers, sends again what was not acknowledged, and writes down what was.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import uvicorn
from starlette.types import ASGIApp

from annotate.making import Project, pose, project
from partly.annotate.accounts import csrf_token
from partly.annotate.app import make_app
from partly.annotate.app_context import AppContext
from partly.annotate.security_middleware import local_address

VALUES = ("yes", "no", "cannot tell")


def forked(job: Any, *given: Any) -> int:
    number = os.fork()
    if not number:
        code = 1
        try:
            job(*given)
            code = 0
        finally:
            os._exit(code)
    return number


def serve(app: ASGIApp, listening: socket.socket) -> None:
    uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none")).run(sockets=[listening])


def answer(context: AppContext, session: str, path: Path, seed: int) -> None:
    """Everything that is asked, until nothing is; what was acknowledged goes to a file."""
    chance = random.Random(seed)
    with path.open("w") as acknowledged:
        while held := _called(context, session, "/api/questions", {"view": "label", "count": 5})["questions"]:
            for question in held:
                value = chance.choice(VALUES)
                said = {"question": question["id"], "value": value, "seconds": 1.0, "view": "label"}
                _called(context, session, "/api/answer", said)
                print(json.dumps([question["name"], question["label"], value]), file=acknowledged, flush=True)


def _called(context: AppContext, session: str, path: str, given: Any) -> Any:
    """Again and again, until there is an answer."""
    origin = next(iter(sorted(context.address.origins)))
    headers = {"origin": origin, "content-type": "application/json", "cookie": f"{context.cookie_name}={session}"}
    headers |= {"host": origin.removeprefix("http://"), "x-partly-page": csrf_token(session)}
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", context.port, timeout=30)
        try:
            connection.request("POST", path, json.dumps(given), headers)
            found = connection.getresponse()
            told = json.loads(found.read())
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.01)
            continue
        finally:
            connection.close()
        if found.status != 200:
            raise SystemExit(f"{path}: {found.status} {told}")
        return told


def run(answers: int, seed: int, folder: Path) -> dict[str, int]:
    chance = random.Random(seed)
    made = project(folder, count=answers)
    pose(made, [(i, i % 4) for i in range(answers)])
    made.time.__class__.__call__ = lambda self: time.time()  # type: ignore[method-assign]
    listening = socket.create_server(("127.0.0.1", 0))
    context = made.context()
    context.port = listening.getsockname()[1]
    context.address = local_address(context.port)
    session = made.people.sign_in_by_link(made.people.create_start_token(made.person().id))
    app, acknowledged = make_app(context), folder / "acknowledged"
    acknowledged.touch()
    somebody, kills, over = forked(answer, context, session, acknowledged, seed), 0, False
    while not over:
        server, enough = forked(serve, app, listening), _lines(acknowledged) + chance.randint(1, 9)
        while _lines(acknowledged) < enough and not over:
            over = os.waitpid(somebody, os.WNOHANG) != (0, 0)
            time.sleep(0.002)
        time.sleep(0 if over else chance.uniform(0, 0.03))  # in the middle of the next one, wherever that is
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
        kills += not over
    return {"answers": answers, "kills": kills} | looked(made, acknowledged)


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def looked(made: Project, path: Path) -> dict[str, int]:
    """Of what was acknowledged: what the ledger does not hold, or holds twice; and what it holds align."""
    said = [tuple(json.loads(line)) for line in path.read_text().splitlines()]
    there = [
        (one.item, one.label, one.value)
        for item in made.ledger.labels().ids
        for one in made.ledger.show(item)
        if one.counts and one.batch.kind == "person" and one.batch.note == "annotate"
    ]
    return {
        "acknowledged": len(said),
        "statements": len(there),
        "lost": len(set(said) - set(there)),
        "twice": len(there) - len(set(there)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(asked.answers, asked.seed, Path(folder))))


if __name__ == "__main__":
    main()
