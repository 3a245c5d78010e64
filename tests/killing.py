"""Kills everything that writes, again and again, for as long as asked; what was lost, doubled or changed is printed.

    python tests/killing.py [--kills 1000 | --seconds 3600] [--seed 0] [--only train:bce,compare]

Jobs are the training of every method, `compare`, `refine`, `query`, `features` and `predict`. Each is first done
without harm. Then it is started in a folder of its own, killed by SIGKILL at a random moment and started again, a few
times, and at last let alone: what it leaves must be, to the bit, what the unharmed one left. After every kill all that
is there must be readable, and no line be there twice. This process has done every job once before it forks them, so
that all that is loaded on first use is there: that saves seconds a kill, and most kills hit work and not imports.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from comparison.killed import children, left
from comparison.making import write_split
from partly import atomic_io, data, engine, methods
from partly.cli.options import DataOptions
from partly.cli.predict import predict_items
from partly.cli.query import query
from partly.cli.refine import refine
from partly.comparison import results, runner
from partly.comparison.plan import Experiment
from partly.engine import checkpoint
from partly.executors import local
from partly.items import as_items
from partly.labels import Labels
from plans import fit_config

RNG = np.random.default_rng(0)
X = RNG.normal(size=(48, 6)).astype(np.float32)
TRUTH = Labels.from_full(X[:, :3] > 0, names=["a", "b", "c"])
KNOWN = Labels.from_nan(np.where(RNG.random((48, 3)) < 0.5, X[:, :3] > 0, np.nan), names=["a", "b", "c"])
PICTURES = RNG.integers(0, 255, (40, 16, 16, 3), np.uint8)
FEW = 4  # kills of one job in one folder, at most


@dataclass
class Job:
    """Something that writes into a folder: how it is done, and what it leaves, as one text. `left` fails where what is
    there cannot be read. `before`: what is put into the folder first; then all that is done is done or not, and
    nothing between. A name begins with that of the command."""

    name: str
    work: Callable[[Path], Any]
    left: Callable[[Path], str]
    before: Callable[[Path], Any] | None = None
    unharmed: str = ""
    seconds: float = 0.0


# ---------------------------------------------------------------- the jobs


def training(method: str) -> Job:
    recipe = engine.make_config(method, "linear", epochs=2, batch_size=16)

    def work(folder: Path) -> None:
        fit_config(recipe, as_items(X), KNOWN, folder=folder, save_seconds=0.0)

    return Job(f"train:{method}", work, model_left)


def model_left(folder: Path) -> str:
    found = checkpoint.load(folder)
    if found is None:
        return ""
    if found[2]:
        raise RuntimeError(f"fell back: {found[2]}")
    kept = [path for name in ("beliefs.npy", "out_of_fold.npy") if (path := folder / name).exists()]
    return json.dumps([found[1]["tensors_sha256"], found[1]["progress"]["history"], *map(atomic_io.sha256_of, kept)])


def comparison(where: Path) -> Job:
    file = write_split(where / "tiny.npz")
    plan = Experiment(str(file), "bce", "uniform:0.5", "linear", seeds=3, recipe={"epochs": 1}, name="tiny")

    def left(folder: Path) -> str:
        found = results.read(folder / "tiny.jsonl")
        if len(set(map(results.key_of, found))) < len(found):
            raise RuntimeError("a cell is there twice")
        plain = [{k: v for k, v in line.items() if k not in results.TIMING} for line in found]
        return json.dumps(sorted(plain, key=results.key_of), sort_keys=True)

    return Job("compare", lambda folder: runner.run(plan, folder, workers=2, progress=False), left)


def asking(where: Path) -> Job:
    asks = {"scenario": "uniform:0.5", "rounds": 2, "query": "uncertainty", "count": 3}
    training = {"method": "bce", "head": "linear", "epochs": 1, "seed": 0, "device": "cpu"}

    def work(folder: Path) -> None:
        reading = DataOptions(labels=where / "truth.csv")
        refine(str(where / "x.csv"), folder, reading=reading, **asks, **training)

    def left(folder: Path) -> str:
        rounds = [atomic_io.read_checksummed(path) for path in sorted(folder.glob("*-00?.json"))]
        return json.dumps([model_left(folder), rounds])

    return Job("refine", work, left)


def making(where: Path) -> Job:
    ids = [str(i) for i in range(len(PICTURES))]

    def work(folder: Path) -> None:
        engine.make_features(as_items(PICTURES), ids, folder, "small-conv", save_seconds=0.0)

    def left(folder: Path) -> str:
        whole = (folder / "features.npy.sha256").exists()
        return (
            (folder / "features.npy.sha256").read_text() + atomic_io.sha256_of(folder / "features.npy") if whole else ""
        )

    return Job("features", work, left)


def scoring(where: Path) -> list[Job]:
    """Into one file, which is there as a whole or not at all."""
    model, x = where / "model", str(where / "x.csv")

    def left(folder: Path) -> str:
        path = folder / "out.csv"
        return path.read_text("utf-8") if path.exists() else ""

    def asked(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        known = DataOptions(labels=where / "known.csv")
        query(model, x, folder / "out.csv", reading=known, query="uncertainty", count=9)

    def predicted(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        predict_items(model, x, folder / "out.csv")

    return [Job("query", asked, left), Job("predict", predicted, left)]


def jobs(where: Path) -> list[Job]:
    data.write_scores(where / "x.csv", X, TRUTH.ids, [f"f{j}" for j in range(6)])
    for name, labels in (("truth", TRUTH), ("known", KNOWN)):
        data.write_labels(labels, where / f"{name}.csv")
    fit_config(
        engine.make_config("bce", "linear", epochs=1), data.read(where / "x.csv").items, KNOWN, folder=where / "model"
    )
    trained = [training(name) for name, info in methods.discover().items() if "features" in info.kind.kinds]
    return [comparison(where), asking(where), making(where), *scoring(where), *trained]


# ---------------------------------------------------------------- the harm


def start(job: Job, folder: Path) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, for as long as the process lives
        job.work(folder)
        os._exit(0)
    except BaseException as error:
        (folder.parent / f"{folder.name}.error").write_text(repr(error))
        os._exit(1)


def ended(child: int, within: float) -> bool:
    """Whether it ends within so many seconds; it is not reaped."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return True
        time.sleep(0.001)
    return False


