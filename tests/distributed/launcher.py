"""A launcher of processes for tests, as a program: it imports torch once, and forks for each run.

A line of JSON on its input is a launch: how many processes, and the jobs that each of them does one after the other. A
line on its output says how each process ended, and what it has to say of each job.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

PATIENCE = 300.0  # seconds after which a launch hangs


def launch(count: int, jobs: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Of each process: its exit code (None: it hung) and what it said."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [_forked(rank, count, port, jobs, folder) for rank in range(count)]
    until, codes = time.monotonic() + PATIENCE, {}
    while len(codes) < count and time.monotonic() < until:
        for rank in [rank for rank in range(count) if rank not in codes]:
            child, status = os.waitpid(children[rank], os.WNOHANG)
            if child:
                codes[rank] = os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    for rank in [rank for rank in range(count) if rank not in codes]:
        os.kill(children[rank], signal.SIGKILL)
        os.waitpid(children[rank], 0)
    said = [folder / f"said-{rank}.json" for rank in range(count)]
    told = [json.loads(path.read_text()) if path.exists() else [] for path in said]
    return [{"code": codes.get(rank), "said": told[rank]} for rank in range(count)]


def _forked(rank: int, count: int, port: int, jobs: list[dict[str, Any]], folder: Path) -> int:
    child = os.fork()
    if child:
        return child
    if count > 1:
        said = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count}
        os.environ |= {name: str(value) for name, value in said.items()}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    try:
        told = [done(job, rank) for job in jobs]
        (folder / f"said-{rank}.json").write_text(json.dumps(told))
        os._exit(1 if any("error" in one for one in told) else 0)
    except BaseException:
        traceback.print_exc()
        os._exit(70)


def done(job: dict[str, Any], rank: int) -> dict[str, Any]:
    """Train as the job says. What it makes is written by the first process, into a file; what went wrong is told."""
    from dataclasses import replace

    import numpy as np

    from partly import engine
    from partly.errors import PartlyError, Stopped

    items, labels = data(job)
    config = engine.make_config(**{"method": "bce", "epochs": 3, "batch_size": 7, "lr": 0.01, **job["recipe"]})
    steps = 0

    def callback(clock: Any, logs: Any) -> None:
        nonlocal steps
        steps += 1
        for number, who, when in job.get("signals", []):
            if (who, when) == (rank, steps):
                os.kill(os.getpid(), number)

    folder = Path(job["folder"]) if "folder" in job else None
    try:
        if job.get("seeds"):
            config = replace(config, seed=rank)
        plan = engine.resolve(config, (items, labels), (items[:20], labels[:20]))
        how: dict[str, Any] = {"folder": folder, "callback": callback, "save_seconds": job.get("save_seconds", 20.0)}
        fitted = engine.fit(plan, **how)
    except (PartlyError, Stopped) as error:
        return {"error": type(error).__name__, "words": str(error), "steps": steps}
    scores = fitted.logits(items)
    if rank == 0 and "out" in job:
        made = {f"weights {name}": value.numpy() for name, value in fitted.method.state_dict().items()}
        made |= {} if fitted.beliefs is None else {"beliefs": np.asarray(fitted.beliefs, np.float32)}
        np.savez(job["out"], logits=scores, **made)
    return {"steps": steps, "history": fitted.progress.history, "sum": float(np.abs(scores).sum())}


def data(job: dict[str, Any]) -> Any:
    """50 items, so that the last batch of 7 holds one alone: fewer than there are processes."""
    import numpy as np

    import partly
    from partly import Labels
    from partly.items import as_items

    if "pictures" in job:
        folder = Path(job["pictures"])
        read = partly.read(folder / "pictures", labels=folder / "labels.csv", size=16)
        return read.items, read.labels
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 6)).astype(np.float32)
    truth = (x[:, :4] + 0.5 * rng.normal(size=(50, 4)) > 0).astype(float)
    known = rng.random((50, 4)) < 0.5
    known[:8] = True
    pixels = rng.integers(0, 256, (50, 16, 16, 3), dtype=np.uint8)
    pixels[..., 0] //= 1 + (truth[:, :1, None] > 0).astype(np.uint8)
    return as_items(pixels if job.get("pixels") else x), Labels.from_nan(np.where(known, truth, np.nan))


def main() -> None:
    import numpy as np
    import torch
    import torch.distributed

    from partly import engine
    from partly.items import as_items

    torch.set_num_threads(1)  # threads do not survive a fork
    for method in ("bce", "em"):  # an optimizer imports more, once instead of each time
        engine.build_method(engine.make_config(method, "mlp"), as_items(np.zeros((2, 2))), 2)
    for number, line in enumerate(sys.stdin):
        asked = json.loads(line)
        print(json.dumps(launch(asked["count"], asked["jobs"], Path(sys.argv[1]) / str(number))), flush=True)


if __name__ == "__main__":
    main()
