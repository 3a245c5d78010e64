"""The heads that know of labels: time of a training step over that of `mlp`, and memory, at 80 and at 1,000 labels.

    python benchmarks/heads.py [--heads ml-gcn,label-transformer,c-tran,weldon] [--labels 80,1000] [--rounds 3]

A step is forward and backward on 64 items of 512 features, with a tenth of the entries known; for heads that take maps,
on 64 maps of 1,280 x 7 x 7, as EfficientNet-Lite makes them, of which `mlp` hears the mean. The two heads take turns,
and the ratio is the median over the rounds. Memory is the peak of a process of its own above where it stood before the
step, so it has the network's gradients and all that is kept for them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from partly import networks
from partly.items import as_items
from partly.labels import Labels
from partly.networks import Network

BATCH, WIDTH, ITEMS = 64, 512, 2000
MAPS = (1280, 7, 7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", default="ml-gcn,label-transformer,c-tran,weldon")
    parser.add_argument("--labels", default="80,1000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-of", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.memory_of:
        head, like, labels = options.memory_of
        print(memory(head, like, int(labels)))
        return
    print(f"{'head':18} {'labels':>8} {'ms per step':>10} {'over mlp':>9} {'MB':>7} {'MB of mlp':>10}")
    for labels in map(int, options.labels.split(",")):
        for head in options.heads.split(","):
            seconds, ratio = compare(head, labels, options.rounds)
            peaks = [peak_of(name, head, labels) for name in (head, "mlp")]
            print(f"{head:18} {labels:8} {seconds * 1e3:10.1f} {ratio:9.1f} {peaks[0]:7} {peaks[1]:10}", flush=True)


def compare(head: str, labels: int, rounds: int) -> tuple[float, float]:
    """(seconds per step, ratio to mlp)."""
    tried, plain = build(head, head, labels), build("mlp", head, labels)
    x = items_for(head)
    for network in (tried, plain):
        step(network, x, labels)  # warm up
    times = [
        (step(tried, x, labels), statistics.median(step(plain, x, labels) for _ in range(9))) for _ in range(rounds)
    ]
    return statistics.median(a for a, _ in times), statistics.median(a / b for a, b in times)


def items_for(head: str) -> Tensor:
    """A batch such as this head takes."""
    return torch.randn(BATCH, *MAPS) if networks.takes_maps(head) else torch.randn(BATCH, WIDTH)


def build(head: str, like: str, labels: int) -> Network:
    """This head, for items such as another one takes."""
    if networks.takes_maps(like):
        trunk, last = networks.find_head(head).make(MAPS[0], labels)
        pooled = [] if networks.takes_maps(head) else [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return Network(nn.Sequential(*pooled, trunk), last).train()
    rng = np.random.default_rng(0)
    observed = rng.choice([-1, 0, 1], size=(ITEMS, labels), p=[0.09, 0.9, 0.01]).astype(np.int8)
    return networks.build(
        as_items(torch.randn(ITEMS, WIDTH)), labels, head, observed=Labels.from_ternary(observed)
    ).train()


def step(network: Network, x: Tensor, labels: int) -> float:
    """Seconds of the processor for one forward and backward pass."""
    z = torch.randint(-1, 2, (BATCH, labels), dtype=torch.int8)
    start = time.process_time()
    network(x, z).sum().backward()
    return time.process_time() - start


def memory(head: str, like: str, labels: int) -> int:
    """MB at the peak of one step above where the process stood."""
    network, x = build(head, like, labels), items_for(like)
    Path("/proc/self/clear_refs").write_text("5")  # from here on the peak is counted anew
    before = peak()
    step(network, x, labels)
    return round(peak() - before)


def peak() -> float:
    """The most MB of memory that the process has had in use."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def peak_of(head: str, like: str, labels: int) -> int:
    command = [sys.executable, __file__, "--memory-of", head, like, str(labels)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
