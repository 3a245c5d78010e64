"""How work grows with items, labels and features: the slope of log(seconds) over log(size).

    python benchmarks/growth.py [NAME ...] [--of items labels features] [--doublings 2] [--rounds 3] [--scale 1]

A row per method and per dimension: seconds at each size, twice as much each time with all else as it was, and the
slope of a line through them; 1 is linear. Seconds are those of the processor in one thread, so that other programs
hardly count, the least of some rounds; the first run of all is not counted. Methods train for as many epochs as they
need to get past their warm-up. `bce` is trained by steps, and the linear head of `bce-solved` is solved. `predict` and
`evaluate` go through blocks. The same share of all entries is known at every size.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch

from partly import Labels, engine, metrics
from partly.items import Items, as_items
from partly.labels.scored import enumerate_rows, gather_known

DIMENSIONS = ("items", "labels", "features")
Size = tuple[int, int, int]  # items, labels, features
# From where each starts. As large as a round of a few seconds allows: below, what costs the same at any size would
# flatten the slope.
BASE: dict[str, Size] = {
    "bce": (4000, 500, 64),
    "bce-solved": (2000, 50, 32),
    "em-apl": (2000, 500, 64),
    "cls": (2000, 500, 64),
    "role": (2000, 500, 64),
    "imcl": (1000, 200, 64),
    "refine": (1000, 200, 64),
    "leml": (1000, 200, 64),
    "auto": (400, 20, 32),
    "predict": (8000, 1000, 64),
    "evaluate": (20000, 1000, 64),
}
EPOCHS = {"em-apl": 4, "cls": 2, "role": 2, "imcl": 2, "refine": 2, "leml": 2}
KNOWN = 0.1  # share of entries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(BASE))
    parser.add_argument("--of", nargs="+", default=DIMENSIONS, choices=DIMENSIONS)
    parser.add_argument("--doublings", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the first size")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'what':10} {'grows':9} {'from':>22} {'seconds':>30} {'exponent':>9}")
    for name in options.names:
        base = tuple(max(8, round(size * options.scale)) for size in BASE[name])
        seconds(name, base)
        for dimension in options.of:
            at = DIMENSIONS.index(dimension)
            sizes = [(*base[:at], base[at] * 2**k, *base[at + 1 :]) for k in range(options.doublings + 1)]
            found = [min(seconds(name, size) for _ in range(options.rounds)) for size in sizes]
            words = " ".join(f"{value:.2f}" for value in found)
            slope = np.polyfit(np.log([size[at] for size in sizes]), np.log(found), 1)[0]
            print(f"{name:10} {dimension:9} {' x '.join(map(str, base)):>22} {words:>30} {slope:9.2f}", flush=True)


def seconds(name: str, size: Size) -> float:
    job = work(name, *made(*size, wholly=name == "refine"))
    begun = time.process_time()
    job()
    return time.process_time() - begun


def made(items: int, labels: int, features: int, wholly: bool) -> tuple[Items, Labels]:
    """Some features, and labels that depend on them, of which a share is known; wholly: every 50th item is known
    wholly, for who needs such."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((items, features), np.float32)
    y = x @ rng.standard_normal((features, labels), np.float32) > features**0.5
    known = rng.random(y.shape) < KNOWN
    known[::50] |= wholly
    return as_items(x), Labels.from_ternary(sp.csr_array(np.where(known, np.where(y, 1, -1), 0).astype(np.int8)))


def work(name: str, x: Items, labels: Labels) -> Callable[[], object]:
    """What is measured."""
    if name in ("predict", "evaluate"):
        few = engine.make_config("bce", "linear", epochs=1, batch_size=256, head_settings={"solve": False})
        fitted = engine.fit(engine.resolve(few, (x[:256], labels[:256])))
        if name == "predict":
            return lambda: deque(fitted.predict_blocks(x), maxlen=0)
        scores = gather_known(enumerate_rows(fitted.predict_blocks(x)), labels)
        return lambda: metrics.evaluate(scores, labels)
    if name == "auto":
        recipe, _ = engine.resolve_config(
            engine.TrainConfig(**{"method": "auto", "head": "auto", "seed": 0}), x, labels
        )
    else:
        plain = {"head_settings": {"solve": False}} if name == "bce" else {}
        method = name.removesuffix("-solved")
        recipe = engine.make_config(method, "linear", epochs=EPOCHS.get(name, 1), batch_size=256, **plain)
    return lambda: engine.fit(engine.resolve(recipe, (x, labels)))


if __name__ == "__main__":
    main()
