"""Pictures end to end: how fast they are decoded, what mapped features cost, and what frozen and fine-tuned backbones
make of them.

    python benchmarks/pictures.py decode DATA [--size 224] [--times 1] [--pictures 300] [--rounds 15]
    python benchmarks/pictures.py mapped DATA [--rounds 15]
    python benchmarks/pictures.py frozen DATA --out lines.jsonl
    python benchmarks/pictures.py tuned DATA --out lines.jsonl [--size 128] [--epochs 6] [--stages 4] [--seeds 1]
    python benchmarks/pictures.py pooled DATA --out lines.jsonl [--size 224] [--seeds 5]

DATA is a folder of pictures, with their labels and a column `split` in DATA.csv. One thread each.

`decode`: pictures a second of two workers, augmented and not, until they are batches in the asking process, as a share
of what Pillow alone does in two processes: opening, draft mode at the same size, decoding and RGB; and the same with
the middle resized, as bytes. All take turns; a share is the median over the rounds. `mapped`: seconds of training
(`em-apl`, linear, by batches) on a folder that `partly features` wrote over those on the same features in memory.

`frozen` and `tuned`: test mAP, seconds and peak memory of each cell, a line for every finished one; what is there is
not run again. `frozen` has the head learn from pooled features at the backbone's own size, beside LogisticRegression (C
by three folds) on the same features and known entries. `tuned` compares that at one size (--size) with the last
--stages of the backbone learning along, from augmented pictures, for --epochs. Seconds of a frozen cell are without
those of the features, which are made once (a row of their own); it learns for as many epochs as the default recipe
says. `pooled` compares means, largest values and WELDON's regions as features of the frozen backbone.
"""

# Long because it is four small benchmarks of one thing.

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402

from partly import Dataset, Labels, PerLabel, engine, metrics, read, scenarios  # noqa: E402
from partly.cli.features import features  # noqa: E402
from partly.cli.options import DataOptions  # noqa: E402
from partly.clock import Draw  # noqa: E402
from partly.images.augmentation import Augmentation  # noqa: E402
from partly.images.worker import ImageLocation  # noqa: E402
from partly.items import ImageFiles, ImageSource, as_items  # noqa: E402

Cell = dict[str, Any]
METHODS = ("bce", "em-apl", "cls", "curriculum", "imcl")
WORKERS = 2
ALL = "all"  # labels are known


