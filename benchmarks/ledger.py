"""Ten million statements in a ledger: how fast they are appended and folded, and what memory that takes.

    python benchmarks/ledger.py [statements] [statements a batch] [url]

Batches of 20,000 statements about entries drawn at random from 100,000 items x 100 labels, by people, imports and
models in turn, so that a good part of the entries is spoken of more than once. The file lies in a folder that is
removed afterwards. Seconds are of this machine and its load; the share of processor time says how much of it was had.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from partly.ledger import Ledger

ITEMS, LABELS = 100_000, 100
SOURCES = (("person", "anna", ""), ("import", "labels.csv", ""), ("person", "ben", ""), ("model", "", "runs/1"))


def main(total: int = 10_000_000, size: int = 20_000, url: str = "") -> None:
    with ExitStack() as stack:
        where = url or str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "labels.db")
        names = np.array([f"picture-{i:06d}.jpg" for i in range(ITEMS)])
        labels = np.array([f"label {j}" for j in range(LABELS)])
        ledger = Ledger.create(where, names=labels)
        rng = np.random.default_rng(0)
        before, spent = time.process_time(), 0.0
        for number in range(-(-total // size)):
            entry = rng.choice(ITEMS * LABELS, size, replace=False)
            value = rng.integers(0, 2, size)
            kind, author, run = SOURCES[number % len(SOURCES)]
            item, label = names[entry // LABELS], labels[entry % LABELS]
            start = time.perf_counter()
            ledger.append(item, label, value, kind=kind, author=author, run=run)
            spent += time.perf_counter() - start
        report("append", total, spent, time.process_time() - before)
        for what, models in (("fold", True), ("fold without models", False)):
            before, start = time.process_time(), time.perf_counter()
            found = ledger.labels(models=models)
            report(what, total, time.perf_counter() - start, time.process_time() - before)
            print(f"  {found!r}")
        start = time.perf_counter()
        said = ledger.show(str(names[777]))
        print(f"show: {len(said)} statements about an item in {time.perf_counter() - start:.2f} s")
        if not url:
            print(f"file: {Path(where).stat().st_size / 2**20:.0f} MiB")
        print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")


def report(what: str, total: int, seconds: float, cpu: float) -> None:
    print(
        f"{what}: {total:,} statements in {seconds:.1f} s ({cpu:.1f} s of processor), {total / seconds:,.0f} a second"
    )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]), *sys.argv[3:4])
