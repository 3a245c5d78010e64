"""What `import partly` and `partly --help` take, beside a Python that does nothing, in seconds of CPU.

    python benchmarks/start.py [--turns 20]

The three take turns, each in a process of its own, and the median counts. `import partly` is to take less than 0.1 s
more than Python itself: it imports no torch, no NumPy and nothing of the package until a name is asked for.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

LIMIT = 0.1  # seconds
COMMANDS = {
    "python": ["-c", "pass"],
    "import partly": ["-c", "import partly"],
    "partly --help": ["-m", "partly", "--help"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20)
    turns = parser.parse_args().turns
    found: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(turns + 1):
        for name, words in COMMANDS.items():
            found[name].append(seconds(words))
    middle = {name: statistics.median(times[1:]) for name, times in found.items()}  # the first turn warms the disk
    for name, time in middle.items():
        print(f"{name:15} {time:.3f} s, {time - middle['python']:.3f} s more than Python itself")
    return int(middle["import partly"] - middle["python"] > LIMIT)


def seconds(words: list[str]) -> float:
    """User and system time of a Python that is given these words."""
    before = os.times()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    sys.exit(main())
