"""Seconds and memory on large synthetic data, each next to scikit-learn on the same known entries.

    python benchmarks/speed.py [--rows linear,small,kernel,auto,memory,memory-auto,threads] [--scale 1]

CPU seconds of one thread. The reference is LogisticRegression for each label on its known entries, with four values of
C; `ratio` is our time over its time. `predict` is CPU milliseconds per item. `excess` is the held-out log loss of true
entries of new items over that of the best C in hindsight, so it shows whether speed costs accuracy (below 0: better).
`memory` trains on memory-mapped float16 features in a process of its own and prints the peak of its anonymous memory,
which leaves out the map. `threads` prints wall time and CPU time of two threads over one; only a quiet machine tells.
--scale multiplies the number of items.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
if not os.environ.get("SPEED_THREADS"):
    for name in THREADS:
        os.environ[name] = "1"

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import torch  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from partly import Labels, engine  # noqa: E402
from partly.engine import FittedModel  # noqa: E402
from partly.items import Items, as_items  # noqa: E402
from partly.items.mapped_files import map_npy  # noqa: E402

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
# method, head, items, features, labels, share of entries that is known
ROWS: dict[str, tuple[str, str, int, int, int, float]] = {
    "linear": ("bce", "linear", 40_000, 256, 50, 0.1),
    "small": ("bce", "linear", 1_123, 1_001, 53, 0.3),
    "few-known": ("bce", "linear", 200_000, 50, 50, 0.01),
    "all-known": ("bce", "linear", 20_000, 256, 50, 1.0),
    "wide": ("bce", "linear", 10_000, 2_000, 20, 0.1),
    "kernel": ("bce", "auto", 80_000, 256, 50, 0.1),
    "auto": ("auto", "auto", 20_000, 256, 50, 0.1),
    "memory": ("bce", "linear", 400_000, 768, 10, 0.1),
    "memory-auto": ("auto", "auto", 400_000, 768, 10, 0.1),
    "threads": ("bce", "linear", 200_000, 256, 50, 0.1),
}
TEST = 2_000  # new items
SIGNAL = 40  # features that labels depend on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="linear,small,few-known,all-known,wide,kernel,auto,memory")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of items")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    parser.add_argument("--inside", help="measure one row in this process")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.inside:
        print(*measure_once(options.inside, options.scale))
        return
    torch.set_num_threads(1)
    print(f"{'row':12} {'items':>8} {'seconds':>8} {'4 x LR':>8} {'ratio':>6} {'predict':>8} {'excess':>8}")
    for row in options.rows.split(","):
        _, _, items, width, labels, share = ROWS[row]
        if row.startswith("memory"):
            print(f"{row:12} {round(items * options.scale):8,}", memory(row, options.scale), flush=True)
        elif row == "threads":
            print(f"{row:12} {round(items * options.scale):8,}", threads(row, options.scale), flush=True)
        else:
            print(line(row, round(items * options.scale), width, labels, share, options.profile), flush=True)


def line(row: str, items: int, width: int, labels: int, share: float, profile: bool) -> str:
    x, z, y = made(items + TEST, width, labels, share)
    train, known = as_items(x[:items]), Labels.from_ternary(sp.csr_array(z[:items]))
    fitted(row, as_items(x[:300]), Labels.from_ternary(z[:300]))  # first calls cost more
    seconds, model = timed(lambda: profiled(lambda: fitted(row, train, known), profile))
    predict, scores = timed(lambda: model.logits(as_items(x[items:])))
    reference, losses = scikit_learn(x, z, y, items)
    excess = log_loss(scores, y[items:]) - min(losses)
    text = f"{row:12} {items:8,} {seconds:8.1f} {reference:8.1f} {seconds / reference:6.2f}"
    return f"{text} {1e3 * predict / TEST:8.3f} {excess:8.4f}"


def made(items: int, width: int, labels: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of decreasing scale, known entries z (0: unknown), and the truth y."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((items, width), np.float32) * np.geomspace(2, 0.2, width, dtype=np.float32)
    signal = x[:, : min(SIGNAL, width)]
    logits = np.tanh(signal) @ rng.standard_normal((signal.shape[1], labels), np.float32)
    y = logits / logits.std(axis=0) * 2 - 1.5 + rng.logistic(size=logits.shape) > 0
    known = rng.random(y.shape) < share
    return x, np.where(known, np.where(y, 1, -1), 0).astype(np.int8), y


def fitted(row: str, x: Items, labels: Labels) -> FittedModel:
    method, head, *_ = ROWS[row]
    recipe, _ = engine.resolve_config(engine.TrainConfig(**{"method": method, "head": head, "seed": 0}), x, labels)
    return engine.fit(engine.resolve(recipe, (x, labels)))


def timed(job: Any) -> tuple[float, Any]:
    begun = time.process_time()
    result = job()
    return time.process_time() - begun, result


def profiled(job: Any, wanted: bool) -> Any:
    if not wanted:
        return job()
    import cProfile
    import pstats

    profile = cProfile.Profile(time.process_time)
    result = profile.runcall(job)
    pstats.Stats(profile).sort_stats("tottime").print_stats(30)
    return result


def scikit_learn(x: np.ndarray, z: np.ndarray, y: np.ndarray, items: int) -> tuple[float, list[float]]:
    """CPU seconds of all strengths together, and the log loss of each on new items."""
    seconds, losses = 0.0, []
    x = (x - x[:items].mean(axis=0)) / x[:items].std(axis=0)
    for c in STRENGTHS:
        scores = np.zeros(y[items:].shape, np.float32)
        for j in range(y.shape[1]):
            rows = np.flatnonzero(z[:items, j])
            begun = time.process_time()
            model = LogisticRegression(C=c, max_iter=1000).fit(x[rows], z[rows, j] > 0)
            seconds += time.process_time() - begun
            scores[:, j] = model.decision_function(x[items:])
        losses.append(log_loss(scores, y[items:]))
    return seconds, losses


def log_loss(logits: np.ndarray, y: np.ndarray) -> float:
    return float((np.logaddexp(0, logits) - y * logits).mean())


# -------------------------------------------------------------------- processes of their own


def memory(row: str, scale: float) -> str:
    base, peak, seconds, wall = inside(row, scale, 1)
    return f"{peak:8.0f} MB beyond the map, of which {base:.0f} before training; {seconds:.0f} CPU s, {wall:.0f} s"


def threads(row: str, scale: float) -> str:
    one, two = (inside(row, scale, count) for count in (1, 2))
    return f"two threads / one: wall {two[3] / one[3]:.2f}, CPU {two[2] / one[2]:.2f}"


def inside(row: str, scale: float, threads: int) -> tuple[float, ...]:
    environment = os.environ | dict.fromkeys(THREADS, str(threads)) | {"SPEED_THREADS": str(threads)}
    command = [sys.executable, __file__, "--inside", row, "--scale", str(scale)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()[-4:]))


def measure_once(row: str, scale: float) -> tuple[float, ...]:
    """MB of anonymous memory before and at the peak, CPU seconds, wall seconds."""
    _, _, items, width, labels, share = ROWS[row]
    torch.set_num_threads(int(os.environ["SPEED_THREADS"]))
    with tempfile.TemporaryDirectory() as folder:
        x, known = written(Path(folder), round(items * scale), width, labels, share)
        fitted(row, as_items(np.asarray(x.take(slice(300)))), known[:300])
        base, watch = anonymous(), Watch()
        wall, (seconds, _) = time.monotonic(), timed(lambda: fitted(row, x, known))
        return base, watch.stop(), seconds, time.monotonic() - wall


def written(folder: Path, items: int, width: int, labels: int, share: float) -> tuple[Items, Labels]:
    """Write blocks of the data to a file of float16, and return it mapped."""
    rng, parts, block = np.random.default_rng(1), [], 1 << 14
    weights = rng.standard_normal((width, labels), np.float32)
    file = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float16, (items, width))
    for start in range(0, items, block):
        x = rng.standard_normal((min(block, items - start), width), np.float32)
        y = x @ weights / width**0.5 * 2 - 1.5 + rng.logistic(size=(len(x), labels)) > 0
        file[start : start + block] = x
        parts.append(sp.csr_array(np.where(rng.random(y.shape) < share, np.where(y, 1, -1), 0).astype(np.int8)))
    file.flush()
    del file
    return map_npy(folder / "x.npy"), Labels.from_ternary(sp.csr_array(sp.vstack(parts)))


def anonymous() -> float:
    """MB of resident memory that belongs to no file."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("RssAnon:")[1].split()[0]) / 1024


class Watch(threading.Thread):
    """Look at the memory every few milliseconds."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.ended = 0.0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ended.wait(0.02):
            self.peak = max(self.peak, anonymous())

    def stop(self) -> float:
        self.ended.set()
        self.join()
        return self.peak


if __name__ == "__main__":
    main()
