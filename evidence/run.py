"""The runs behind the results and the claims: every experiment, those that decide most first, and what may be shown.

    python -m evidence run [--out evidence/results] [--workers N] [--only cls,imcl]
    python -m evidence run --smoke

Hours on one core; stopped or killed, the same command goes on. At the end it says of every race whether its baseline
is at its best (tuned scikit-learn on the same known entries is at most half a point of mAP ahead) and ends with status
1 where one is not: the pages leave out such a table and say so.

--smoke runs the same experiments in a minute or two, each part with one seed, one scenario and two epochs on a few made
items, and writes nothing: whether everything that is asked for can still be run.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evidence import tags
from partly.comparison import Experiment, markdown, protocol, read_experiment, results, runner
from partly.comparison.groups import Group, gather

HERE = Path(__file__).resolve().parent
TEXTS, PREPARED = HERE.parent.parent / "shared" / "data" / "debtags-text.jsonl.gz", HERE / "prepared"
# Parts of an experiment that are run before the next one begins; then all that is left, in the same order.
FIRST = {
    "single-positive": 3,
    "partial-bce": 2,
    "cls": 4,
    "imcl": 4,
    "imcl-many-labels": 2,
    "annotation": 2,
    "annotation-dense": 4,
    "refine": 1,
    "active": 1,
    "pictures": 2,
    "scenes": 3,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", default=",".join(FIRST), help="names of experiments, separated by commas")
    parser.add_argument("--smoke", action="store_true")


def main(options: argparse.Namespace) -> int:
    names = options.only.split(",")
    if options.smoke:
        smoke(names)
        return 0
    if not (PREPARED / "tags.npz").exists():
        tags.prepare(TEXTS, PREPARED)
    for experiment in [*asked(names, True), *asked(names, False)]:
        print(experiment.name, flush=True)
        runner.run(experiment, options.out, options.workers)
    return told(options.out, names)


def asked(names: list[str], first: bool) -> Iterator[Experiment]:
    for name in names:
        whole = read_experiment(HERE / "experiments" / f"{name}.toml")
        yield replace(whole, parts=whole.parts[: FIRST[name]]) if first and whole.parts else whole


def told(out: Path, names: list[str]) -> int:
    """Say how each race stands beside the yardstick; 1 where a table cannot be shown."""
    status = 0
    for name in names:
        for block in races(results.read(out / f"{name}.jsonl")):
            behind = block.baseline_deficit
            words = "no yardstick" if behind is None else f"{-100 * behind:+.1f} points"
            bad = bool(block.reason_withheld)
            status |= bad
            print(f"{name}: {block.title}, {block.scenario}: {words}{' NOT SHOWN' * bad}")
    return status


def races(found: list[results.Record]) -> list[Group]:
    return gather([line for line in found if not line.get("asks")])


# -------------------------------------------------------------------- smoke


def smoke(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = str(made(Path(folder) / "made.npz"))
        for whole in asked(names, False):
            parts = [small(part, data) for part in whole.each()]
            cells = {results.key_of(cell.key() | {"data_digest": ""}): cell for part in parts for cell in part.cells()}
            opened = protocol.open_data(data)
            found = [protocol.run_cell(cell, opened) for cell in cells.values()]
            assert whole.queries or markdown.render(found)
            print(f"{whole.name}: {len(found)} cells", flush=True)


def small(part: Experiment, data: str) -> Experiment:
    asks = part.asks | ({"rounds": 1, "questions": 5} if part.queries else {})
    return replace(
        part,
        data=(data,),
        methods=tuple(name for name in part.methods if ".csv" not in name),  # such files are of real items and labels
        labels=None,
        size=None,
        scenarios=part.scenarios[:1],
        seeds=1,
        recipe={"epochs": 2},
        asks=asks,
        tune=min(part.tune, 2),
    )


def made(path: Path) -> Path:
    """A few items with a hierarchy of labels and a test part."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(180, 12)).astype(np.float32)
    y = (x @ rng.normal(size=(12, 6)) + rng.normal(size=(180, 6)) > 1).astype(np.int8)
    names = [f"label {j}" for j in range(6)]
    parents = ["one", "one", "one", "other", "other", "other"]
    parts: dict[str, Any] = {"names": np.array(names), "parents": np.array(parents)}
    for part, rows in (("train", slice(120)), ("test", slice(120, None))):
        parts |= {f"features_{part}": x[rows], f"labels_{part}": y[rows]}
    np.savez(path, **parts)
    return path
