"""Average precision over a scikit-learn loop, and the additional memory of a large evaluation.

    python benchmarks/metrics.py [--rounds 7] [--items 125000] [--labels 5000] [--known 0.005] [--quick]
    python benchmarks/metrics.py --blocks metrics|intervals|all-entries [--items 1000000]

The two sides of the ratio alternate and a row is the median of the ratios of neighbours, so that a busy machine slows
both. The peak is what NumPy and Python allocated on top of the scores and the labels, as tracemalloc sees it.

With --blocks, scores are drawn block by block and never held; the peak is that of the process (VmHWM).
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import average_precision_score

from partly import Labels, metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--items", type=int, default=125_000)
    parser.add_argument("--labels", type=int, default=5_000)
    parser.add_argument("--known", type=float, default=0.005, help="share of known entries of the sparse labels")
    parser.add_argument("--quick", action="store_true", help="a small case, to see that all of it runs")
    parser.add_argument("--blocks", choices=("metrics", "intervals", "all-entries"))
    options = parser.parse_args()
    if options.blocks:
        in_blocks(options.blocks, options.items, options.labels, options.known)
        return
    if options.quick:
        options.rounds, options.items, options.labels = 1, 2_000, 500
    speed(40_000 if not options.quick else 2_000, 80, options.rounds)
    memory(options.items, options.labels, options.known)


def speed(items: int, labels: int, rounds: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.random((items, labels)) < rng.uniform(0.01, 0.2, labels)
    logits = rng.normal(size=y.shape) + 2 * y
    known = Labels.from_full(y)
    print(f"AP of {items:,} x {labels}: {'ms':>7} {'scikit-learn loop, ms':>22} {'times faster':>13}")
    for dtype in (np.float32, np.float64):
        scores = logits.astype(dtype)
        times = [(timed(metrics.average_precision, scores, known), timed(one_by_one, scores, y)) for _ in range(rounds)]
        mine, loop = (statistics.median(side) * 1e3 for side in zip(*times, strict=True))
        print(
            f"{dtype.__name__:>19} {mine:7.1f} {loop:22.1f} {statistics.median(b / a for a, b in times):13.1f}",
            flush=True,
        )


def memory(items: int, labels: int, share: float) -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((items, labels), dtype=np.float32)
    print(f"\n{items:,} x {labels:,}, scores of {scores.nbytes / 1e6:,.0f} MB {'seconds':>20} {'additional MB':>14}")
    for name, known in (
        ("sparse", sparse_labels(rng, items, labels, share)),
        ("dense", dense_labels(rng, items, labels)),
    ):
        for score in (metrics.average_precision, metrics.evaluate):
            tracemalloc.start()
            seconds = timed(score, scores, known)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            print(f"{f'{name} labels, {score.__name__}':>46} {seconds:12.2f} {peak / 1e6:14,.0f}", flush=True)


def in_blocks(what: str, items: int, labels: int, share: float) -> None:
    known = sparse_labels(np.random.default_rng(1), items, labels, share)
    rng = np.random.default_rng(2)
    rows = max(1, (1 << 22) // labels)
    parts = (rng.random((min(rows, items - i), labels), dtype=np.float32) for i in range(0, items, rows))
    before = peak_megabytes()
    if what == "all-entries":
        seconds = timed(metrics.estimate, parts, known, 0.5, "at-random")
    else:
        seconds = timed(metrics.evaluate, parts, known, 0.5, "at-random", 0.95 if what == "intervals" else None)
    print(
        f"{what}, {items:,} x {labels:,}: {seconds:.0f} s, {peak_megabytes():,.0f} MB at most, {before:,.0f} before it"
    )


def peak_megabytes() -> float:
    """Return the largest resident size of the process so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


def sparse_labels(rng: np.random.Generator, items: int, labels: int, share: float) -> Labels:
    """`share` of each item's entries known, one in ten of them yes."""
    each = max(1, round(share * labels))
    columns = np.sort(rng.integers(0, labels - each + 1, (items, each)), axis=1) + np.arange(each)  # distinct
    z = np.where(rng.random(columns.size) < 0.1, 1, -1).astype(np.int8)
    indptr = np.arange(0, columns.size + 1, each)
    return Labels.from_ternary(sp.csr_array((z, columns.ravel(), indptr), shape=(items, labels)))


def dense_labels(rng: np.random.Generator, items: int, labels: int) -> Labels:
    """Everything known, one entry in twenty yes."""
    return Labels.from_full(rng.integers(0, 20, (items, labels), dtype=np.int8) == 0)


def one_by_one(scores: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> list[float]:
    return [average_precision_score(y[:, j], scores[:, j]) for j in range(y.shape[1])]


def timed(run: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
