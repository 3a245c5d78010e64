"""Time of a cell of a comparison over the training and the evaluation that it contains.

    python benchmarks/compare.py [--rounds 5] [--items 5717]

Both sides fit the same model on the same items (1,280 features, 20 labels) and score it on as many test items; the cell
also plays the scenario, splits validation off and describes itself. The two sides alternate; the result is the
median of the ratios of neighbours. It should stay below 1.1.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from partly import metrics
from partly.comparison.plan import Cell
from partly.comparison.protocol import HOLD_OUT, mask, run_cell
from partly.data import Dataset, split_holdout
from partly.estimators.classifier import Classifier
from partly.items import as_items
from partly.labels import Labels

WIDTH, LABELS = 1280, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--items", type=int, default=5717)
    options = parser.parse_args()
    torch.set_num_threads(1)
    source = made(options.items)
    source.digest  # noqa: B018, once for all cells of a data set
    print(f"{'head':10} {'seconds per cell':>15} {'over its training':>18}   (median of {options.rounds})")
    for head in ("linear", "mlp"):
        cell = Cell("made", "uniform:0.1", "bce", head, "adamw", 0)
        bare = bare_cell(cell, source)
        bare(), run_cell(cell, source)  # warm up
        times = [(timed(bare), timed(lambda cell=cell: run_cell(cell, source))) for _ in range(options.rounds)]
        ratio = statistics.median(whole / part for part, whole in times)
        print(f"{head:10} {statistics.median(whole for _, whole in times):15.2f} {ratio:18.3f}", flush=True)


def made(items: int) -> Dataset:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * items, WIDTH)).astype(np.float32)
    y = x[:, :LABELS] + rng.normal(size=(2 * items, LABELS)) > 1.5
    train, test = (Dataset(as_items(x[part]), Labels.from_full(y[part])) for part in (slice(items), slice(items, None)))
    return replace(train, test=test)


def bare_cell(cell: Cell, data: Dataset) -> Callable[[], None]:
    """What one would write by hand, with the labels and the parts at hand."""
    observed = mask(cell, data)
    fit, hold = split_holdout(len(observed), HOLD_OUT, cell.seed)
    train, validation = (data.items[fit], observed[fit]), (data.items[hold], data.labels[hold])
    test = data.test
    assert test is not None

    def run() -> None:
        model = Classifier(cell.method, head=cell.head, seed=cell.seed, device="cpu", progress=False)
        model.fit(*train, validation=validation)
        metrics.evaluate(model.predict_proba(test.items), test.labels)

    return run


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
