"""How long an answer takes while many people answer and a model is trained at low priority.

    python benchmarks/annotate.py --people 50 --seconds 60 --ledger labels.db

Each simulated annotator leases a screen of questions, and thinks between two answers for a time that is drawn (its mean
is `--pace`, 1.5 seconds: people who are quick with the keyboard). What is printed: how many answers there were, and how
long they took, in milliseconds; the same of screens of questions; and, since all of it depends on who else uses the
machine, its load and how long a single forced write takes meanwhile. Beside them a process trains again and again. The
server is a process of its own, as it is for people.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import socket
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import numpy as np
import uvicorn

from partly import Classifier
from partly.annotate import records
from partly.annotate.app import make_app
from partly.annotate.chosen import Wanted
from partly.annotate.desk import Desk
from partly.annotate.doors import here
from partly.annotate.people import People, page_token
from partly.annotate.seen import Seen
from partly.annotate.site import Site, cookie_of
from partly.items import features
from partly.labels import Labels
from partly.ledger import Ledger

ITEMS, LABELS = 2000, 20
ARRIVING = 10.0  # seconds in which people come one by one; what is asked meanwhile does not count


def made(url: str, port: int) -> Site:
    names = [f"label {j}" for j in range(LABELS)]
    rng = np.random.default_rng(0)
    z = rng.choice(np.array([-1, 0, 1], np.int8), (ITEMS, LABELS), p=[0.08, 0.9, 0.02])
    labels = Labels.from_ternary(z, names=names, ids=[f"item {i}" for i in range(ITEMS)])
    ledger = Ledger.create(url, names, author="benchmark")
    ledger.append_labels(labels, author="benchmark")
    records.prepare(ledger.store)
    desk = Desk(ledger, labels)
    rows, columns = np.nonzero(z == 0)
    picked = rng.permutation(len(rows))[:5000]
    found = {"answers": 0, "known": 0, "seconds": 0.0, "query": "random", "found": "{}"}
    desk.pose(found, [Wanted(int(rows[k]), int(columns[k]), False, 0.5, 0.5) for k in picked])
    items = features(rng.normal(size=(ITEMS, 64)).astype(np.float32))
    return Site("benchmark", desk, People(ledger.store), Seen(items), here(port), port=port)


def serve(site: Site, listening: socket.socket) -> None:
    uvicorn.Server(uvicorn.Config(make_app(site), log_level="error", lifespan="off", ws="none")).run(
        sockets=[listening]
    )


def train(site: Site) -> None:
    os.nice(10)
    while True:
        Classifier("bce", progress=False).fit(site.seen.items, site.desk.given)


def forced(folder: str) -> dict[str, float]:
    """Milliseconds of what nobody can do without, a write that is forced to the disk."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(100):
            started = time.perf_counter()
            file.write(b"0" * 4096)
            file.flush()
            os.fsync(file.fileno())
            times.append(1000 * (time.perf_counter() - started))
            time.sleep(0.05)
    return {f"p{q}": round(float(np.percentile(times, q)), 1) for q in (50, 95)}


async def annotator(site: Site, session: str, until: float, pace: float, times: dict[str, list[float]]) -> None:
    origin = f"http://127.0.0.1:{site.port}"
    headers = {"origin": origin, "x-partly-page": page_token(session), "cookie": f"{cookie_of(site)}={session}"}
    opened = time.perf_counter()
    async with httpx.AsyncClient(base_url=origin, headers=headers, timeout=60) as client:

        async def call(path: str, given: Any) -> Any:
            started = time.perf_counter()
            answer = await client.post(path, json=given)
            if started - opened > ARRIVING:
                times[path].append(1000 * (time.perf_counter() - started))
            answer.raise_for_status()
            return answer.json()

        await asyncio.sleep(random.random() * ARRIVING)
        while time.monotonic() < until:
            for question in (await call("/api/questions", {"view": "label", "count": 12}))["questions"]:
                await asyncio.sleep(random.expovariate(1 / pace))
                if time.monotonic() > until:
                    return
                said = {"question": question["id"], "value": random.choice(("yes", "no")), "seconds": pace}
                await call("/api/answer", said | {"view": "label"})


async def answered(site: Site, sessions: list[str], seconds: float, pace: float) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"/api/answer": [], "/api/questions": []}
    until = time.monotonic() + seconds
    await asyncio.gather(*(annotator(site, session, until, pace, times) for session in sessions))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--pace", type=float, default=1.5, help="Seconds between two answers of one person, on average."
    )
    parser.add_argument("--ledger", help="Where; a file that goes afterwards, if not given.")
    parser.add_argument("--no-training", action="store_true")
    asked = parser.parse_args()
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0), backlog=200) as listening:
        site = made(asked.ledger or str(Path(folder) / "labels.db"), listening.getsockname()[1])
        people = [site.people.local(f"person {i}") for i in range(asked.people)]
        sessions = [site.people.start(site.people.invite("admin", one)) for one in people]
        jobs = [fork.Process(target=serve, args=(site, listening), daemon=True)]
        jobs += [] if asked.no_training else [fork.Process(target=train, args=(site,), daemon=True)]
        for job in jobs:
            job.start()
        with ThreadPoolExecutor(1) as beside:
            writes = beside.submit(forced, folder)
            times = asyncio.run(answered(site, sessions, asked.seconds, asked.pace))
        for job in jobs:
            job.kill()
        statements = sum(batch.count for batch in site.desk.ledger.log() if batch.kind == "person")
    told = {
        path: {"count": len(found)} | {f"p{q}": round(float(np.percentile(found, q)), 1) for q in (50, 95, 99)}
        for path, found in times.items()
        if found
    }
    found = {"people": asked.people, "pace": asked.pace, "load": os.getloadavg()[0], "forced write": writes.result()}
    print(json.dumps(found | {"statements": statements, **told}, indent=1))


if __name__ == "__main__":
    main()
