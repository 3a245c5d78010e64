"""Runs a comparison with two workers, kills it with SIGKILL several times and lets it finish; prints what it saw.

A script of its own: it imports torch once, which takes seconds, and forks a comparison again and again. Those that are
killed fork their workers too; the one that finishes starts them as it always does.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

from partly.comparison import protocol, results, runner
from partly.comparison.plan import read_experiment
from partly.executors import local

KILLS = 5
EACH = 3  # lines between two kills


def main(file: Path, out: Path) -> None:
    path = out / f"{file.stem}.jsonl"
    protocol.check_no_leak("bce")  # so that what is imported on first use is there before the forks
    seen, orphans = [], []
    for number in range(KILLS):
        before = len(results.read(path))
        child = start(file, out, "fork")
        while len(results.read(path)) < before + EACH and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.005)
        time.sleep(0.007 * number)  # at different moments of a cell
        workers = children(child)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        orphans += left(workers)
        seen.append(len(results.read(path)))
        with open(path, "ab") as torn:  # as a kill in the middle of a write leaves it
            torn.write(b'{"data": "tiny", "scen')
    finished = os.waitpid(start(file, out, "spawn"), 0)[1]
    print(json.dumps({"seen": seen, "orphans": orphans, "finished": finished}))


def start(file: Path, out: Path, workers: str) -> int:
    child = os.fork()
    if not child:
        context = multiprocessing.get_context(workers)
        local.multiprocessing.get_context = lambda _: context
        runner.run(read_experiment(file), out, workers=2, progress=False)
        os._exit(0)
    return child


def children(process: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def left(workers: list[int]) -> list[int]:
    """Those that outlive their parent by more than two minutes: the machine may be busy."""
    until = time.monotonic() + 120
    while any(map(alive, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    return [worker for worker in workers if alive(worker)]


def alive(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
