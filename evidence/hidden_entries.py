"""Measure hidden entries while methods learn, on real features: the data behind the papers' figures.

    python -m evidence.hidden_entries [--out evidence/results/hidden.json]

After every epoch: the share of hidden yes that is found, the distance between the scores of hidden yes and hidden no,
and the quality of pseudo-labels. At the end: a histogram of both kinds of scores. Methods are trained by gradient
steps, so that there are epochs. About two minutes on one core; `make results` draws the figures.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from partly import engine
from partly.clock import Clock
from partly.comparison import protocol
from partly.comparison.hidden_entries import find_hidden, measure_distance, measure_pseudo_labels, rank_hidden
from partly.comparison.plan import Cell
from partly.engine import Plan, prediction, training
from partly.labels import Labels
from partly.pool import Pool

HERE = Path(__file__).resolve().parent
DATA = "../shared/data/voc2012.npz:2000"
ROWS = (
    *(("single-positive", "linear", name) for name in ("assume-negative", "em", "em-apl", "asymmetric", "role")),
    ("single-positive", "mlp", "cls"),
    ("coarse-only:0.015625", "mlp", "refine"),
)
SEEDS = 3
BINS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "hidden.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = protocol.open_data(str(HERE.parent / DATA))
    records = [run(data, *row, seed) for row in ROWS for seed in range(SEEDS)]
    options.out.write_text(json.dumps(records, indent=0, sort_keys=True) + "\n", "utf-8")


def run(data: Any, scenario: str, head: str, method: str, seed: int) -> dict[str, Any]:
    """Train one method with one seed, and return its record."""
    cell = Cell("voc2012:2000", scenario, method, head, "adamw", seed)
    observed = protocol.mask(cell, data)
    options: dict[str, Any] = {"method": method, "head": head, "seed": seed}
    if head == "linear":
        options["head_settings"] = {"solve": False}
    plan = engine.resolve(engine.TrainConfig(**options), (data.items, observed))
    epochs = measure_epochs(plan, data.labels)
    scores = engine.fit(plan).predict(data.items)
    hidden = find_hidden(observed, data.labels)
    shares = {name: histogram(scores[hidden == sign]) for name, sign in (("yes", 1), ("no", -1))}
    print(method, seed, {name: round(value, 3) for name, value in epochs[-1].items()}, flush=True)
    return {**options, "data": cell.data, "scenario": scenario, "epochs": epochs, "scores": shares}


def measure_epochs(plan: Plan, truth: Labels) -> list[dict[str, float]]:
    """Measure hidden entries after every epoch. The run has no access to the truth, and is not changed by this."""
    z, hidden = plan.labels.rows(slice(None)), find_hidden(plan.labels, truth)
    config, method = plan.config, plan.build()
    pool, epochs = Pool(plan.items, plan.labels, config.batch_size), []

    def callback(clock: Clock, _: dict[str, float]) -> None:
        if clock.step == clock.steps:
            scores = prediction.predict(method, plan.items)
            metrics = {"found": share_found(scores, hidden), "wasserstein": measure_distance(scores, hidden)}
            beliefs = list(training.belief_blocks(method))
            pseudo = measure_pseudo_labels(np.concatenate(beliefs), z, hidden) if beliefs else {}
            epochs.append(metrics | pseudo)

    clock = Clock(config.seed, config.epochs, method.steps(pool), last=pool.last)
    training.train(method, pool, clock, callback=callback)
    return epochs


def share_found(scores: npt.NDArray[np.float32], hidden: npt.NDArray[np.int8]) -> float:
    """Precision of the highest-scoring unknown entries, as many as there are hidden yes; NaN where there are none."""
    ranked = rank_hidden(scores, hidden)
    count = int(np.sum(ranked == 1))
    return float(np.mean(ranked[:count] == 1)) if count else float("nan")


def histogram(scores: Any) -> list[float]:
    """Share of scores in each of equal bins from 0 to 1."""
    counts, _ = np.histogram(scores, BINS, (0, 1))
    return [round(float(share), 5) for share in counts / max(1, len(scores))]


if __name__ == "__main__":
    main()