def main() -> None:
    options = parsed()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if options.cell:
        print(json.dumps(measured(options, json.loads(options.cell))))
    elif options.what == "decode":
        decoding(options)
    elif options.what == "mapped":
        mapped(options)
    else:
        collect(options)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["decode", "mapped", "frozen", "tuned", "pooled"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--size", type=int)
    parser.add_argument("--times", type=int, default=1, help="enlarge the pictures before they are decoded")
    parser.add_argument("--pictures", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--stages", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("pictures.jsonl"))
    parser.add_argument("--cell", help="measure one cell in this process")
    options = parser.parse_args()
    options.size = options.size or {"frozen": None, "tuned": 128}.get(options.what, 224)
    return options


# -------------------------------------------------------------------- decoding

PILLOW = """
import sys
from PIL import Image
size, resized, *paths = sys.argv[1:]
size = int(size)
for line in sys.stdin:
    for path in paths:
        with Image.open(path) as image:
            factor = max(1, min(image.size) / size)
            image.draft(None, [-int(-side // factor) for side in image.size])
            image = image.convert("RGB")
            if resized == "resized":
                side = min(image.size)
                left, top = (image.width - side) / 2, (image.height - side) / 2
                image = image.resize((size, size), Image.Resampling.BILINEAR, (left, top, left + side, top + side))
                image.tobytes()
    print(flush=True)
"""


def decoding(options: argparse.Namespace) -> None:
    os.environ["PARTLY_WORKERS"] = str(WORKERS)
    with tempfile.TemporaryDirectory() as folder:
        paths = sorted(map(str, options.data.iterdir()))[: options.pictures]
        if options.times > 1:
            paths = [enlarged(path, options.times, folder) for path in paths]
        compare(options, paths)


def enlarged(path: str, times: int, folder: str) -> str:
    """The same picture with so many times the pixels along a side, in a folder."""
    with Image.open(path) as image:
        image.resize((image.width * times, image.height * times)).save(f"{folder}/{Path(path).name}", quality=90)
    return f"{folder}/{Path(path).name}"


def compare(options: argparse.Namespace, paths: list[str]) -> None:
    items = ImageFiles(ImageSource(list(map(ImageLocation, paths)), paths, "")).resize(options.size)
    parts = torch.arange(len(items)).split(64)
    rows = {
        "Pillow, decoded": by_pillow(paths, options.size, "whole"),
        "Pillow, decoded and resized": by_pillow(paths, options.size, "resized"),
        "partly, as they are": lambda: deque(items.stream(parts), 0),
        "partly, augmented": lambda: deque(items.augment(Augmentation()).stream(parts, Draw(0, 0)), 0),
    }
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    for _ in range(options.rounds + 1):
        for name, go in rows.items():
            before = time.perf_counter(), processor()
            go()
            took[name].append((time.perf_counter() - before[0], processor() - before[1]))
    print(f"{len(items)} pictures, {options.times} times as large, at {options.size} px")
    print(f"{WORKERS} processes, medians of {options.rounds} rounds")
    print(f"{'':28} {'a second':>9} {'of decoded':>16} {'of resized':>16}")
    for name, its in took.items():
        speed = len(items) / statistics.median(seconds for seconds, _ in its[1:])  # the first round warms up
        print(f"{name:28} {speed:9.0f}", *(shares(took[one], its) for one in list(rows)[:2]))
    print("Shares are of pictures a second and, in brackets, a second of processor time, whoever spends it.")


def shares(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> str:
    each = [[a[i] / b[i] for a, b in zip(one[1:], other[1:], strict=True)] for i in (0, 1)]
    return "{:8.0%} ({:4.0%})".format(*map(statistics.median, each))


def processor() -> float:
    """Seconds that this process and its children have had."""
    lists = Path("/proc/self/task").glob("*/children")
    children = [Path("/proc", pid, "stat").read_text() for one in lists for pid in one.read_text().split()]
    ticks = [sum(map(int, stat.rpartition(")")[2].split()[11:13])) for stat in children]
    return time.process_time() + sum(ticks) / os.sysconf("SC_CLK_TCK")


def by_pillow(paths: list[str], size: int, how: str) -> Callable[[], None]:
    """All of them, shared between processes that wait to be told."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PILLOW, str(size), how]
    each = [subprocess.Popen([*command, *paths[i::WORKERS]], stdin=pipe, stdout=pipe) for i in range(WORKERS)]

    def go() -> None:
        for process in each:
            process.stdin.write(b"\n")
            process.stdin.flush()
        for process in each:
            process.stdout.readline()

    return go


# -------------------------------------------------------------------- mapped features


def mapped(options: argparse.Namespace) -> None:
    data = made_features(options, {"backbone": "efficientnet-lite0", "size": options.size})
    observed = scenarios.parse("uniform:0.1")(data.labels, 0, None)
    sides = {"in memory": as_items(data.items.take(slice(None)).numpy().copy()), "from the folder": data.items}
    took: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.rounds + 1):
        for name, items in sides.items():
            made = engine.resolve(engine.TrainConfig("em-apl", "linear", start="random"), (items, observed))
            begun = time.process_time()
            engine.fit(made)
            took[name].append(time.process_time() - begun)
    memory, folder = (its[1:] for its in took.values())  # the first round warms up
    ratio = statistics.median(b / a for a, b in zip(memory, folder, strict=True))
    size = f"{data.items.shape[0]} features of {len(data.items)} items, {made.config.epochs} epochs"
    print(f"{size}: {ratio:.3f} of in memory")


# -------------------------------------------------------------------- cells


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """The most telling ones first."""
    if options.what == "frozen":
        for backbone in ("efficientnet-lite2", "efficientnet-lite0"):
            for scenario in ("uniform:0.1", "uniform:0.3", ALL):
                for row in ("bce", "auto", "LR"):
                    yield {"backbone": backbone, "stages": 0, "scenario": scenario, "row": row, "seed": 0}
        return
    if options.what == "pooled":
        for seed, pooling, scenario, row in product(
            range(options.seeds), ("gap", "gmp", "weldon"), ("uniform:0.1", ALL), ("bce", "LR")
        ):
            where = {"backbone": "efficientnet-lite0", "size": options.size, "stages": 0, "pooling": pooling}
            yield where | {"scenario": scenario, "row": row, "seed": seed}
        return
    for seed in range(options.seeds):
        yield from tuned_cells(options, seed)


def tuned_cells(options: argparse.Namespace, seed: int) -> Iterator[Cell]:
    for scenario, rows in ((ALL, METHODS[:1]), ("uniform:0.1", METHODS), ("single-positive", METHODS)):
        # Where no no is known, cross-entropy on known entries has nothing to tell apart: beside it unknown as no.
        for row in ("assume-negative", *rows) if scenario == "single-positive" else rows:
            for stages in (0, options.stages):
                epochs = {"epochs": options.epochs} if stages else {}
                where = {"backbone": "efficientnet-lite0", "size": options.size, "stages": stages}
                yield where | epochs | {"scenario": scenario, "row": row, "seed": seed}


def collect(options: argparse.Namespace) -> None:
    """Each cell in a process of its own, so that its memory is its own too."""
    for cell in cells(options):
        there = [json.loads(text) for text in options.out.read_text().splitlines()] if options.out.exists() else []
        if any(line["cell"] == cell for line in there):
            continue
        words = [sys.executable, *sys.argv, "--cell", json.dumps(cell)]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout) if done.returncode == 0 else {"mAP": None, "status": done.returncode}
        with options.out.open("a") as file:
            file.write(json.dumps({"cell": cell, **found}) + "\n")
        print(*cell.values(), found, flush=True)


def measured(options: argparse.Namespace, cell: Cell) -> dict[str, float]:
    data = read(options.data, labels=options.data.with_suffix(".csv"))
    if not cell["stages"]:
        data = made_features(options, cell)
    observed = data.labels
    if cell["scenario"] != ALL:
        observed = scenarios.parse(cell["scenario"])(data.labels, cell["seed"], None)
    assert data.test is not None
    begun = time.perf_counter(), time.process_time()
    scores = logistic(data, observed) if cell["row"] == "LR" else learned(data, observed, cell)
    seconds, of_processor = time.perf_counter() - begun[0], time.process_time() - begun[1]
    return {
        "mAP": float(np.nanmean(metrics.average_precision(scores, data.test.labels))),
        "seconds": round(seconds, 1),
        "processor seconds": round(of_processor, 1),  # without those of the processes that decode
        "peak MB": round(peak()),
    }


def made_features(options: argparse.Namespace, cell: Cell) -> Dataset:
    """By the backbone as it comes, once for all cells."""
    size, pooling = cell.get("size"), cell.get("pooling")
    folder = options.out.parent / f"{cell['backbone']}-{size or 'own'}{f'-{pooling}' if pooling else ''}"
    settings = {"size": size} | ({"pooling": pooling} if pooling else {})
    setting = [f"{name}={value}" for name, value in settings.items() if value is not None]
    reading = DataOptions(size=size)
    features(str(options.data), folder, cell["backbone"], setting, reading=reading, device="cpu")
    return read(folder, labels=options.data.with_suffix(".csv"))


def learned(data: Dataset, observed: Labels, cell: Cell) -> np.ndarray:
    """Test scores [N, L]."""
    asked = {"method": cell["row"], "head": "auto" if cell["row"] == "auto" else "linear", "seed": cell["seed"]}
    items, test = data.items, data.test.items
    if cell["stages"]:
        asked |= {"backbone": cell["backbone"], "epochs": cell["epochs"], "batch_size": 16}
        asked["backbone_settings"] = {"freeze": cell["stages"], "size": cell["size"]}
        items = items.resize(cell["size"])
    return engine.fit(engine.resolve(engine.TrainConfig(**asked), (items, observed))).logits(test)


def logistic(data: Dataset, observed: Labels) -> np.ndarray:
    x, test = (part.items.take(slice(None)).numpy() for part in (data, data.test))
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-8)
    grid = {"C": [1e-4, 1e-3, 1e-2, 0.1, 1.0]}
    model = PerLabel(GridSearchCV(LogisticRegression(), grid, scoring="neg_log_loss", cv=3), progress=False)
    return model.fit((x - mean) / scale, observed).predict_proba((test - mean) / scale)


def peak() -> float:
    """MB of this process; those that decode are not in it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


if __name__ == "__main__":
    main()
