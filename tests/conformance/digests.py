"""Run as a program: the SHA-256 of a short run of every method and planted fault, for comparison between processes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import torch

from conformance.bench import bits, info_of, trained
from partly import methods
from partly.methods import MethodInfo

TESTS = Path(__file__).parents[1]
FAULTS = sorted((TESTS / "faults").glob("*.py"))

Digests = dict[str, str]  # by file

shared: Path | None = None  # a folder of this session of tests, the same for all of its processes; see conftest.py


@cache
def in_other_processes() -> list[Digests]:
    """Digests from two new processes with different hash seeds; who comes first leaves them in the shared folder."""
    if shared is None:
        return computed()
    path = shared / "digests.json"
    with (shared / "digests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        if not path.exists():
            path.write_text(json.dumps(computed()))
    found: list[Digests] = json.loads(path.read_text())
    return found


def computed() -> list[Digests]:
    paths = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "conformance.digests"],
            env={**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
        )
        for seed in (1, 2)
    ]
    return [json.loads(child.communicate()[0]) for child in children]


def digest(info: MethodInfo) -> str:
    sha = hashlib.sha256()
    try:
        for name, tensor in sorted(trained(info).state().items()):
            sha.update(repr((name, *bits(tensor))).encode())
    except AssertionError as error:
        return str(error)
    return sha.hexdigest()


if __name__ == "__main__":
    torch.set_num_threads(1)
    every = [*methods.discover().values(), *map(info_of, FAULTS)]
    print(json.dumps({info.module.__file__: digest(info) for info in every}))
