"""The look-ahead gradient of pseudo-labels over double backward, and a step of `refine` over plain BCE.

    python benchmarks/lookahead.py [--rounds 15]

On a 2048-512-512-80 MLP at batch 128, with as many validation items and with 32. Double backward is timed twice: down
to the pseudo-labels alone, and as `loss.backward()` does it, down to all weights too. The sides take turns in processor
time; a row is the median of the ratios of neighbours, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call

from partly.clock import Clock
from partly.engine import build_method, make_config, training
from partly.items import as_items
from partly.labels import Labels
from partly.lookahead import pseudo_label_gradient
from partly.losses import bce, cross_entropy
from partly.networks import mlp
from partly.pool import Pool

WIDTH, LABELS, BATCH, ITEMS, LR = 2048, 80, 128, 1280, 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = nn.Sequential(*mlp.head(WIDTH, LABELS)).eval()
    x, pseudo = torch.randn(BATCH, WIDTH), torch.rand(BATCH, LABELS)
    print(f"{'':44} {'ms':>8} {'ratio':>8}   (median of {rounds})")
    for items in (BATCH, 32):
        x_val, z_val = torch.randn(items, WIDTH), torch.randint(0, 2, (items, LABELS), dtype=torch.int8) * 2 - 1
        given = network, x, pseudo, x_val, z_val
        forward = lambda given=given: pseudo_label_gradient(*given, LR)  # noqa: E731
        for all_weights in (False, True):
            double = lambda given=given, every=all_weights: double_backward(*given, every)  # noqa: E731
            torch.testing.assert_close(double(), forward(), rtol=1e-3, atol=1e-9)
            what = f"double backward, {items} validation items{', all weights' if all_weights else ''}"
            report(what, forward, double, rounds)
    plain, refine = epoch("bce"), epoch("refine")
    plain(), refine()  # warm up
    report("epoch of refine over bce", plain, refine, max(3, rounds // 3))


def double_backward(
    network: nn.Module, x: Tensor, pseudo: Tensor, x_val: Tensor, z_val: Tensor, all_weights: bool
) -> Tensor:
    pseudo = pseudo.clone().requires_grad_()
    weights = dict(network.named_parameters())
    loss = cross_entropy(network(x), pseudo).mean()
    slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
    ahead = {name: weight - LR * slope for (name, weight), slope in zip(weights.items(), slopes, strict=True)}
    after = bce(functional_call(network, ahead, (x_val,)), z_val).mean()
    return torch.autograd.grad(after, [pseudo, *(weights.values() if all_weights else ())])[0]


def epoch(method: str) -> Callable[[], object]:
    """An epoch of a method, loop included, on items of which one in 16 is wholly known."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ITEMS, WIDTH, generator=generator)
    z = torch.where(torch.rand(ITEMS, LABELS, generator=generator) < 0.5, -1, 0)
    z[::16] = torch.where(x[::16, :LABELS] > 1, 1, -1)
    pool = Pool(as_items(x), Labels.from_ternary(z.numpy()), BATCH)
    built = build_method(make_config(method), pool.items, LABELS, pool.labels)
    return lambda: training.train(built, pool, Clock(0, epochs=1, steps=pool.steps))


def report(what: str, base: Callable[[], object], tried: Callable[[], object], rounds: int) -> None:
    times = [(timed(base), timed(tried)) for _ in range(rounds)]
    ratio = statistics.median(b / a for a, b in times)
    print(f"{what:44} {statistics.median(b for _, b in times) * 1e3:8.1f} {ratio:8.2f}", flush=True)


def timed(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
