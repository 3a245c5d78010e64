"""What `partly predict` takes for few items and for many: memory must not follow their number.

    python benchmarks/predict.py [pictures] [texts] [labels]
    python benchmarks/predict.py --by-hand

A row per size: peak resident memory of the process that predicts, and seconds. `pictures`: JPEGs of 320 x 240 in a
folder; `texts`: JSON lines of a kilobyte each; `labels`: features of 8 numbers and 5,000 labels, to `.csv` and to
`.parquet`. The growth in the last column is bytes for each further item: what the listing needs (a path, an id), and
not the item or its scores.

`--by-hand`: instead, scores of features in memory with a linear head (`prediction.logits`, `prediction.predict`) beside
what one would write by hand, `torch.addmm(...).sigmoid_()` on features that need no standardising: a row per size,
the least seconds of CPU of some turns of all three, one thread.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from partly import Classifier, Labels
from partly.cli.predict import predict_items
from partly.engine import build_method, make_config, prediction
from partly.items import as_items, texts

Written = Callable[[Path, int], Path]
SIZES = ((20_000, 1280, 20), (20_000, 512, 80), (100_000, 64, 20), (5_000, 512, 5_000))
WORDS = ["partly", "known", "label", "picture", "sheep", "unknown", "yes", "no", "between", "a"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=[])
    parser.add_argument("--by-hand", action="store_true")
    parser.add_argument("--of", nargs=3, help="predict in this process: RUN DATA OUT")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.of:
        run, data, out = options.of
        begun = time.perf_counter()
        predict_items(Path(run), data, Path(out))
        print(status("VmHWM"), time.perf_counter() - begun)
        return
    if options.by_hand:
        for size in SIZES:
            beside_hand(*size)
        return
    for kind in options.kinds or KINDS:
        model, written, sizes, outs = KINDS[kind]
        for out in outs:
            with tempfile.TemporaryDirectory() as folder:
                rows(kind, Path(folder), model(), written, sizes, out)


def rows(kind: str, folder: Path, model: Classifier, written: Written, sizes: tuple[int, int], out: str) -> None:
    """Print a row per size."""
    model.save(folder / "run")
    before: tuple[int, float] | None = None
    for count in sizes:
        data = written(folder, count)
        command = [sys.executable, __file__, "--of", str(folder / "run"), str(data), str(folder / out)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peak, seconds = map(float, done.stdout.split())
        grown = "" if before is None else f"{(peak - before[1]) * 2**20 / (count - before[0]):8.0f} B an item"
        print(f"{kind:9} {out:14} {count:7} items {peak:7.0f} MB {seconds:7.1f} s {grown}", flush=True)
        before = count, peak


def beside_hand(items: int, features: int, labels: int, turns: int = 7) -> None:
    """Print a row."""
    x = np.random.default_rng(0).standard_normal((items, features), np.float32)
    given, plain = as_items(x), torch.from_numpy(x)
    method = build_method(make_config("bce", "linear", head_settings={"solve": False}), given, labels)
    weight, bias = torch.randn(features, labels), torch.zeros(labels)

    def by_hand() -> None:
        with torch.inference_mode():
            torch.addmm(bias, plain, weight).sigmoid_()

    jobs = (by_hand, lambda: prediction.logits(method, given), lambda: prediction.predict(method, given))
    hand, logits, both = map(min, zip(*([seconds(job) for job in jobs] for _ in range(turns)), strict=True))
    size = f"{items} x {features} x {labels}"
    print(f"{size:22} by hand {hand * 1e3:6.0f} ms, logits {logits / hand:4.1f} x, probabilities {both / hand:4.1f} x")


def seconds(job: Callable[[], object]) -> float:
    begun = time.process_time()
    job()
    return time.process_time() - begun


def of_pictures() -> Classifier:
    x = np.random.default_rng(0).integers(0, 255, (8, 64, 64, 3), np.uint8)
    return Classifier("bce", "linear", epochs=1, progress=False).fit(x, labels(8, 20))


def of_texts() -> Classifier:
    said = texts(["a sheep", "no picture", "a label"])
    return Classifier("bce", "linear", epochs=1, progress=False).fit(said, labels(3, 20))


def of_features() -> Classifier:
    x = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
    return Classifier("assume-negative", "mlp", epochs=1, progress=False).fit(x, labels(30, 5000))


def labels(items: int, count: int) -> Labels:
    return Labels.from_full(np.random.default_rng(1).integers(0, 2, (items, count)))


def pictures(folder: Path, count: int) -> Path:
    made = folder / f"pictures-{count}"
    made.mkdir()
    rng = np.random.default_rng(0)
    for i in range(count):
        small = Image.fromarray(rng.integers(0, 255, (12, 16, 3), np.uint8))
        small.resize((320, 240), Image.Resampling.BILINEAR).save(made / f"picture-{i:06d}.jpg", quality=80)
    return made


def lines(folder: Path, count: int) -> Path:
    made, rng = folder / f"texts-{count}.jsonl", np.random.default_rng(0)
    with made.open("w") as file:
        for i in range(count):
            said = " ".join(WORDS[j] for j in rng.integers(0, len(WORDS), 180))
            file.write(json.dumps({"id": f"text {i:06d}", "text": said}) + "\n")
    return made


def features(folder: Path, count: int) -> Path:
    made = folder / f"features-{count}.npy"
    np.save(made, np.random.default_rng(0).normal(size=(count, 8)).astype(np.float32))
    return made


KINDS: dict[str, tuple[Callable[[], Classifier], Written, tuple[int, int], tuple[str, ...]]] = {
    "pictures": (of_pictures, pictures, (500, 3000), ("scores.csv",)),
    "texts": (of_texts, lines, (2000, 20000), ("scores.csv",)),
    "labels": (of_features, features, (2000, 20000), ("scores.csv", "scores.parquet")),
}


def status(what: str) -> float:
    """MB."""
    found = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in found if line.startswith(what)).split()[1]) / 1024


if __name__ == "__main__":
    main()
