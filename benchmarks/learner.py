"""The learner under the methods against tuned scikit-learn on the same known entries: test mAP and seconds.

    python benchmarks/learner.py [--data ../shared/data] [--sets scene,yeast] [--shares 0.05,0.1,0.3,1] [--seeds 3]
        [--rows linear,mlp,default,LR,ET,MLP] [--items 2000] [--labels 60]

A row per data set and share of known entries (`uniform`): mean test mAP over seeds, and processor seconds of one fit.

`linear`, `mlp`: `bce` with that head. `default`: what `Classifier()` does. `LR`: LogisticRegression for each label on
its known entries, standardised, with the best of five C *in hindsight*; its seconds are those of all five. `ET`: 200
extremely randomised trees with leaves of 2 for each label, `MLP`: MLPClassifier for each label. `time` is the ratio of
seconds (ours with the choice of the strength) to those of LR. Data sets are cut to --items items and --labels labels.
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
from sklearn.ensemble import ExtraTreesClassifier  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402

from partly import Dataset, Labels, engine, metrics, read, scenarios  # noqa: E402

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SETS = "scene,yeast,voc2012,coco,corel5k,debtags,delicious"
OURS = {"linear": ("bce", "linear"), "mlp": ("bce", "mlp"), "kernel": ("bce", "kernel"), "default": ("auto", "auto")}
Found = tuple[dict[str, float], float]  # test mAP by what was tried, and seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--shares", default="0.05,0.1,0.3,1")
    parser.add_argument("--rows", default="linear,mlp,default,LR,ET,MLP")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--items", type=int, help="of the training part, at most")
    parser.add_argument("--labels", type=int, help="at most")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = options.rows.split(",")
    print(f"{'data':10} {'known':>5} {'best C':>6}", *(f"{row:>8} {'time':>5}" for row in rows), flush=True)
    gaps: dict[str, list[float]] = {}
    for name in options.sets.split(","):
        data = cut(read(options.data / f"{name}.npz"), options.items, options.labels)
        for share in map(float, options.shares.split(",")):
            if round(share * data.labels.shape[1]) < 1:
                print(f"{name:10} {share:5.0%} is less than one label of an item", flush=True)
                continue
            for row, gap in line(name, data, share, rows, options.seeds).items():
                gaps.setdefault(row, []).append(gap)
    for row, found in gaps.items():
        print(f"{row}: {np.mean(found):+.4f} on average, {min(found):+.4f} at worst, in {len(found)} cells")


def cut(data: Dataset, items: int | None, labels: int | None) -> Dataset:
    if labels is None or labels >= data.labels.shape[1]:
        return data[:items] if items else data
    assert data.test is not None
    kept = np.sort(np.random.default_rng(0).permutation(data.labels.shape[1])[:labels])
    parts = (data[:items] if items else data, data.test)
    train, test = (Dataset(part.items, Labels.from_ternary(part.labels.rows(slice(None))[:, kept])) for part in parts)
    return Dataset(train.items, train.labels, test=test)


def line(name: str, data: Dataset, share: float, rows: list[str], seeds: int) -> dict[str, float]:
    """Print one; how far ours are above what they are to be measured by."""
    found: dict[str, list[Found]] = {row: [] for row in rows}
    for seed in range(seeds):
        observed = data.labels if share == 1 else scenarios.uniform(data.labels, share, seed)
        for row in rows:
            found[row].append(ours(data, observed, row, seed) if row in OURS else theirs(data, observed, row, seed))
    scores = {row: best_of([one[0] for one in some]) for row, some in found.items()}
    seconds = {row: float(np.mean([one[1] for one in some])) for row, some in found.items()}
    plain = seconds.get("LR", float("nan"))
    cells = (f"{scores[row][1]:8.4f} {seconds[row] / plain:5.2f}" for row in rows)
    print(f"{name:10} {share:5.0%} {scores['LR'][0] if 'LR' in scores else '':>6}", *cells, flush=True)
    scikit = {row: scores[row][1] for row in rows if row not in OURS}
    gaps = {}
    if "linear" in scores and "LR" in scikit:
        gaps["linear - LR"] = scores["linear"][1] - scikit["LR"]
    if {"mlp", "linear"} <= scores.keys():
        gaps["mlp - linear"] = scores["mlp"][1] - scores["linear"][1]
    if "default" in scores and scikit:
        gaps["default - best of scikit-learn"] = scores["default"][1] - max(scikit.values())
    return gaps


def best_of(tried: list[dict[str, float]]) -> tuple[str, float]:
    """What has the best mean over seeds, and that."""
    means = {what: float(np.mean([one[what] for one in tried])) for what in tried[0]}
    return max(means.items(), key=lambda pair: pair[1])


def mean_ap(scores: np.ndarray, data: Dataset) -> float:
    assert data.test is not None
    return float(np.nanmean(metrics.average_precision(scores, data.test.labels)))


def ours(data: Dataset, observed: Labels, row: str, seed: int) -> Found:
    begun = time.process_time()
    method, head = OURS[row]
    recipe, _ = engine.resolve_config(
        engine.TrainConfig(**{"method": method, "head": head, "seed": seed}), data.items, observed
    )
    model = engine.fit(engine.resolve(recipe, (data.items, observed)))
    seconds = time.process_time() - begun
    assert data.test is not None
    return {"": mean_ap(model.logits(data.test.items), data)}, seconds


def theirs(data: Dataset, observed: Labels, row: str, seed: int) -> Found:
    """A classifier for each label on its known entries."""
    assert data.test is not None
    x, test = (part.items.take(slice(None)).numpy() for part in (data, data.test))
    scale = np.maximum(x.std(axis=0), 1e-8)
    x, test = (x - x.mean(axis=0)) / scale, (test - x.mean(axis=0)) / scale
    z, found, seconds = observed.rows(slice(None)), {}, 0.0
    for strength in STRENGTHS if row == "LR" else (1.0,):
        scores = np.zeros((len(test), z.shape[1]), np.float32)
        for j in range(z.shape[1]):
            rows = np.flatnonzero(z[:, j])
            if len({*z[rows, j].tolist()}) < 2:
                continue
            begun = time.process_time()
            model = made(row, strength, seed).fit(x[rows], z[rows, j] > 0)
            seconds += time.process_time() - begun
            scores[:, j] = model.predict_proba(test)[:, 1]
        found[f"{strength:g}"] = mean_ap(scores, data)
    return found, seconds


def made(row: str, strength: float, seed: int) -> LogisticRegression | ExtraTreesClassifier | MLPClassifier:
    if row == "LR":
        return LogisticRegression(C=strength)
    if row == "ET":
        return ExtraTreesClassifier(200, min_samples_leaf=2, random_state=seed)
    return MLPClassifier((100,), alpha=1e-2, max_iter=200, random_state=seed)


if __name__ == "__main__":
    main()
