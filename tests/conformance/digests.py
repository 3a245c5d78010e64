"""Run as a program: the SHA-256 of a short run of every method and planted fault, for comparison between processes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import torch

from conformance.bench import bits, entry_of, trained
from partly import catalogue
from partly.catalogue import Entry

TESTS = Path(__file__).parents[1]
FAULTS = sorted((TESTS / "faults").glob("*.py"))


@cache
def in_other_processes() -> tuple[dict[str, str], dict[str, str]]:
    """Digests by file, from two new processes with different hash seeds."""
    paths = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "conformance.digests"],
            env={**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
        )
        for seed in (1, 2)
    ]
    one, other = (json.loads(child.communicate()[0]) for child in children)
    return one, other


def digest(entry: Entry) -> str:
    sha = hashlib.sha256()
    try:
        for name, tensor in sorted(trained(entry).state().items()):
            sha.update(repr((name, *bits(tensor))).encode())
    except AssertionError as error:
        return str(error)
    return sha.hexdigest()


if __name__ == "__main__":
    torch.set_num_threads(1)
    entries = [*catalogue.discover().values(), *map(entry_of, FAULTS)]
    print(json.dumps({entry.module.__file__: digest(entry) for entry in entries}))
