"""What methods take on many labels of which few are known, beside the way that goes through all entries.

    python benchmarks/many_labels.py [--rounds 5]

Both ways take turns in one process with one thread; a row has the least seconds of CPU of each, and how many times as
long the plain way takes. `bce`: the loss and its gradient. `leml`: an epoch, which is a turn of both its systems.
`em-apl`: choosing the entries that get a belief, label after label by `selection.smallest` in the plain way.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from partly import Labels, engine, losses
from partly.clock import Clock
from partly.engine import training
from partly.items import as_items
from partly.losses import basic
from partly.methods import em_apl, leml
from partly.pool import Pool
from partly.selection import smallest

Job = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    rows: dict[str, tuple[Job, Job]] = {
        "bce, 128 x 5,000, 0.5 % known": sparse_and_dense(basic, loss(128, 5000, 0.005)),
        "leml, 4,000 x 1,000, 0.5 % known": sparse_and_dense(leml, turn(4000, 1000, 0.005)),
        "leml, 64 x 5,000, 0.5 % known": sparse_and_dense(leml, turn(64, 5000, 0.005)),
        "em-apl, 2,000 x 1,000": chosen(2000, 1000),
        "em-apl, 2,000 x 5,000": chosen(2000, 5000),
    }
    print(f"{'':34} {'plain, s':>9} {'now, s':>9} {'plain / now':>12}")
    for name, (now, plain) in rows.items():
        taken = [(seconds(plain), seconds(now)) for _ in range(rounds + 1)][1:]  # the first turn warms up
        plainly, own = (min(each) for each in zip(*taken, strict=True))
        print(f"{name:34} {plainly:9.4f} {own:9.4f} {plainly / own:12.1f}", flush=True)


def sparse_and_dense(module: object, job: Job) -> tuple[Job, Job]:
    """The same as it is, and with nothing taken for few."""

    def with_few(share: float) -> None:
        before, module.FEW = module.FEW, share  # type: ignore[attr-defined]
        try:
            job()
        finally:
            module.FEW = before  # type: ignore[attr-defined]

    return job, partial(with_few, 0.0)


def known(items: int, labels: int, share: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.where(rng.random((items, labels)) < share, rng.choice([-1, 1], (items, labels)), 0).astype(np.int8)


def loss(items: int, labels: int, share: float) -> Job:
    z, logits = torch.from_numpy(known(items, labels, share)), torch.randn(items, labels, requires_grad=True)
    return lambda: torch.autograd.grad(losses.bce(logits, z).mean(), logits)


def turn(items: int, labels: int, share: float, features: int = 64) -> Job:
    x = as_items(np.random.default_rng(1).standard_normal((items, features), np.float32))
    z = Labels.from_ternary(sp.csr_array(known(items, labels, share)))
    pool = Pool(x, z, 256)

    def job() -> None:
        made = engine.build_method(engine.make_config("leml", "linear", epochs=1, batch_size=256), x, labels, z)
        training.train(made, pool, Clock(0, epochs=1, steps=made.steps(pool)))

    return job


def chosen(items: int, labels: int) -> tuple[Job, Job]:
    values = torch.randn(labels, items)
    among, counts = torch.rand(labels, items) < 0.9, torch.full((labels,), items // 4)

    def plain() -> Tensor:
        return torch.stack([smallest(*row, items // 4) for row in zip(values, among, strict=True)])

    assert torch.equal(plain(), em_apl.least(values, among, counts))
    return partial(em_apl.least, values, among, counts), plain


def seconds(job: Job) -> float:
    begun = time.process_time()
    job()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
