"""The graph over labels: how a training step grows with the labels, and what 5,000 labels take in memory.

    python benchmarks/gnn.py [--hidden 128] [--rounds 7]

A step is forward and backward of `LabelGNN` at batch 64 and a fixed hidden size. Label counts take turns, and a row is
the median of the ratios to the neighbouring step with the fewest labels: at most the ratio of the label counts, if cost
grows no faster than linearly. Memory is the peak of the process above where it stood, at the default hidden size.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from pathlib import Path

import torch

from partly.networks import LabelGNN

BATCH = 64
LABELS = (80, 160, 320, 640)
MANY = 5000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    nets = {labels: LabelGNN(labels, options.hidden) for labels in LABELS}
    for labels, net in nets.items():
        step(net, labels)  # warm up
    times = [{labels: step(net, labels) for labels, net in nets.items()} for _ in range(options.rounds)]
    print(f"{'labels':>8} {'ms per step':>10} {'ratio':>8} {'linear':>8}   (hidden {options.hidden}, batch {BATCH})")
    for labels in LABELS:
        ratio = statistics.median(each[labels] / each[LABELS[0]] for each in times)
        seconds = statistics.median(each[labels] for each in times)
        print(f"{labels:8} {seconds * 1e3:10.1f} {ratio:8.2f} {labels / LABELS[0]:8.2f}")
    many = LabelGNN(MANY)
    before = resident()
    seconds = step(many, MANY)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    literal = BATCH * MANY * MANY * 4 / 2**20
    print(
        f"{MANY} labels, hidden {many.update.hidden_size}: {seconds:.1f} s a step, {peak - before:.0f} MB at the peak"
    )
    print(f"(one tensor of batch x labels x labels would be {literal:.0f} MB)")


def step(net: LabelGNN, labels: int) -> float:
    """Seconds of the processor for one forward and backward pass."""
    logits = torch.randn(BATCH, labels, requires_grad=True)
    start = time.process_time()
    net(logits).sum().backward()
    return time.process_time() - start


def resident() -> float:
    """MB of memory in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main()
