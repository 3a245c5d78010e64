"""What `import partly`, `partly --help` and a short `partly train` take, beside a Python that does nothing, in seconds
of CPU.

    python benchmarks/start.py [--turns 20] [--train]

They take turns, each in a process of its own with one thread, and the median counts. `import partly` is to take less
than 0.1 s more than Python itself: it imports no torch, no NumPy and nothing of the package until a name is asked for.
`--train`: `import torch` too, and `partly train` on 100 items x 20 features with 5 labels, for two epochs with its
report; the last column is how many times as long as `import torch` each takes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 0.1  # seconds
COMMANDS = {
    "python": ["-c", "pass"],
    "import partly": ["-c", "import partly"],
    "partly --help": ["-m", "partly", "--help"],
}
TRAINING = {
    "import torch": ["-c", "import torch"],
    "import of train": ["-c", "import partly.cli.train"],
    "partly train": [
        *("-m", "partly", "train", "x.npy", "--labels", "y.npz"),
        *("--method", "em", "--epochs", "2", "--run", "run"),
    ],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--train", action="store_true")
    options = parser.parse_args()
    commands = COMMANDS | (TRAINING if options.train else {})
    found: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        if options.train:
            make(Path(folder))
        for _ in range(options.turns + 1):
            for name, words in commands.items():
                found[name].append(seconds(words, Path(folder)))
    middle = {name: statistics.median(times[1:]) for name, times in found.items()}  # the first turn warms the disk
    for name, time in middle.items():
        ratio = f", {time / middle['import torch']:.2f} x `import torch`" if options.train else ""
        print(f"{name:15} {time:.3f} s, {time - middle['python']:.3f} s more than Python itself{ratio}")
    return int(middle["import partly"] - middle["python"] > LIMIT)


def make(folder: Path) -> None:
    import numpy as np

    from partly import Labels, data

    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 20)).astype(np.float32)
    np.save(folder / "x.npy", x)
    data.write_labels(Labels.from_nan(np.where(rng.random((100, 5)) < 0.5, x[:, :5] > 0, np.nan)), folder / "y.npz")


def seconds(words: list[str], folder: Path) -> float:
    """User and system time of a Python that is given these words."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    threads = os.environ | {"OMP_NUM_THREADS": "1"}
    before = os.times()
    command = [sys.executable, *words]
    subprocess.run(command, check=True, cwd=folder, env=threads, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    sys.exit(main())
