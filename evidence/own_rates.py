"""Run experiments on equal footing: every method at the learning rate that validation chooses for it.

    python -m evidence.own_rates EXPERIMENT [...]     into results/EXPERIMENT.jsonl; the rates into results/rates.json

A rate is chosen for each method, setting and data set, among `GRIDS`, by the validation score of one run with a seed
that no result uses, in the first scenario of the experiment. If the best rate is at an end of the grid, the
grid is extended, unless its neighbor is as good. Solved methods have no rate, and recipes of papers keep theirs. Repeat
the command to resume.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from evidence.claims import footing
from partly.comparison import Experiment, protocol, read_experiment, results
from partly.comparison.plan import AUTO, FULL, NAIVE, Cell, name_of
from partly.data import Dataset

HERE = Path(__file__).resolve().parent
RATES = HERE / "results" / "rates.json"
SEED = 1000
STEP, MAX_RATES = 3.0, 7  # factor between rates, and size limit, of an extended grid
GRIDS = {  # by head; a linear head that starts at the solved regression takes far smaller steps
    "mlp": (3e-4, 1e-3, 3e-3),
    "warm-linear": (1e-5, 3e-5, 1e-4, 3e-4),
    "linear": (1e-4, 3e-4, 1e-3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="+")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.chdir(HERE)  # settings name files relative to this folder
    for name in options.experiments:
        run(read_experiment(HERE / "experiments" / f"{name}.toml"), options.out)


def run(experiment: Experiment, out: Path) -> None:
    """Run the cells that have no record yet."""
    path, data = out / f"{experiment.name}.jsonl", Opened(experiment)
    finished = {results.key_of(record) for record in results.read(path)}
    for wanted in wanted_cells(experiment):
        whole = data[wanted.data]
        rate = choose(wanted, whole, out / RATES.name) if has_rate(wanted) else {}
        cell = replace(wanted, recipe=wanted.recipe | rate)
        if results.key_of(cell.key() | {"data_digest": whole.digest}) in finished:
            continue
        record = protocol.run_cell(cell, whole)
        results.append(path, record)
        print(results.describe(record), round(record["test"]["mAP"], 4), record["seconds"], flush=True)


def choose(cell: Cell, whole: Dataset, path: Path) -> dict[str, float]:
    """Return the rate of a method, as a part of its recipe; choose it first if there is none yet."""
    rates, key = read_rates(path), key_of(cell)
    scores = {float(rate): score for rate, score in rates.get(key, {}).get("scores", {}).items()}
    for rate in () if scores else GRIDS[cell.head]:
        scores[rate] = score_rate(cell, whole, rate)
    while (beyond := find_extension(scores)) and len(scores) < MAX_RATES:
        scores[beyond] = score_rate(cell, whole, beyond)
    best = max(sorted(scores), key=lambda rate: scores[rate])  # of equals the smallest, in any order
    chosen = {"rate": best, "scores": {str(rate): scores[rate] for rate in sorted(scores)}}
    if rates.get(key) != chosen:
        print(key, chosen, flush=True)
        path.write_text(json.dumps(rates | {key: chosen}, indent=1, sort_keys=True) + "\n", "utf-8")
    return {"lr": best}


def score_rate(cell: Cell, whole: Dataset, rate: float) -> float:
    tried = replace(cell, seed=SEED, recipe=cell.recipe | {"lr": rate})
    return float(protocol.run_cell(tried, whole)["validation_score"] or -1.0)


def find_extension(scores: dict[float, float]) -> float | None:
    """Return a rate beyond the best end of a grid; None if the best is inside, or the score is flat at that end."""
    rates = sorted(scores)
    best = max(rates, key=lambda rate: scores[rate])
    place = rates.index(best)
    if 0 < place < len(rates) - 1:
        return None
    neighbor, beyond = (rates[1], best / STEP) if place == 0 else (rates[-2], best * STEP)
    return float(f"{beyond:.3g}") if scores[best] - scores[neighbor] > footing.FLAT else None


def wanted_cells(experiment: Experiment) -> Iterator[Cell]:
    """Yield all cells but those in which nothing is hidden, the portfolio last."""
    cells = [cell for cell in experiment.cells() if cell.scenario != FULL]
    yield from sorted(cells, key=lambda cell: cell.method == AUTO)


def has_rate(cell: Cell) -> bool:
    """Tell whether a cell is trained by steps at a rate that is not fixed by a paper."""
    solved = cell.method in NAIVE and cell.recipe.get("head_settings", {}).get("solve", True)
    return not (solved or cell.method in footing.REFERENCES or "recipe" in cell.recipe)


def key_of(cell: Cell) -> str:
    """Return the key of a rate: data, head, method, settings and recipe."""
    settings = json.dumps(cell.settings, sort_keys=True)
    recipe = json.dumps({name: value for name, value in cell.recipe.items() if name != "lr"}, sort_keys=True)
    return " | ".join((name_of(cell.data), cell.head, cell.method, settings, recipe))


def read_rates(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


class Opened(dict[str, Dataset]):
    """The data sets of an experiment, each read once."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__()
        self.experiment = experiment

    def __missing__(self, name: str) -> Dataset:
        plan = self.experiment
        self[name] = protocol.open_data(name, plan.labels, plan.skip_bad, plan.size, plan.meaning)
        return self[name]


if __name__ == "__main__":
    main()
