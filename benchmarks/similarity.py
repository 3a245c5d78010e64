"""Joint non-negative OMP against a loop over the items, and a step of `imcl` against plain binary cross-entropy.

    python benchmarks/similarity.py

Both sides of a ratio run in turn, on one thread; the median of the ratios is printed. The loop is the plain way to
write it: an item at a time, NumPy products with all atoms, SciPy's NNLS; it is timed on a part of the items.
"""

from __future__ import annotations

import statistics

import numpy as np
import torch
from scipy.optimize import nnls
from step import method_epoch, timed

from partly.items import as_items
from partly.labels import Labels
from partly.pool import Pool
from partly.similarity import joint_nonnegative_omp

ITEMS, ATOMS, WIDTH, LABELS, K = 256, 5000, 1280, 80, 5
LOOPED = 8  # items that the loop is timed on
ROUNDS = 3
Arrays = list[np.ndarray]


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    features = [np.maximum(rng.normal(size=(n, WIDTH)), 0).astype(np.float32) for n in (ITEMS, ATOMS)]
    labels = [rng.choice([-0.5, 1.0], p=[0.9, 0.1], size=(n, LABELS)).astype(np.float32) for n in (ITEMS, ATOMS)]
    arrays = [features[0], labels[0], features[1], labels[1]]
    tensors = [torch.from_numpy(array) for array in arrays]
    few = [features[0][:LOOPED], labels[0][:LOOPED], *arrays[2:]]

    def batched() -> None:
        joint_nonnegative_omp(*tensors, K, 1.0, 0.5)

    batched()
    times = [(timed(batched), timed(lambda: looped(few)) * ITEMS / LOOPED) for _ in range(ROUNDS)]
    mine, ratio = statistics.median(a for a, _ in times), statistics.median(b / a for a, b in times)
    print(
        f"JNOMP, {ITEMS} items x {ATOMS} atoms: {mine:.3f} s, {ratio:.1f} x faster than the loop (at least 20)",
        flush=True,
    )
    for head in ("mlp", "linear"):
        print(f"imcl, {head}, batch 32: {step_ratio(head):.2f} x plain BCE a step (mlp: at most 3)", flush=True)


def looped(arrays: Arrays) -> None:
    """One item at a time."""
    f, y, atoms_f, atoms_y = arrays
    squares_f, squares_y = (atoms_f**2).sum(axis=1), (atoms_y**2).sum(axis=1)
    for i in range(len(y)):
        rest_f, rest_y, chosen = f[i], y[i], []
        for _ in range(K):
            a, b = atoms_y @ rest_y, atoms_f @ rest_f
            scores = a**2 / squares_y + 0.5 * b**2 / squares_f
            scores[chosen] = -np.inf
            best = int(scores.argmax())
            if a[best] <= 0 or b[best] <= 0:
                break
            chosen.append(best)
            rest_y = y[i] - nnls(atoms_y[chosen].T, y[i])[0] @ atoms_y[chosen]
            rest_f = f[i] - nnls(atoms_f[chosen].T, f[i])[0] @ atoms_f[chosen]


def step_ratio(head: str) -> float:
    rng = np.random.default_rng(0)
    x = as_items(rng.normal(size=(320, WIDTH)).astype(np.float32))
    z = rng.choice([-1, 0, 1], size=(320, 20), p=[0.09, 0.9, 0.01]).astype(np.int8)
    pool = Pool(x, Labels.from_ternary(z), 32)
    plain, tried = (method_epoch(name, head, pool) for name in ("bce", "imcl"))
    plain(), tried()
    return statistics.median(timed(tried) / timed(plain) for _ in range(ROUNDS))


if __name__ == "__main__":
    main()
