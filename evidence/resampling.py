"""Measure how much wider an interval is when test items and training cuts vary too, and not only seeds.

    python -m evidence.resampling ../shared/data/voc2012.npz

Seeds redraw masks, splits and initial weights on one cut of the training items and one test set. This script fits a
few pairs of methods on several cuts, and bootstraps the test items. It writes `results/resampling.json`: for each pair
the variance of the paired difference in mAP over seeds, cuts and test items, and the ratio of the standard error of a
mean over five seeds with all three sources to that of seeds alone. `rules.py` widens every interval by the largest:
pairs that stay near a common start hardly vary, and say nothing about the width of an interval.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import engine
from partly.comparison import protocol
from partly.comparison.plan import Cell, method_and_settings
from partly.data import Dataset, split_holdout
from partly.engine import PreparedData

HERE = Path(__file__).resolve().parent
ITEMS, CUTS, SEEDS, BOOTSTRAPS, SEEDS_OF_A_CELL = 2000, 4, 3, 100, 5
PAIRS = (  # method, other method, scenario, head
    ("bce", "assume-negative", "uniform:0.1", "linear"),
    ("curriculum[strategy=threshold]", "bce", "uniform:0.1", "warm-linear"),
    ("em", "assume-negative", "single-positive", "linear"),
)
Matrix = npt.NDArray[np.float64]


def mean_average_precision(scores: Matrix, truth: npt.NDArray[np.bool_]) -> float:
    """Return the mean over labels with at least one positive."""
    order = np.argsort(-scores, axis=0, kind="stable")
    hits = np.take_along_axis(truth, order, axis=0)
    precision = np.cumsum(hits, axis=0) / np.arange(1, len(hits) + 1)[:, None]
    positives = hits.sum(axis=0)
    return float(np.mean((precision * hits).sum(axis=0)[positives > 0] / positives[positives > 0]))


def predict(cell: Cell, data: Dataset) -> Matrix:
    """Fit one cell as `protocol` does, and return its test probabilities."""
    observed = protocol.mask(cell, data)
    fit, hold = split_holdout(len(observed), protocol.HOLD_OUT, cell.seed)
    validation = PreparedData(data.items[hold], data.labels[hold])
    plan = engine.resolve(protocol.config_of(cell), (data.items[fit], observed[fit]), validation)
    assert data.test is not None
    return np.asarray(engine.fit(plan).predict(data.test.items), dtype=np.float64)


def measure(pair: tuple[str, str, str, str], whole: Dataset) -> dict[str, Any]:
    assert whole.test is not None
    truth = np.asarray(whole.test.labels.ternary() > 0)
    draws = [np.random.default_rng(b).integers(len(truth), size=len(truth)) for b in range(BOOTSTRAPS)]
    differences, resampled = np.zeros((CUTS, SEEDS)), []
    for cut in range(CUTS):
        chosen = np.random.default_rng(cut).permutation(len(whole.labels))[:ITEMS]
        data = replace(whole[np.sort(chosen)], test=whole.test)
        for seed in range(SEEDS):
            scores = []
            for text in pair[:2]:
                method, settings = method_and_settings(text)
                cell = Cell("voc2012", pair[2], method, pair[3], "adamw", seed, settings, {}, "complete")
                scores.append(predict(cell, data))
            first, second = scores
            gaps = [
                mean_average_precision(first[d], truth[d]) - mean_average_precision(second[d], truth[d]) for d in draws
            ]
            differences[cut, seed] = mean_average_precision(first, truth) - mean_average_precision(second, truth)
            resampled.append(np.var(gaps, ddof=1))
    of_seeds = float(differences.var(axis=1, ddof=1).mean())
    of_cuts = max(0.0, float(differences.mean(axis=1).var(ddof=1)) - of_seeds / SEEDS)
    of_items = float(np.mean(resampled))
    alone = of_seeds / SEEDS_OF_A_CELL
    return {
        "pair": list(pair),
        "difference": float(differences.mean()),
        "variance_seeds": of_seeds,
        "variance_cuts": of_cuts,
        "variance_test_items": of_items,
        "ratio": float(np.sqrt((alone + of_cuts + of_items) / alone)) if alone else None,  # None: the same model
    }


def main(path: str) -> None:
    whole = protocol.open_data(path)
    measured = []
    for pair in PAIRS:
        measured.append(measure(pair, whole))
        print(measured[-1], flush=True)
    (HERE / "results" / "resampling.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
