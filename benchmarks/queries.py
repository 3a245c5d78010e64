"""Seconds and additional memory of asking: every unknown entry scored, the best kept.

    python benchmarks/queries.py [--items 82000] [--labels 80] [--features 2048] [--known 0.5] [--quick]

The memory is the peak of the process above what it held before (items, labels, model), as the kernel counts it. The
second column of seconds is one pass of the model over all items, to compare with.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from partly import Labels
from partly.active import strategies as strategies
from partly.active.selection import select_questions
from partly.clock import Clock
from partly.engine import build_method, make_config, prediction
from partly.items import as_items


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=82_000)
    parser.add_argument("--labels", type=int, default=80)
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--known", type=float, default=0.5, help="share of the entries that is known")
    parser.add_argument("--quick", action="store_true", help="a small case, to see that all of it runs")
    options = parser.parse_args()
    if options.quick:
        options.items, options.features = 2_000, 64
    rng = np.random.default_rng(0)
    x = as_items(rng.standard_normal((options.items, options.features), dtype=np.float32))
    z = rng.choice(np.array([1, -1], np.int8), (options.items, options.labels))
    z[rng.random(z.shape) >= options.known] = 0
    z[:200] = np.where(z[:200] == 0, -1, z[:200])  # wholly known, for the look-ahead
    labels = Labels.from_ternary(z)
    method = build_method(make_config("bce", "mlp"), x, labels.shape[1], labels)
    for name in strategies():  # what is imported on first use is no memory of asking
        select_questions(name, method, x[:256], labels[:256], 10, Clock(0))
    begun = time.perf_counter()
    prediction.logits(method, x)
    once = time.perf_counter() - begun
    print(f"{labels!r}, {options.features} features")
    print(f"{'':>14} {'seconds':>9} {'one pass':>9} {'additional MB':>14}")
    for name in strategies():
        Path("/proc/self/clear_refs").write_text("5")
        before, begun = memory("VmRSS"), time.perf_counter()
        found = select_questions(name, method, x, labels, 1000, Clock(0))
        seconds = time.perf_counter() - begun
        print(f"{name:>14} {seconds:9.1f} {once:9.1f} {memory('VmHWM') - before:14.0f}", flush=True)
        assert len(found) == 1000


def memory(what: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 1024


if __name__ == "__main__":
    main()
