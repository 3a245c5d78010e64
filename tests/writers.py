"""All commands, as jobs that write into a folder (`killing.Job`), or as words of a command line that only reads.

`test_disk.py` compares these with the commands that there are, so that none is forgotten.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import killing
from partly import data
from partly.annotate.project import ProjectConfig
from partly.annotate.server import ServerConfig, make_context, sign_in_link
from partly.atomic_io import sha256_of
from partly.cli import ledger as ledgers
from partly.cli import vocabulary
from partly.cli.compare import run_comparison
from partly.cli.complete import Outputs, complete
from partly.cli.convert import convert
from partly.cli.demo import demo
from partly.cli.export import export
from partly.cli.options import DataOptions
from partly.cli.predict import predict_files, predict_items, write_beliefs
from partly.cli.simulate import simulate
from partly.cli.train import train
from partly.comparison import Experiment
from partly.comparison.study import study
from partly.config import TrainConfig
from partly.engine import make_config
from partly.ledger import Ledger
from partly.ledger.store import LedgerNotFound
from plans import fit_config

OLD = "what was there before"
BOOK = "labels.db"
HOW = {"method": "bce", "head": "linear", "epochs": 1, "seed": 0, "device": "cpu", "progress": False}


def quiet(_: str) -> None:
    """Nobody listens."""


def jobs(where: Path) -> list[killing.Job]:
    """All that write, each once where methods write alike."""
    some = {"compare", "refine", "features", "query", "predict", "train:bce", "train:role", "train:per-label"}
    every = [job for job in killing.jobs(where) if job.name in some]
    data.write_scores(where / "x.parquet", killing.X, killing.TRUTH.ids, [f"f{j}" for j in range(6)])
    fit_config(
        make_config("role", "linear", epochs=1), data.read(where / "x.csv").items, killing.KNOWN, folder=where / "role"
    )
    Ledger.create(where / BOOK, killing.KNOWN.names).append_labels(killing.KNOWN, author="known")
    return [*every, *_files(where), *_folders(where), *_ledgers(where), *_vocabularies(where)]


def reading(where: Path) -> dict[str, list[str]]:
    """Commands that write nothing -> words after them."""
    x, truth, book = str(where / "x.csv"), str(where / "truth.csv"), str(where / BOOK)
    model = str(where / "model")
    return {
        "evaluate": [model, x, "--labels", truth],
        "verify": [model],
        "explain": [model, "0", "a", "--data", x, "--labels", truth],
        "methods": [],
        "formats": [],
        "doctor": [truth, x, "--method", "bce"],
        "ledger log": [book],
        "ledger show": [book, "0"],
        "ledger diff": [book, "1"],
        "ledger disagreements": [book],
        "vocabulary list": [book],
    }


# ---------------------------------------------------------------- a file


def all_files(folder: Path, kinds: tuple[str, ...] = ("*",)) -> str:
    """What is there, by its digest; names that begin with a dot are ours to clean up."""
    there = [path for kind in kinds for path in sorted(folder.rglob(kind)) if path.is_file()]
    found = {str(p.relative_to(folder)): sha256_of(p) for p in there if not p.name.startswith(".")}
    return json.dumps(found) if found else ""


def _files(where: Path) -> list[killing.Job]:
    def one(name: str, target: str, work: Callable[[Path], Any]) -> killing.Job:
        return killing.Job(
            name, lambda folder: work(folder / target), all_files, lambda folder: (folder / target).write_text(OLD)
        )

    def exported(statements: bool, out: Path) -> None:
        ledgers.export(str(where / BOOK), out, statements)

    x, truth, model = str(where / "x.csv"), str(where / "truth.csv"), where / "model"
    return [
        one("simulate", "out.csv", lambda out: simulate(truth, "uniform:0.5", out)),
        one("export:card", "out.md", lambda out: export(model, None, out, overwrite=True)),
        one("export:onnx", "out.onnx", lambda out: export(model, out, None, overwrite=True)),
        one("predict:parquet", "out.parquet", lambda out: predict_items(model, x, out)),
        one("predict:top", "out.csv", lambda out: predict_items(model, x, out, top=2)),
        one("predict:beliefs", "out.csv", lambda out: write_beliefs(where / "role", out)),
        *(
            one(f"convert:{name}", name, lambda out: convert(truth, out))
            for name in ("out.npz", "out.parquet", "out.csv.gz", "out.jsonl")
        ),
        one(
            "convert:items", "out.npz", lambda out: convert(x, out, "feature-arrays", reading=DataOptions(Path(truth)))
        ),
        one("ledger export", "out.csv", partial(exported, False)),
        one("ledger export:statements", "out.parquet", partial(exported, True)),
    ]


# ---------------------------------------------------------------- a folder


def _folders(where: Path) -> list[killing.Job]:
    x = str(where / "x.csv")
    known = DataOptions(where / "known.csv")
    cells = {"methods": ["bce"], "scenarios": ["uniform:0.5"], "heads": ["linear"], "seeds": 1}
    cells |= {"validation": ["complete"], "recipe": {"epochs": 1}}
    shares = {"shares": [0.5, 1.0], "scenarios": ["uniform"], "head": "linear", "seeds": 1, "recipe": {"epochs": 1}}
    (where / "parts").mkdir()
    for name in ("a", "b"):
        shutil.copy(where / "x.parquet", where / "parts" / f"{name}.parquet")

    def here(jobs: Any, work: Callable[[Any], Any]) -> Iterator[tuple[Any, Any]]:
        return ((job, work(job)) for job in jobs)

    def converted(form: str, target: str, folder: Path) -> None:
        convert(str(where / "truth.csv"), folder / target, form, reading=DataOptions(absent="no"))

    def empty(_: Path) -> None:
        """Nothing is there, and then all or nothing."""

    return [
        killing.Job("convert:voc", partial(converted, "voc-annotations", "out"), all_files, empty),
        killing.Job("convert:hugging-face", partial(converted, "hugging-face", "out"), all_files, empty),
        killing.Job("convert:voc-sets", partial(converted, "voc-sets", "out.txt"), all_files),
        killing.Job(
            "predict:files",
            lambda folder: predict_files(where / "model", sorted((where / "parts").iterdir()), folder, here),
            lambda folder: all_files(folder, ("*.parquet",)),
        ),
        killing.Job(
            "train:report",
            lambda folder: train(x, folder, TrainConfig(**HOW), known, hold_out=0.2, say=quiet),
            _left_of_training,
        ),
        killing.Job(
            "compare:page",
            lambda folder: run_comparison(Experiment((str(where / "tiny.npz"),), **cells), folder, show=quiet),
            _left_of_cells,
        ),
        killing.Job("study", lambda folder: study(where / "tiny.npz", **shares, out=folder), _left_of_cells),
        killing.Job("demo", lambda folder: demo(folder, items=60), _left_of_demo),
    ]


def _left_of_training(folder: Path) -> str:
    return killing.model_left(folder) + str((folder / "report.html").exists())


def _left_of_cells(folder: Path) -> str:
    read = [killing.results.read(path) for path in sorted(folder.glob("*.jsonl"))]
    plain = [[{k: v for k, v in line.items() if k not in killing.results.TIMING} for line in part] for part in read]
    return json.dumps([plain, sorted(path.name for path in folder.glob("[!.]*"))])


def _left_of_demo(folder: Path) -> str:
    models = [killing.model_left(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    return json.dumps([models, (folder / "report.html").exists(), (folder / "report.png").exists()])


# ---------------------------------------------------------------- a ledger


def told(folder: Path) -> str:
    """What a ledger says, without times; nothing where there is none, nor anything else."""
    try:
        ledger = Ledger(folder / BOOK)
    except LedgerNotFound:
        return ""
    labels = ledger.labels(models=True)
    entries = [[one.tolist() for one in labels.entries()], list(labels.ids), list(labels.names)]
    return json.dumps([entries, [[one.kind, one.count, one.undone_by] for one in ledger.log()]])


def _ledgers(where: Path) -> list[killing.Job]:
    def put(folder: Path) -> None:
        shutil.copy(where / BOOK, folder / BOOK)

    def book(folder: Path) -> str:
        return str(folder / BOOK)

    def imported(folder: Path) -> None:
        ledgers.import_(book(folder), str(where / "truth.csv"))

    def completed(outputs: Outputs, run: Path | None) -> None:
        given: dict[str, Any] = {"mechanism": "at-random", "force": True, "folds": 2, "compare": False, "run": run}
        given |= {"method": "bce", "head": "linear", "device": "cpu", "precision": 0.6}
        complete(str(where / "x.csv"), outputs=outputs, reading=DataOptions(where / "known.csv"), **given)

    def asked(folder: Path) -> None:
        context = make_context(
            ProjectConfig(str(where / "x.csv"), book(folder), str(where / "known.csv")), ServerConfig()
        )
        sign_in_link(context, ServerConfig())

    def taken_back(folder: Path) -> None:
        ledgers.undo(book(folder), 2)

    def made(folder: Path) -> None:
        ledgers.init(book(folder), "a,b,c")

    return [
        killing.Job("ledger init", made, told, lambda _: None),
        killing.Job("ledger import", imported, told, put),
        killing.Job("ledger undo", taken_back, told, put),
        killing.Job("annotate", asked, told),
        killing.Job("complete:ledger", lambda folder: completed(Outputs(ledger=book(folder)), None), told, put),
        killing.Job(
            "complete",
            lambda folder: completed(Outputs(folder / "out.csv"), folder / "run"),
            lambda folder: all_files(folder, ("out.csv",)),
        ),
    ]


def _vocabularies(where: Path) -> list[killing.Job]:
    def changed(what: str, words: list[Any], folder: Path) -> None:
        getattr(vocabulary, what)(str(folder / BOOK), *words)

    changes: dict[str, list[Any]] = {
        "add": ["d"],
        "split": ["a", ["into", "d,e"]],
        "merge": ["a,b", ["as", "d"]],
        "rename": ["a", ["to", "d"]],
        "retire": ["a"],
    }
    return [
        killing.Job(
            f"vocabulary {what}",
            partial(changed, what, words),
            told,
            lambda folder: shutil.copy(where / BOOK, folder / BOOK),
        )
        for what, words in changes.items()
    ]
