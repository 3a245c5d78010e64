"""Time per step of every method, loop included, over plain hand-written torch BCE on the same network.

    python benchmarks/step.py [--head mlp] [--rounds 7] [--methods bce,cls[ramp=0]] [--parts]

Both sides train the same layers with the same optimizer on 5,717 x 1,280 features and 20 labels at batch 128, step by
step also where a head could be solved. The plain side standardises its features once, picks rows by index_select and
asks for no number. The epochs of the two sides alternate; a row is the best epoch of each in seconds of CPU, since a
busy machine slows some more than others, and the median of the ratios of neighbouring epochs beside it. The plain side
computes what `assume-negative` does; other methods have other losses. `--parts`: beside each method, what its step
takes without some parts of it, which the plain side has no use for.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import torch
from torch.nn import functional as F

from partly import methods
from partly.clock import Clock
from partly.comparison.plan import method_and_settings
from partly.engine import build_method, make_config, training
from partly.items import as_items
from partly.labels import Labels
from partly.method import Task
from partly.networks import Standardize, find_head
from partly.pool import Pool

ITEMS, WIDTH, LABELS, BATCH = 5717, 1280, 20, 128
PARTS = {
    "standardising": patch.object(Standardize, "forward", lambda self, x: x),
    "the seed": patch.object(training, "_seed", lambda seed: None),
    "the rate": patch.object(Task, "rate", lambda self, clock: self.lr),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--head", default="mlp")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--methods", default="")
    parser.add_argument("--parts", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = as_items(rng.normal(size=(ITEMS, WIDTH)).astype(np.float32))
    z = rng.choice([-1, 0, 1], size=(ITEMS, LABELS), p=[0.09, 0.9, 0.01]).astype(np.int8)
    pool = Pool(x, Labels.from_ternary(z), BATCH)
    columns = f"{'method':24} {'ms per step':>10} {'over plain':>11} {'median':>8}"
    print(f"{columns}   ({options.head}, {options.rounds} rounds)")
    for name in options.methods.split(",") if options.methods else methods.discover():
        mine, best, median = compare(name, options.head, pool, options.rounds)
        print(f"{name:24} {mine * 1e3:10.3f} {best:11.3f} {median:8.3f}", flush=True)
        for part, without in PARTS.items() if options.parts else ():
            with without:
                mine, best, median = compare(name, options.head, pool, options.rounds)
            print(f"{'  without ' + part:24} {mine * 1e3:10.3f} {best:11.3f} {median:8.3f}", flush=True)


def compare(name: str, head: str, pool: Pool, rounds: int) -> tuple[float, float, float]:
    """(seconds per step, ratio to plain of the best epochs, median of the ratios)."""
    plain, tried = plain_epoch(head, pool), method_epoch(name, head, pool)
    plain(), tried()  # warm up
    times = [(timed(plain), timed(tried)) for _ in range(rounds)]
    plainly, own = (min(each) for each in zip(*times, strict=True))
    return own / pool.steps, own / plainly, statistics.median(b / a for a, b in times)


def plain_epoch(head: str, pool: Pool) -> Callable[[], None]:
    """What one would write by hand."""
    network = build_method(make_config("bce", head, head_settings=by_steps(head)), pool.items, LABELS).network
    x = network.features[0](pool.items.take(slice(None)))
    network.features[0] = torch.nn.Identity()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.1, fused=True)
    y = torch.from_numpy((pool.labels.ternary() > 0).astype(np.float32))
    network.train()

    def run() -> None:
        for index in torch.randperm(len(x)).split(BATCH):
            loss = F.binary_cross_entropy_with_logits(network(x.index_select(0, index)), y.index_select(0, index))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    return run


def method_epoch(name: str, head: str, pool: Pool) -> Callable[[], None]:
    """The same through the contract and the loop: an epoch of an endless schedule."""
    method, settings = method_and_settings(name)
    made = build_method(
        make_config(method, head, settings=settings, head_settings=by_steps(head)), pool.items, LABELS, pool.labels
    )

    def run() -> None:
        training.train(made, pool, Clock(0, epochs=1, steps=pool.steps))

    return run


def by_steps(head: str) -> dict[str, bool]:
    return {"solve": False} if "solve" in find_head(head).settings else {}


def timed(run: Callable[[], None]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
