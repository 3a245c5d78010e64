"""What training really takes for entries, beside what is declared before the start; and how cheap labels change.

    python benchmarks/memory.py [--items 20000] [--labels 300] [--width 8] [--positives] [--sparse] [--answers]

A row per method with per-entry state: bytes declared by `run.entry_memory` and `run.weight_memory`, and the measured
growth of the resident memory, from a warm process (a small run of the same kind comes first) to the peak of a run with
a validation part and a run folder. `--positives`: only yes is known; `--width`: features, and so weights.
`--sparse` trains a linear head on CSR features of 200,000 x 50,000 at 0.1 %; `--answers` takes 100 answers to
1,000,000 x 5,000 labels at 0.5 % known.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from partly import Hierarchy, Labels, engine
from partly.comparison.plan import method_and_settings
from partly.engine.training import Validation
from partly.items import as_items

METHODS = ("bce", "role", "em-apl", "refine", "curriculum", "large-loss[scheme=correct-permanently]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--labels", type=int, default=300)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--positives", action="store_true")
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--of", help="measure one method in this process")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.of:
        print(*measured(options.of, options.items, options.labels, options.width, options.positives))
    elif options.sparse:
        sparse()
    elif options.answers:
        answers()
    else:
        print(f"{'method':40} {'declared MB':>12} {'measured MB':>12} {'ratio':>6}")
        for name in options.methods:
            command = [sys.executable, __file__, "--of", name, "--width", str(options.width)]
            command += ["--items", str(options.items), "--labels", str(options.labels)]
            command += ["--positives"] if options.positives else []
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            declared, found = map(float, done.stdout.split())
            print(f"{name:40} {declared:12.1f} {found:12.1f} {found / declared if declared else 0:6.2f}", flush=True)


def measured(name: str, items: int, labels: int, width: int, positives: bool) -> tuple[float, float]:
    """(MB declared, MB measured)."""
    method, settings = method_and_settings(name)
    recipe = engine.make_config(method, "linear", epochs=4, batch_size=64, settings=settings)
    trained(recipe, *made(500, labels, 8, positives))
    x, known, validation = made(items, labels, width, positives)
    declared = engine.entry_memory(recipe, x, known, validation)
    declared += engine.weight_memory(engine.build_method(recipe, x, labels, known), validation)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    trained(recipe, x, known, validation)
    return declared / 2**20, status("VmHWM") - before


def made(items: int, labels: int, width: int, positives: bool) -> tuple[object, Labels, Validation]:
    rng = np.random.default_rng(0)
    x = as_items(rng.standard_normal((items, width), np.float32))
    z = rng.choice(np.array([-1, 0, 1], np.int8), size=(items, labels), p=[0.27, 0.7, 0.03])
    z[: items // 100] = np.where(z[: items // 100] == 0, -1, z[: items // 100])
    known = Labels.from_ternary(np.where(z > 0, z, 0).astype(np.int8) if positives else z)
    hold = slice(0, items // 4)
    return x, known, Validation(x[hold], known[hold])


def trained(recipe: engine.ResolvedConfig, x: object, known: Labels, validation: Validation) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan = engine.resolve(recipe, (x, known), (validation.items, validation.labels))
        engine.fit(plan, folder=Path(folder), save_seconds=0.5)


def sparse() -> None:
    rng = np.random.default_rng(0)
    items, width, labels = 200_000, 50_000, 20
    each = width // 1000
    indices = rng.integers(0, width, (items, each), dtype=np.int32)
    indices.sort(axis=1)
    x = sp.csr_array(
        (rng.random(items * each, np.float32) + 0.1, indices.ravel(), np.arange(0, items * each + 1, each)),
        shape=(items, width),
    )
    x.sum_duplicates()
    y = np.where(rng.random((items, labels)) < 0.3, rng.random((items, labels)) < 0.1, np.nan)
    begun = time.perf_counter()
    fitted = engine.fit(
        engine.resolve(engine.make_config("bce", "linear", epochs=1, batch_size=256), (as_items(x), Labels.from_nan(y)))
    )
    print(f"{x.shape}, {x.nnz} stored: an epoch in {time.perf_counter() - begun:.0f} s, loss", end=" ")
    print(f"{fitted.progress.history[-1]['loss']:.4f}, peak {status('VmHWM'):.0f} MB of the whole process")


def answers() -> None:
    rng = np.random.default_rng(0)
    items, labels, each = 1_000_000, 5_000, 25
    columns = np.sort(rng.integers(0, labels // each, (items, each)) + np.arange(each) * (labels // each), axis=1)
    z = np.where(rng.random(items * each) < 0.2, 1, -1).astype(np.int8)
    pointers = np.arange(0, items * each + 1, each)
    known = Labels.from_ternary(sp.csr_array((z, columns.ravel(), pointers), shape=(items, labels)))
    hierarchy = Hierarchy({str(child): str(child // 10 * 10) for child in range(labels) if child % 10})
    rows = rng.choice(items, 100, replace=False)
    free = [int(np.flatnonzero(known.rows([row])[0] == 0)[0]) for row in rows]
    begun = time.perf_counter()
    told = known.with_entries(rows, free, np.full(100, -1))
    middle = time.perf_counter()
    try:
        hierarchy.deduce(told, items=rows)
        words = "deduced"
    except ValueError:
        words = "contradictions found"
    print(f"{known!r}")
    print(f"100 answers: with_entries {middle - begun:.2f} s, {words} in {time.perf_counter() - middle:.2f} s more")


def status(what: str) -> float:
    """MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 1024


if __name__ == "__main__":
    main()
