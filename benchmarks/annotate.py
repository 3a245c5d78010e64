"""How long an answer takes while many people answer and models are trained at low priority.

    python benchmarks/annotate.py --people 50 --seconds 60 [--ledger labels.db]

The pages are served as `partly annotate` serves them, in a process of their own, with their own trainer beside them:
after every 200 answers it trains on 2,000 items x 20 labels and poses 1,000 questions, so that it is hardly ever idle.
Each simulated annotator leases a screen of 12 questions, and thinks between two answers for a time that is drawn (its
mean is `--pace`, 3 seconds; who is quick with the keyboard takes 1.5). What they need of the processor is among what
is measured. Printed: how many answers there were, and how long they took, in milliseconds; the same of screens of
questions; what the server needed of the processor for an answer; how many rounds were trained meanwhile; and, since all
of it depends on who else uses the machine, its load and how long a single forced write takes.
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

from partly import data
from partly.annotate.accounts import csrf_token
from partly.annotate.app_context import AppContext
from partly.annotate.project import ProjectConfig, open_project
from partly.annotate.server import ServerConfig, make_context, serve
from partly.annotate.stats import read_snapshot
from partly.annotate.trainer import Trainer
from partly.labels import Labels

ITEMS, LABELS, WIDTH = 2000, 20, 64
ARRIVING = 10.0  # seconds in which people come one by one; what is asked meanwhile does not count


def made(folder: Path, ledger: str) -> ProjectConfig:
    """Features, and labels that follow from them; a tenth is known."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ITEMS, WIDTH)).astype(np.float32)
    yes = x @ rng.normal(size=(WIDTH, LABELS)) > WIDTH**0.5
    z = np.where(rng.random(yes.shape) < 0.1, np.where(yes, 1, -1), 0).astype(np.int8)
    ids, names = [f"item {i}" for i in range(ITEMS)], [f"label {j}" for j in range(LABELS)]
    np.savez(folder / "features.npz", features=x, ids=ids)
    data.write_labels(Labels.from_ternary(z, names=names, ids=ids), folder / "labels.csv")
    return ProjectConfig(
        str(folder / "features.npz"), ledger, str(folder / "labels.csv"), method="bce", count=1000, every=200
    )


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


async def annotator(
    context: AppContext, session: str, until: float, pace: float, times: dict[str, list[float]]
) -> None:
    origin = f"http://127.0.0.1:{context.port}"
    headers = {"origin": origin, "x-partly-page": csrf_token(session), "cookie": f"{context.cookie_name}={session}"}
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


async def answered(context: AppContext, sessions: list[str], seconds: float, pace: float) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"/api/answer": [], "/api/questions": []}
    until = time.monotonic() + seconds
    await asyncio.gather(*(annotator(context, session, until, pace, times) for session in sessions))
    return times


def used(process: int) -> float:
    """Seconds of the processor that a process has had, by Linux."""
    parts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--pace", type=float, default=3.0, help="Seconds between two answers of one person, on average."
    )
    parser.add_argument("--ledger", help="Where; a file that goes afterwards, if not given.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plan = made(Path(folder), asked.ledger or str(Path(folder) / "labels.db"))
        with socket.create_server(("127.0.0.1", 0)) as free:
            served = ServerConfig(port=free.getsockname()[1])
        context = make_context(plan, served)
        people = [context.accounts.local_admin(f"person {i}") for i in range(asked.people)]
        sessions = [context.accounts.sign_in_by_link(context.accounts.create_start_token(one)) for one in people]
        # Its output is let go, since it is the address that lets in; the trainer ends when its input does.
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(plan, served, str))
        Trainer(plan, *open_project(plan)).begin()  # so that nobody waits for the trainer to be there
        server.start()
        while not _answers(served.port):
            time.sleep(0.2)
        try:
            assert server.pid is not None
            rounds, before = len(read_snapshot(context.queue).rounds), used(server.pid)
            with ThreadPoolExecutor(1) as beside:
                writes = beside.submit(forced, folder)
                times = asyncio.run(answered(context, sessions, asked.seconds, asked.pace))
            needed = used(server.pid) - before
        finally:
            server.kill()
            server.join()
        answers, rounds = len(read_snapshot(context.queue).answers), len(read_snapshot(context.queue).rounds) - rounds
    told = {
        path: {"count": len(found)} | {f"p{q}": round(float(np.percentile(found, q)), 1) for q in (50, 95, 99)}
        for path, found in times.items()
        if found
    }
    found = {"people": asked.people, "pace": asked.pace, "load": os.getloadavg()[0], "forced write": writes.result()}
    found |= {"answers": answers, "rounds": rounds, "processor, ms an answer": round(1000 * needed / answers, 1)}
    print(json.dumps(found | told, indent=1))


if __name__ == "__main__":
    main()
