"""Every step on a data set that is large, each with its seconds and its peak memory.

    python benchmarks/large.py FOLDER [--items 1000000] [--labels 5000] [--features 512] [--known 25] [--steps a b ...]

Makes the data in FOLDER where it is not there yet (1 GB of features at the full size; scores are 20 GB), then runs one
step after the other as a process of its own. `seconds` are those of the processor, all threads together, so that other
programs do not count. `resident` is the peak of all its pages (`ru_maxrss`); pages of mapped
files are among them, which the system takes back when it wants to. `own` is the peak of those that it cannot
(`RssAnon`, looked at every 50 ms). Steps are commands as a user types them, or calls of the same in Python.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from partly import Labels, data
from partly.atomic_io import write_npy

BLOCK = 1 << 14
HIDDEN = 32  # numbers behind an item, of which its features and its labels are made
READ = "import sys, partly.data; print(partly.data.read_labels(sys.argv[1]))"
SCORE = """import sys, partly
from partly import metrics
model, found = partly.Classifier.load(sys.argv[1]), partly.read(sys.argv[2], sys.argv[3])
scores = metrics.evaluate(model.predict_proba_blocks(found.items), found.labels)
print(f"mAP {scores['mAP']:.4f}")"""
FIT = """import sys, partly
found = partly.read(sys.argv[1], sys.argv[2])
model = partly.Classifier("bce", head="linear", epochs=1, progress=False)
print(model.fit(found.items, found.labels).history_[-1])"""
REFUSED = (
    "role",
    "em-apl",
    "curriculum",
    "refine",
    "large-loss[scheme=correct-permanently]",
    "leml",
    "per-label",
)


def steps(folder: Path) -> dict[str, list[str]]:
    """Name -> command."""
    partly = [sys.executable, "-m", "partly"]
    x, labels, scores = (str(folder / name) for name in ("features.npy", "labels.npz", "scores.parquet"))
    train = [*partly, "train", x, "--labels", labels, "--epochs", "1", "--quiet", "--run"]
    run = str(folder / "bce-linear")
    python = [sys.executable, "-c"]
    return {
        "read npz": [*python, READ, labels],
        "read long csv": [*python, READ, str(folder / "labels.csv")],
        "read parquet": [*python, READ, str(folder / "labels.parquet")],
        "train linear": [*train, run, "--method", "bce", "--head", "linear"],
        "train mlp": [*train, str(folder / "bce-mlp"), "--method", "bce", "--head", "mlp"],
        "train default": [*train, str(folder / "default")],
        "train in Python": [*python, FIT, x, labels],
        "predict top 20": [*partly, "predict", run, x, "--top", "20", "--out", str(folder / "top.parquet"), "--quiet"],
        "predict above": [
            *partly,
            "predict",
            run,
            x,
            "--above",
            "0.9",
            "--out",
            str(folder / "above.parquet"),
            "--quiet",
        ],
        "predict all": [*partly, "predict", run, x, "--out", scores, "--quiet"],
        "evaluate a run": [*partly, "evaluate", run, x, "--labels", labels, "--quiet"],
        "evaluate scores": [*partly, "evaluate", scores, labels, "--quiet"],
        "evaluate in Python": [*python, SCORE, run, x, labels],
        **{f"train {name}": [*train, str(folder / name), *asked(name)] for name in REFUSED},
    }


def asked(name: str) -> list[str]:
    method, _, settings = name.partition("[")
    given = [word for one in settings.rstrip("]").split(",") if one for word in ("--setting", one)]
    return ["--method", method, "--head", "linear", *given]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--labels", type=int, default=5_000)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--known", type=int, default=25, help="entries of an item")
    parser.add_argument("--steps", nargs="+")
    options = parser.parse_args()
    make(options.folder, options.items, options.labels, options.features, options.known)
    commands = steps(options.folder)
    print(f"{options.items:,} x {options.labels:,}, {options.known} known of each item, {options.features} features")
    print(f"{'step':42} {'seconds':>8} {'resident MB':>12} {'own MB':>8}  what it said")
    for name in options.steps or commands:
        seconds, resident, own, said = measured(commands[name])
        print(f"{name:42} {seconds:8.0f} {resident:12,.0f} {own:8,.0f}  {said}", flush=True)


def measured(command: list[str]) -> tuple[float, float, float, str]:
    """Seconds of the processor, MB resident, MB of its own, and the end of what it said."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    own = [0.0]
    watching = threading.Thread(target=watch, args=(process.pid, own), daemon=True)
    watching.start()
    said = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    watching.join()
    words = " ".join(said.split()[-40:]) if process.returncode else " ".join(said.split()[-12:])
    seconds = usage.ru_utime + usage.ru_stime
    return seconds, usage.ru_maxrss / 1024, own[0], f"[{process.returncode}] {words}"


def watch(process: int, own: list[float]) -> None:
    """Until it has ended."""
    while True:
        try:
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
        except OSError:
            return
        found = [int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")]
        if not found:
            return
        own[0] = max(own[0], *found)
        time.sleep(0.05)


def make(folder: Path, items: int, labels: int, features: int, known: int) -> None:
    """Features and labels that hang together, in the three forms of labels."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "labels.parquet").exists():
        return
    rng = np.random.default_rng(0)
    mix, of_label = (
        rng.standard_normal((HIDDEN, features), np.float32),
        rng.standard_normal((labels, HIDDEN), np.float32),
    )
    columns, z = np.empty((items, known), np.int32), np.empty((items, known), np.int8)

    def blocks() -> object:
        for start in range(0, items, BLOCK):
            stop = min(start + BLOCK, items)
            hidden = rng.standard_normal((stop - start, HIDDEN), np.float32)
            # One label of each of `known` equal runs of labels: distinct, and in order.
            edges = np.linspace(0, labels, known + 1).astype(np.int64)
            columns[start:stop] = rng.integers(edges[:-1], edges[1:], (stop - start, known))
            logits = np.einsum("bh,bkh->bk", hidden, of_label[columns[start:stop]])
            z[start:stop] = np.where(logits + 2 * rng.standard_normal(logits.shape) > HIDDEN**0.5, 1, -1)
            noise = rng.standard_normal((stop - start, features), np.float32)
            yield (hidden @ mix + noise).astype(np.float16)

    with (folder / "features.npy").open("wb") as file:
        write_npy(file, (items, features), np.dtype(np.float16), blocks())
    pointers = np.arange(0, items * known + 1, known)
    matrix = sp.csr_array((z.ravel(), columns.ravel(), pointers), shape=(items, labels))
    made = Labels.from_ternary(matrix, names=[f"label {j}" for j in range(labels)])
    for form in ("npz", "csv", "parquet"):
        data.write_labels(made, folder / f"labels.{form}", **({} if form == "npz" else {"form": "long"}))


if __name__ == "__main__":
    main()
