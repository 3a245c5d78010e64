"""Which criterion chooses well? Criteria on out-of-fold scores against mAP on clean test labels, over models that
differ in family and strength, on the shared data sets.

    python benchmarks/criteria.py [--data ../shared/data] [--sets scene,yeast,...] [--scenarios ...] [--items 1500]
                                  [--seed 0] [--out lines.jsonl] [--quick]

A cell is a data set x scenario x seed. In it every model is fitted to what the scenario leaves, once per fold for its
out-of-fold scores and once to all items for the test part. Spearman's correlation is over the models of a cell; regret
is how far the test mAP (in points) of the model that the criterion likes best lies below that of the best model.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.neighbors import NearestNeighbors

import partly
from partly import Labels, metrics, model_choice, priors, scenarios
from partly.solvers import folds, logistic

Array = np.ndarray[Any, Any]
SETS = "scene,yeast,voc2012,debtags,coco,corel5k,delicious"
SCENARIOS = "single-positive,positives:0.25,propensity,uniform:0.1"
SHARED = "average-precision-corrected, shared prior"
TRUE = "average-precision-corrected, true prior"
MOST_LABELS = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--items", type=int, default=1500, help="of the training part and of the test part, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a line of JSON per cell, added to what is there")
    parser.add_argument("--quick", action="store_true", help="one small cell, to see that all of it runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.quick:
        options.sets, options.scenarios, options.items = "scene", "uniform:0.3,single-positive", 300
    lines = [json.loads(line) for line in options.out.open()] if options.out and options.out.exists() else []
    done = {(line["set"], line["scenario"], line["seed"]) for line in lines}
    for name in options.sets.split(","):
        for scenario in options.scenarios.split(","):
            if (name, scenario, options.seed) in done:
                continue
            lines.append(cell(options.data / f"{name}.npz", scenario, options.items, options.seed))
            print(f"{name} {scenario}: {lines[-1]['seconds']:.0f} s", flush=True)
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    print(tables(lines))


# -------------------------------------------------------------------- one cell


def cell(path: Path, scenario: str, items: int, seed: int) -> dict[str, Any]:
    start = time.perf_counter()
    x, truth, x_test, test = taken(path, items)
    observed = scenarios.parse(scenario)(truth, seed)
    scores = dict(models(x, observed, x_test, seed))
    estimates = {
        name: {method: priors.estimate(held_out, observed, method) for method in estimators(observed)}
        for name, (held_out, _) in scores.items()
    }
    lowest = np.min([next(iter(found.values())) for found in estimates.values()], axis=0)
    yes = truth.counts()[0] / len(truth)
    values = {
        name: {criterion: model_choice.score(criterion, held_out, observed) for criterion in partly.criteria()}
        | {
            kind: model_choice.score("average-precision-corrected", held_out, observed, prior=prior.tolist())
            for kind, prior in ((SHARED, lowest), (TRUE, np.maximum(yes, observed.counts()[0] / len(truth))))
        }
        for name, (held_out, _) in scores.items()
    }
    best = max(scores, key=lambda name: values[name][model_choice.default(observed)])
    return {
        "set": path.stem,
        "scenario": scenario,
        "seed": seed,
        "mAP": {name: 100 * float(np.nanmean(metrics.average_precision(s, test))) for name, (_, s) in scores.items()},
        "criteria": values,
        "default": model_choice.default(observed),
        "priors": {method: off(found, yes) for method, found in estimates[best].items()},
        "seconds": time.perf_counter() - start,
    }


def taken(path: Path, items: int) -> tuple[Array, Labels, Array, Labels]:
    """Standardised features and truth of both parts: some items and labels of large sets, the same every time."""
    data = partly.read(path)
    rng = np.random.default_rng(12345)
    columns = np.sort(rng.permutation(data.labels.shape[1])[:MOST_LABELS])

    def part(data: Any) -> tuple[Array, Labels]:
        rows = np.sort(rng.permutation(len(data.items))[:items])
        features = np.asarray(data.items.take(torch.from_numpy(rows)), np.float32)
        return features, Labels.from_ternary(data.labels.rows(rows)[:, columns])

    (x, truth), (x_test, test) = part(data), part(data.test)
    mean, deviation = x.mean(axis=0), x.std(axis=0) + 1e-6
    x, x_test = (np.clip((a - mean) / deviation, -8, 8) for a in (x, x_test))
    return x - x.mean(axis=0), truth, x_test - x.mean(axis=0), test


def estimators(observed: Labels) -> list[str]:
    return ["observed"] if observed.counts()[1].any() else ["tice", "elkan-noto", "best-bin"]


def off(found: Array, truth: Array) -> list[float]:
    """Quartiles over labels of estimate / truth, and the mean of |log| of it."""
    there = truth > 0
    ratios = found[there] / truth[there]
    return [*map(float, np.quantile(ratios, [0.25, 0.5, 0.75])), float(np.abs(np.log(ratios)).mean())]


# ------------------------------------------------------- models: name -> out-of-fold and test scores, [N, L] each


def models(x: Array, observed: Labels, x_test: Array, seed: int) -> Iterator[tuple[str, tuple[Array, Array]]]:
    z = observed.rows(slice(None)).T
    targets = (z == 1).astype(np.float32)
    weights = (z != 0).astype(np.float32) if (z == -1).any() else np.ones_like(targets)
    fold = np.random.default_rng(seed).permutation(np.arange(len(x)) % 3)
    yield from solved("linear", x, x_test, weights, targets, fold, range(0, 9, 2))
    gap = np.median(np.linalg.norm(x[:200, None] - x[None, 200:400], axis=2))
    kernel = Nystroem(gamma=1 / gap**2, n_components=min(400, len(x)), random_state=seed).fit(x)
    curved, curved_test = (kernel.transform(part).astype(np.float32) for part in (x, x_test))
    mean = curved.mean(axis=0)
    yield from solved("rbf", curved - mean, curved_test - mean, weights, targets, fold, (2, 5, 8))
    for count in (10, 50):
        yield f"kNN {count}", crossed(partial(neighbors, count), x, x_test, weights, targets, fold)
    for leaf in (2, 10):
        yield f"forest {leaf}", crossed(partial(forest, leaf, seed), x, x_test, weights, targets, fold)
    yield "mlp", networks(6, seed, x, observed, x_test, fold)


def solved(
    name: str, x: Array, x_test: Array, weights: Array, targets: Array, fold: Array, places: Sequence[int]
) -> Iterator[tuple[str, tuple[Array, Array]]]:
    """Logistic regressions by the package's own solver, at some of its strengths."""
    turned = logistic.principal_axes(x)
    strengths = [folds.GRID[k] / float(turned.squares.sum()) for k in places]
    held_out = np.zeros((len(strengths), *weights.shape), np.float32)
    for k in range(fold.max() + 1):
        rows = np.flatnonzero(fold == k)
        seen = np.where(fold != k, weights, np.float32(0))
        for out, (w, _) in zip(held_out, logistic.regularization_path(turned, seen, targets, strengths), strict=True):
            out[:, rows] = turned.times(w, rows)
    bias = logistic.log_odds(weights, targets)  # of all entries: see `solving.folds`
    for place, out, pair in zip(
        places, held_out, logistic.regularization_path(turned, weights, targets, strengths), strict=True
    ):
        w, b = turned.to_original(*pair)
        yield f"{name} {place}", (out.T + bias, x_test @ w.T + b)


