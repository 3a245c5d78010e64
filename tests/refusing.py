"""Refuses writing to everything that writes, at every call, below Python; what did not end as it should is printed.

    python tests/refusing.py [--only report,compare] [--every 5] [--seconds 3600] [--seed 0]

Jobs are all commands that write. Each is first done without harm, while its calls that write are counted (open, write,
fsync, ftruncate, rename, mkdir, unlink, msync; `faulty_disk.c`, for which there must be a C compiler). Then it is done
again and again, in a new folder each time, and one call fails: with EIO; with ENOSPC, as do all that write after it;
or it writes half and says so. What must come of it is a message of ours that names the place, or all that should; all
that is there must be readable, nothing be left beside, an older file be as it was or new, and the same job must then go
on to the bits of the unharmed one. This process has done every job once, and forks them.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LIBRARY = "FAULTY_DISK"
KINDS = {"EIO": (errno.EIO, 0), "ENOSPC": (errno.ENOSPC, 1), "short": (0, 0)}  # number, and whether it stays so
OLD = "what was there before"
INTO_A_FOLDER = ("query", "predict", "simulate", "card", "onnx", "convert")  # jobs that write a file


def quiet(_: str) -> None:
    """Nobody listens."""


def more_jobs(where: Path) -> list[Any]:
    """Those that `killing` has none of."""
    import killing
    from partly.commands.compare import compare
    from partly.commands.convert import convert
    from partly.commands.demo import demo
    from partly.commands.export import export
    from partly.commands.predict import predict
    from partly.commands.predict_files import predict_files
    from partly.commands.simulate import simulate
    from partly.commands.study import study
    from partly.commands.train import train
    from partly.files import sha256_of

    def all_files(folder: Path, kinds: tuple[str, ...] = ("*",)) -> str:
        """What is there, by its digest; names that begin with a dot are ours to clean up."""
        there = [path for kind in kinds for path in sorted(folder.rglob(kind)) if path.is_file()]
        found = {str(p.relative_to(folder)): sha256_of(p) for p in there if not p.name.startswith(".")}
        return json.dumps(found) if found else ""

    def one(name: str, target: str, work: Callable[[Path], Any]) -> killing.Job:
        def made(folder: Path) -> None:
            folder.mkdir(exist_ok=True)
            work(folder / target)

        return killing.Job(name, made, all_files)

    def here(jobs: Any, work: Callable[[Any], Any]) -> Iterator[tuple[Any, Any]]:
        return ((job, work(job)) for job in jobs)

    parameters = {"method": "bce", "head": "linear", "epochs": 1, "seed": 0, "device": "cpu", "progress": False}
    given: dict[str, Any] = {"labels": where / "known.csv", "scenario": None, "hold_out": 0.2, "say": quiet}
    x, truth = str(where / "x.csv"), str(where / "truth.csv")
    cells = {"methods": ["bce"], "scenarios": ["uniform:0.5"], "heads": ["linear"], "seeds": 1}
    cells |= {"validation": ["complete"], "recipe": {"epochs": 1}}
    shares = {"shares": [0.5, 1.0], "scenarios": ["uniform"], "head": "linear", "seeds": 1, "recipe": {"epochs": 1}}
    (where / "parts").mkdir()
    for name in ("a", "b"):
        predict(where / "model", x, where / "parts" / f"{name}.parquet")
        shutil.copy(where / "x.parquet", where / "parts" / f"{name}.parquet")

    def left_of_training(folder: Path) -> str:
        return killing.model_left(folder) + str((folder / "report.html").exists())

    def left_of_cells(folder: Path) -> str:
        read = [killing.lines.read(path) for path in sorted(folder.glob("*.jsonl"))]
        plain = [[{k: v for k, v in line.items() if k not in killing.lines.TIMING} for line in part] for part in read]
        return json.dumps([plain, sorted(path.name for path in folder.glob("[!.]*"))])

    def left_of_demo(folder: Path) -> str:
        models = [killing.model_left(path) for path in sorted(folder.iterdir()) if path.is_dir()]
        return json.dumps([models, (folder / "report.html").exists(), (folder / "report.png").exists()])

    return [
        one("simulate", "out.csv", lambda out: simulate(truth, "uniform:0.5", out)),
        one("card", "out.md", lambda out: export(where / "model", None, out, overwrite=True, say=quiet)),
        one("onnx", "out.onnx", lambda out: export(where / "model", out, None, overwrite=True, say=quiet)),
        one("predict-parquet", "out.parquet", lambda out: predict(where / "model", x, out)),
        *(
            one(f"convert:{name}", name, lambda out: convert(truth, out, say=quiet))
            for name in ("out.npz", "out.parquet", "out.csv.gz", "out.jsonl")
        ),
        one("convert:items", "out.npz", lambda out: convert(x, out, "feature-arrays", labels=Path(truth), say=quiet)),
        killing.Job(
            "predict-files",
            lambda folder: predict_files(where / "model", sorted((where / "parts").iterdir()), folder, here),
            lambda folder: all_files(folder, ("*.parquet",)),
        ),
        killing.Job("report", lambda folder: train(x, folder, **given, parameters=parameters), left_of_training),
        killing.Job(
            "compare-page",
            lambda folder: compare(str(where / "tiny.npz"), folder, asked=cells, say=quiet),
            left_of_cells,
        ),
        killing.Job(
            "study", lambda folder: study(str(where / "tiny.npz"), folder, asked=shares, say=quiet), left_of_cells
        ),
        killing.Job("demo", lambda folder: demo(folder, items=60, say=quiet), left_of_demo),
    ]


def jobs(where: Path) -> list[Any]:
    """All that write, each once where methods write alike."""
    import killing
    from partly import data
    from partly.comparison import runner
    from partly.export import onnx_file

    some = {"compare", "refine", "features", "query", "predict", "train:bce", "train:role", "train:per-label"}
    every = [job for job in killing.jobs(where) if job.name in some]
    data.write_scores(where / "x.parquet", killing.X, killing.TRUTH.ids, [f"f{j}" for j in range(6)])
    traced, kept = onnx_file._traced, []  # a trace takes seconds, and no disk

    def once(*given: Any) -> Any:
        kept[:] = kept or [traced(*given)]
        return kept[0]

    onnx_file._traced = once

    def finished(todo: list[Any], experiment: Any, results: Any) -> Iterator[Any]:
        return (runner._work(cell, runner._how(experiment)) for cell in todo)

    runner._finished = finished  # cells run in this process
    return every + more_jobs(where)


# ---------------------------------------------------------------- the harm


class Disk:
    """The library below, and jobs in children of this process."""

    def __init__(self) -> None:
        self._below = ctypes.CDLL(os.environ[LIBRARY])
        self._below.faulty_seen.restype = ctypes.c_long

    def done(self, job: Any, folder: Path, place: int = 0, kind: str = "EIO") -> tuple[str, int]:
        """How a job ends (`fine`, or the words of an error; `raw` before those of one that is not ours), and how many
        calls it made."""
        if job.name.startswith(INTO_A_FOLDER):
            folder.mkdir(exist_ok=True)  # who names a file has a folder for it
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
    from partly import files

    old = [folder / name for name in json.loads(unharmed)] if job.name.startswith(("convert", "card", "simul")) else []
    for path in old:
        folder.mkdir(exist_ok=True)
        path.write_text(OLD)
    words, _ = disk.done(job, folder, place, kind)
    if words.startswith("raw"):
        return words
    if words == "fine":
        return "" if job.left(folder) == unharmed else "all went well, it said, and something else is there"
    if os.strerror(KINDS[kind][0]) not in words or folder.name not in words:
        return f"a message that does not say what and where: {words}"
    if [path for path in old if path.exists() and path.read_text("utf-8", "replace") != OLD]:
        if job.left(folder) != unharmed:
            return "an older file is neither what it was nor new"
    elif folder.exists() and not old:
        job.left(folder)  # readable
    rest = [path.name for path in folder.rglob(f".*{files.BESIDE}")]
    if rest:
        return f"left behind: {rest}"
    again, _ = disk.done(job, folder)
    if again != "fine":
        return f"did not go on: {again}"
    return "" if job.left(folder) == unharmed else "went on to something else"


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
