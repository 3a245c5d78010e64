"""The learner under the methods against tuned scikit-learn on the same known entries: test mAP and seconds.

    python benchmarks/learner.py [--data ../shared/data] [--sets scene,yeast] [--shares 0.05,0.1,0.3,1] [--heads
    linear,mlp]

A row per data set, share of known entries and head: mean test mAP over seeds of `bce` with that head, beside
LogisticRegression for each label on its known entries, standardised, with the best of several C *in hindsight*, and the
ratio of processor seconds: everything that our fit takes, choice of the strength included, over scikit-learn's fits for
all its C.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from partly import Dataset, Labels, metrics, read, run, scenarios  # noqa: E402

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SETS = "scene,yeast,voc2012,coco,corel5k,debtags,delicious"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--shares", default="0.05,0.1,0.3,1")
    parser.add_argument("--heads", default="linear,mlp")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--items", type=int, help="of the training part, at most")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    heads = options.heads.split(",")
    print(f"{'data':12} {'known':>6} {'sklearn':>8} {'best C':>7}", *(f"{head:>8} {'time':>6}" for head in heads))
    for name in options.sets.split(","):
        data = read(options.data / f"{name}.npz")
        data = data[: options.items] if options.items else data
        for share in map(float, options.shares.split(",")):
            row(name, data, share, heads, options.seeds)


def row(name: str, data: Dataset, share: float, heads: list[str], seeds: int) -> None:
    theirs, ours = [], {head: list[tuple[float, float]]() for head in heads}
    for seed in range(seeds):
        observed = data.labels if share == 1 else scenarios.uniform(data.labels, share, seed)
        theirs.append(scikit_learn(data, observed))
        for head in heads:
            ours[head].append(fitted(data, observed, head, seed))
    scores = {c: np.mean([found[0][c] for found in theirs]) for c in STRENGTHS}
    best = max(scores, key=lambda c: scores[c])
    seconds = sum(found[1] for found in theirs)
    cells = (f"{np.mean([s for s, _ in o]):8.4f} {sum(t for _, t in o) / seconds:6.2f}" for o in ours.values())
    print(f"{name:12} {share:6.0%} {scores[best]:8.4f} {best:7g}", *cells, flush=True)


def fitted(data: Dataset, observed: Labels, head: str, seed: int) -> tuple[float, float]:
    """(test mAP, seconds)."""
    begun = time.process_time()
    asked = {"method": "bce", "head": head, "optimizer": "adamw", "seed": seed}
    recipe, _ = run.complete(asked, data.items, observed)
    model = run.fit(recipe, data.items, observed)
    seconds = time.process_time() - begun
    assert data.test is not None
    return metrics.evaluate(model.predict(data.test.items), data.test.labels)["mAP"], seconds


def scikit_learn(data: Dataset, observed: Labels) -> tuple[dict[float, float], float]:
    """(test mAP by C, seconds of all fits)."""
    assert data.test is not None
    x, test = (part.items.take(slice(None)).numpy() for part in (data, data.test))
    scale = np.maximum(x.std(axis=0), 1e-8)
    x, test = (x - x.mean(axis=0)) / scale, (test - x.mean(axis=0)) / scale
    z, found, seconds = observed.rows(slice(None)), {}, 0.0
    for c in STRENGTHS:
        scores = np.zeros((len(test), z.shape[1]), np.float32)
        for j in range(z.shape[1]):
            rows = np.flatnonzero(z[:, j])
            if len({*z[rows, j]}) < 2:
                continue
            begun = time.process_time()
            model = LogisticRegression(C=c).fit(x[rows], z[rows, j] > 0)
            seconds += time.process_time() - begun
            scores[:, j] = model.predict_proba(test)[:, 1]
        found[c] = metrics.evaluate(scores, data.test.labels)["mAP"]
    return found, seconds


if __name__ == "__main__":
    main()