def crossed(fit: Callable[..., Array], x: Array, x_test: Array, weights: Array, targets: Array, fold: Array) -> Any:
    """fit(x, weights, targets, x_new) -> probabilities, on folds and on everything; as logits."""
    held_out = np.zeros(weights.T.shape, np.float32)
    for k in range(fold.max() + 1):
        seen = fold != k
        held_out[~seen] = fit(x[seen], weights[:, seen], targets[:, seen], x[~seen])
    pair = held_out, fit(x, weights, targets, x_test)
    return tuple(np.log((p + 1e-3) / (1 + 1e-3 - p)) for p in pair)


def shares(weights: Array, targets: Array) -> Array:
    return 1 / (1 + np.exp(-logistic.log_odds(weights, targets)))


def neighbors(count: int, x: Array, weights: Array, targets: Array, x_new: Array) -> Array:
    """The share of yes among what is known of the nearest items, with one entry more of the label's share."""
    near = NearestNeighbors(n_neighbors=min(count, len(x))).fit(x).kneighbors(x_new, return_distance=False)
    yes, known = ((part.T[near]).sum(axis=1) for part in (weights * targets, weights))
    return (yes + shares(weights, targets)) / (known + 1)


def forest(leaf: int, seed: int, x: Array, weights: Array, targets: Array, x_new: Array) -> Array:
    """One forest for all labels; an entry that is not learned from has its label's share as target."""
    filled = np.where(weights > 0, targets, shares(weights, targets)[:, None]).T
    trees = ExtraTreesRegressor(20, max_features="sqrt", min_samples_leaf=leaf, random_state=seed, n_jobs=1)
    return np.clip(trees.fit(x, filled).predict(x_new), 0, 1).reshape(len(x_new), -1)