def let_alone(job: Job, folder: Path) -> str:
    code = os.waitstatus_to_exitcode(os.waitpid(start(job, folder), 0)[1])
    if code:
        why = folder.parent / f"{folder.name}.error"
        raise RuntimeError(f"ended with {code}: {why.read_text() if why.exists() else ''}")
    return job.left(folder)


def harmed(job: Job, folder: Path, rng: random.Random) -> int:
    """Kill a job up to a few times, then let it finish; how often it was killed. Raises where something is wrong."""
    kills = 0
    for _ in range(rng.randint(1, FEW)):
        child = start(job, folder)
        if not ended(child, rng.uniform(0.0, job.seconds)):
            crew = children(child)
            os.kill(child, signal.SIGKILL)
            left(crew)  # forked here, workers hold what their parent held for as long as they live
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL:
            kills += 1
        if folder.exists():
            job.left(folder)  # readable
    if let_alone(job, folder) != job.unharmed:
        raise RuntimeError("ended in other bits than the unharmed one")
    rest = [path.name for path in atomic_io.leftovers(folder)]
    if rest:
        raise RuntimeError(f"left behind: {rest}")
    return kills


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.0, help="instead of a number of kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names of jobs, with commas")
    options = parser.parse_args()
    torch.set_num_threads(1)  # threads do not survive a fork
    fork = multiprocessing.get_context("fork")
    local.multiprocessing.get_context = lambda *_: fork  # type: ignore[attr-defined]
    os.fsync = lambda _: None  # type: ignore[assignment]  # a kill is no power cut, and disks are slow
    rng, wrong, kills, done = random.Random(options.seed), [], 0, 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="partly-kills-") as name:
        where = Path(name)
        every = [job for job in jobs(where) if not options.only or job.name in options.only.split(",")]
        for number, job in enumerate(every):
            job.work(where / f"loaded {number}")
        turn: list[Job] = []
        while time.monotonic() - begun < options.seconds if options.seconds else kills < options.kills:
            turn = turn or rng.sample(every, len(every))
            job, folder = turn.pop(), where / f"job {done}"
            done += 1
            try:
                if not job.unharmed:
                    started = time.monotonic()
                    job.unharmed = let_alone(job, where / f"unharmed {done}")
                    job.seconds = time.monotonic() - started
                kills += harmed(job, folder, rng)
            except Exception as error:
                wrong.append(f"{job.name}: {error!r}")
                if len(wrong) > 20:
                    break
            shutil.rmtree(folder, ignore_errors=True)
        names = sorted({job.name for job in every if job.unharmed})
    print(json.dumps({"kills": kills, "finished": done - len(wrong), "wrong": wrong, "jobs": names}))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
