"""Run the experiments behind the results and the claims, the most decisive ones first.

    python -m evidence run [--out evidence/results] [--workers N] [--only cls,imcl]
    python -m evidence run --smoke

This takes hours on one core; the same command resumes. At the end it prints for every group how its baseline compares
with tuned scikit-learn on the same known entries, and exits with status 1 if one is more than half a point of mAP
below: the pages omit such a table.

--smoke checks in a minute or two that all experiments still run: each part with one seed, one scenario and two epochs
on a few random items. It writes nothing.
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
from partly.comparison.groups import gather

HERE = Path(__file__).resolve().parent
TEXTS, PREPARED = HERE.parent.parent / "shared" / "data" / "debtags-text.jsonl.gz", HERE / "prepared"
# Number of parts of each experiment that run first; then the rest, in the same order.
FIRST = {
    "front": 1,
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
    for experiment in [*read_experiments(names, True), *read_experiments(names, False)]:
        print(experiment.name, flush=True)
        runner.run(experiment, options.out, options.workers)
    return report_baselines(options.out, names)


def read_experiments(names: list[str], first_parts: bool) -> Iterator[Experiment]:
    for name in names:
        whole = read_experiment(HERE / "experiments" / f"{name}.toml")
        yield replace(whole, parts=whole.parts[: FIRST[name]]) if first_parts and whole.parts else whole


def report_baselines(out: Path, names: list[str]) -> int:
    """Print how each group's baseline compares with the reference; return 1 where a table cannot be shown."""
    status = 0
    for name in names:
        records = [record for record in results.read(out / f"{name}.jsonl") if not record.get("asks")]
        for group in gather(records):
            deficit = group.baseline_deficit
            comparison = "no reference" if deficit is None else f"{-100 * deficit:+.1f} points"
            withheld = bool(group.reason_withheld)
            status |= withheld
            print(f"{name}: {group.title}, {group.scenario}: {comparison}{' NOT SHOWN' * withheld}")
    return status


# -------------------------------------------------------------------- smoke


def smoke(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = str(made(Path(folder) / "made.npz"))
        for whole in read_experiments(names, False):
            parts = [small(part, data) for part in whole.split()]
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