def networks(epochs: int, seed: int, x: Array, observed: Labels, x_test: Array, fold: Array) -> tuple[Array, Array]:
    def fit(rows: Array, x_new: Array) -> Array:
        model = partly.Classifier(method="auto", head="mlp", epochs=epochs, seed=seed, device="cpu", progress=False)
        return np.asarray(model.fit(x[rows], observed[rows]).decision_function(x_new))

    held_out = np.zeros(observed.shape, np.float32)
    for k in range(fold.max() + 1):
        held_out[fold == k] = fit(np.flatnonzero(fold != k), x[fold == k])
    return held_out, fit(np.arange(len(x)), x_test)


# -------------------------------------------------------------------- what came out


def tables(lines: list[dict[str, Any]]) -> str:
    """Two tables: criteria by scenario, and estimates of the share of yes."""
    kinds = list(dict.fromkeys(line["scenario"] for line in lines))
    groups = {kind: [line for line in lines if line["scenario"] == kind] for kind in kinds}
    rows = ["", "| criterion |" + "".join(f" {kind} ({len(group)}) |" for kind, group in groups.items())]
    rows += ["|---|" + "---|" * len(kinds)]
    for name in ["default", *next(iter(lines[0]["criteria"].values()))]:
        rows.append(f"| {name} | " + " | ".join(summary(name, group) for group in groups.values()) + " |")
    rows += ["", "| estimator | scenario | " + " | ".join(dict.fromkeys(line["set"] for line in lines)) + " |"]
    rows += ["|---|---|" + "---|" * len({line["set"] for line in lines})]
    for kind, group in groups.items():
        for method in group[0]["priors"]:
            each = (line["priors"][method] for line in group)
            found = " | ".join(f"{middle:.2f} ({low:.2f} - {high:.2f})" for low, middle, high, _ in each)
            rows.append(f"| {method} | {kind} | {found} |")
    return "\n".join(rows)


def summary(name: str, lines: list[dict[str, Any]]) -> str:
    """Means of Spearman's correlation and of the regret, and the largest regret, where the criterion is defined."""
    found = []
    for line in lines:
        names = list(line["mAP"])
        scores = [line["mAP"][model] for model in names]
        values = [line["criteria"][model][line["default"] if name == "default" else name] for model in names]
        if not any(map(math.isnan, values)):
            found.append((spearmanr(values, scores).statistic, max(scores) - scores[int(np.argmax(values))]))
    if not found:
        return "-"
    spearman, regret = np.array(found).T
    return f"{np.nanmean(spearman):.2f} / {regret.mean():.2f} / {regret.max():.2f}"


if __name__ == "__main__":
    main()
