"""Refuses writing to everything that writes, at every call, below Python; what did not end as it should is printed.

    python tests/refusing.py [--only report,compare] [--every 5] [--seconds 3600] [--seed 0]

Jobs are all commands that write (`writers.py`). Each is first done without harm, while its calls that write are
counted (open, write, fsync, ftruncate, rename, mkdir, unlink, msync; `faulty_disk.c`, for which there must be a C
compiler). Then it is done again and again, in a new folder each time, and one call fails: with EIO; with ENOSPC, as
do all that write after it; with EROFS, as do all after it; or it writes half and says so. What must come of it is a
message of ours that names the place, or all that should; all that is there must be readable, an older file or ledger
be as it was or new, and the same job must then go on to the bits of the unharmed one, with nothing left beside. This
process has done every job once, and forks them.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIBRARY = "FAULTY_DISK"
# Number, and what stays so: nothing, what writes, or also what removes and renames.
KINDS = {"EIO": (errno.EIO, 0), "ENOSPC": (errno.ENOSPC, 1), "EROFS": (errno.EROFS, 2), "short": (0, 0)}
INTO_A_FILE = re.compile("query|predict$|ledger|annotate|complete|convert")  # jobs without anything there before
OF_SQLITE = ("disk I/O error", "disk is full", "unable to open", "readonly")


def jobs(where: Path) -> list[Any]:
    """Those of all commands, quick and in this process."""
    import writers
    from partly.comparison import runner
    from partly.export import onnx_file

    traced, kept = onnx_file._trace, []  # a trace takes seconds, and no disk

    def once(*given: Any) -> Any:
        kept[:] = kept or [traced(*given)]
        return kept[0]

    onnx_file._trace = once

    def finished(todo: list[Any], experiment: Any, results: Any) -> Iterator[Any]:
        return (runner._work(cell, runner._how(experiment)) for cell in todo)

    runner._run_cells = finished  # cells run in this process
    return writers.jobs(where)


# ---------------------------------------------------------------- the harm


class Disk:
    """The library below, and jobs in children of this process."""

    def __init__(self) -> None:
        self._below = ctypes.CDLL(os.environ[LIBRARY])
        self._below.faulty_seen.restype = ctypes.c_long

    def done(self, job: Any, folder: Path, place: int = 0, kind: str = "EIO") -> tuple[str, int]:
        """How a job ends (`fine`, or the words of an error; `raw` before those of one that is not ours), and how many
        calls it made."""
        told = folder.parent / f"{folder.name}.told"
        child = os.fork()
        if not child:
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, for as long as the process lives
            number, stays = KINDS[kind]
            self._below.faulty_arm(str(folder).encode(), ctypes.c_long(place), number, stays)
            words = _words(job, folder)
            seen = self._below.faulty_seen()
            self._below.faulty_arm(b"", ctypes.c_long(0), 0, 0)
            told.write_text(json.dumps([words, seen]))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            raise RuntimeError(f"the process ended with {status}")
        words, seen = json.loads(told.read_text())
        told.unlink()
        return words, seen


def _words(job: Any, folder: Path) -> str:
    from partly.errors import PartlyError

    try:
        job.work(folder)
    except PartlyError as error:
        return str(error)
    except BaseException:
        return "raw " + traceback.format_exc()
    return "fine"


def wrong_with(disk: Disk, job: Any, unharmed: str, folder: Path, place: int, kind: str) -> str:
    """Fail at one call; what is not as it should be, or nothing."""
    before = put(job, folder)
    words, _ = disk.done(job, folder, place, kind)
    if words.startswith("raw"):
        return words
    there = job.left(folder) if folder.exists() else ""  # readable
    if words == "fine":
        return "" if there == unharmed else "all went well, it said, and something else is there"
    if not any(one in words for one in (os.strerror(KINDS[kind][0]), *OF_SQLITE)) or folder.name not in words:
        return f"a message that does not say what and where: {words}"
    if job.before and there not in (before, unharmed):
        return "what was there is neither what it was nor new"
    if kind != "EROFS" and (rest := left_behind(folder)):
        return f"left behind: {rest}"
    if not job.before or there != unharmed:  # what is done, though it could not be said, is not done again
        again, _ = disk.done(job, folder)
        if again != "fine":
            return f"did not go on: {again}"
        if job.left(folder) != unharmed:
            return "went on to something else"
    rest = left_behind(folder)
    return f"left behind after the next start: {rest}" if rest else ""


def put(job: Any, folder: Path) -> str:
    """What is to be there first; what that is."""
    if not job.before:
        if INTO_A_FILE.match(job.name):
            folder.mkdir()  # who names a file has a folder for it
        return ""
    folder.mkdir()
    job.before(folder)
    return str(job.left(folder))


def left_behind(folder: Path) -> list[str]:
    from partly import atomic_io

    return [path.name for path in folder.rglob(f".*{atomic_io.TEMPORARY_SUFFIX}")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of jobs, with commas")
    parser.add_argument("--every", type=int, default=1, help="try every so many calls alone, from a random one on")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing new after so long")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="partly-refused-") as name:
        where = Path(name)
        if LIBRARY not in os.environ:
            return _with_library(where / "faulty_disk.so")
        return _main(options, where)


def _with_library(path: Path) -> int:
    """Start again below the library."""
    source = Path(__file__).with_name("faulty_disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, source, "-ldl"], check=True)
    environment = os.environ | {LIBRARY: str(path), "LD_PRELOAD": str(path)}
    return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode


def _main(options: argparse.Namespace, where: Path) -> int:
    import torch

    torch.set_num_threads(1)  # threads do not survive a fork
    rng, disk, begun = random.Random(options.seed), Disk(), time.monotonic()
    tried: dict[str, dict[str, int]] = {}
    wrong: list[str] = []
    only = options.only.split(",") if options.only else []
    for job in jobs(where):
        if only and job.name not in only:
            continue
        stem = job.name.replace(":", "-")
        for name in ("loaded", "unharmed"):
            put(job, where / f"{stem} {name}")
        job.work(where / f"{stem} loaded")
        words, calls = disk.done(job, where / f"{stem} unharmed")
        assert words == "fine", words
        unharmed = job.left(where / f"{stem} unharmed")
        tried[job.name] = {"calls": calls, **dict.fromkeys(KINDS, 0)}
        for kind in KINDS:
            for place in range(1 + rng.randrange(options.every), calls + 1, options.every):
                if time.monotonic() - begun > options.seconds:
                    break
                folder = where / f"{stem} {kind} {place}"
                try:
                    found = wrong_with(disk, job, unharmed, folder, place, kind)
                except Exception as error:
                    found = repr(error)
                tried[job.name][kind] += 1
                if found:
                    wrong.append(f"{job.name}, {kind} at {place} of {calls}: {found}")
                    print(wrong[-1], file=sys.stderr, flush=True)
                shutil.rmtree(folder, ignore_errors=True)
    faults = sum(sum(one[kind] for kind in KINDS) for one in tried.values())
    print(json.dumps({"faults": faults, "wrong": len(wrong), "tried": tried}))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
