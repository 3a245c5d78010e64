"""`auto` against every single method, tuned scikit-learn and the best in hindsight: test mAP on the shared data sets.

    python benchmarks/auto.py [--data ../shared/data] [--sets scene,yeast] [--scenarios single-positive,uniform:0.1]
        [--rows auto,naive,...] [--seeds 3] [--items 1500] [--labels 60] --out lines.jsonl

A line is written for every finished (data set, scenario, seed, row), and what is there is not run again; without --sets
the tables of what is there are printed. All rows learn from the same known entries of the whole training part, and
nothing is chosen by looking at more. Data sets are cut to --items items and --labels labels, by a seed.

Rows: `auto`; `naive` (bce or assume-negative, head auto); `recipe`, two kernel machines and a soft forest that counts
twice, with equal weights; scikit-learn per label (`LR`: LogisticRegression with C by three folds, `ET`: 200 extremely
randomised trees, `HGB`: HistGradientBoosting), unknown taken for no where no no is known; other names are methods, with
the head `mlp` or as in `em-apl/linear`; `all` is `auto` with all labels known.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402

from partly import Dataset, Labels, PerLabel, engine, metrics, read, scenarios  # noqa: E402
from partly.items import as_items  # noqa: E402
from partly.methods.auto import Auto  # noqa: E402
from partly.pool import Pool  # noqa: E402
from partly.solvers.blending import blend  # noqa: E402

SETS = "scene,yeast,voc2012,coco,corel5k,debtags,delicious"
SCENARIOS = "single-positive,positives:0.25,uniform:0.1,uniform:0.3,propensity"
ROWS = "auto,naive,recipe,LR,ET,HGB,em-apl,role/linear,weak-assume-negative,large-loss,curriculum,imcl,cls,all"
LEARNERS = {
    "LR": lambda: GridSearchCV(LogisticRegression(), {"C": [1e-4, 1e-3, 1e-2, 0.1, 1.0]}, scoring="neg_log_loss", cv=3),
    "ET": lambda: ExtraTreesClassifier(200, min_samples_leaf=2),
    "HGB": lambda: HistGradientBoostingClassifier(early_stopping=False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--sets", default="", help=f"of {SETS}")
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--rows", default=ROWS)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--items", type=int, default=1500)
    parser.add_argument("--labels", type=int, default=60)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done = {key(line) for line in lines(options.out)}
    for seed in map(int, options.seeds.split(",")):
        for name in filter(None, options.sets.split(",")):
            data = cut(read(options.data / f"{name}.npz"), options.items, options.labels, seed)
            for scenario in options.scenarios.split(","):
                for row in options.rows.split(","):
                    where = {"set": name, "scenario": scenario, "seed": seed, "row": row}
                    if key(where) not in done:
                        line = where | measured(data, scenario, seed, row)
                        with options.out.open("a") as file:
                            file.write(json.dumps(line) + "\n")
                        print(line, flush=True)
    tables(lines(options.out))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["set"], line["scenario"], line["seed"], line["row"]


def cut(data: Dataset, items: int, labels: int, seed: int) -> Dataset:
    """Some items, and some of the labels that occur at least five times among them and in the test part."""
    rng = np.random.default_rng(seed)
    data = data[np.sort(rng.permutation(len(data.labels))[:items])]
    assert data.test is not None
    parts = [(part.items.take(slice(None)).numpy(), part.labels.rows(slice(None))) for part in (data, data.test)]
    often = np.flatnonzero(np.min([(z == 1).sum(axis=0) for _, z in parts], axis=0) >= 5)
    kept = np.sort(rng.permutation(often)[:labels])
    train, test = (Dataset(as_items(x), Labels.from_ternary(z[:, kept])) for x, z in parts)
    return Dataset(train.items, train.labels, test=test)


def measured(data: Dataset, scenario: str, seed: int, row: str) -> dict[str, Any]:
    observed = data.labels if row == "all" else scenarios.parse(scenario)(data.labels, seed, None)
    begun = time.process_time()
    try:
        scores = scored(data, observed, seed, row)
    except Exception as error:  # a row that cannot be run is a result too
        return {"mAP": None, "error": f"{type(error).__name__}: {error}"}
    assert data.test is not None
    seconds = round(time.process_time() - begun, 1)
    return {"mAP": 100 * float(np.nanmean(metrics.average_precision(scores, data.test.labels))), "seconds": seconds}


def scored(data: Dataset, observed: Labels, seed: int, row: str) -> np.ndarray:
    """Test scores [N, L]."""
    assert data.test is not None
    only_yes = not observed.counts()[1].any()
    if row in LEARNERS:
        x, test = (part.items.take(slice(None)).numpy() for part in (data, data.test))
        mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-8)
        model = PerLabel(LEARNERS[row](), unknown="no" if only_yes else "ignore", seed=seed, progress=False)
        return model.fit((x - mean) / scale, observed).predict_proba((test - mean) / scale)
    if row == "recipe":
        return recipe(data, observed, seed)
    plain = "assume-negative/auto" if only_yes else "bce/auto"
    method, _, head = {"all": "auto", "naive": plain}.get(row, row).partition("/")
    asked = {"method": method, "head": head or ("auto" if method == "auto" else "mlp"), "seed": seed}
    made, _ = engine.resolve_config(engine.TrainConfig(**asked), data.items, observed)
    return engine.fit(engine.resolve(made, (data.items, observed))).logits(data.test.items)


def recipe(data: Dataset, observed: Labels, seed: int) -> np.ndarray:
    """A Gaussian and a Laplace kernel machine and, twice, a forest on what they believe: equal weights on z-scores."""
    assert data.test is not None
    made, _ = engine.resolve_config(engine.TrainConfig(**{"method": "auto", "seed": seed}), data.items, observed)
    method = engine.build_method(made, data.items, observed.shape[1], observed)
    assert isinstance(method, Auto)
    pool = Pool(data.items, observed)
    with torch.no_grad():
        for part in ("gaussian", "laplace"):
            method.solve(pool, part)
        weights, targets = method.weights_and_targets(pool)
        parts = [method.read_held_out("gaussian"), method.read_held_out("laplace")]
        kernels = blend(parts, [0.5, 0.5], weights, targets)
        for number, name in enumerate(("gaussian", "laplace")):
            method.slopes[list(method.spans).index(name)] = torch.from_numpy(kernels.slopes[number])
        method.bias.copy_(torch.from_numpy(kernels.bias))
        method._grow(pool)
        x = data.test.items.take(slice(None))
        first = method.network.features(x)
        each = [first[:, span] @ method.network.head.weight[:, span].T for span in method.spans.values()]
        kinds = [each[list(method.spans).index(name)] for name in ("gaussian", "laplace")]
        p = method.forest(method.network.features[0](x))
        scores = [*kinds, *[torch.logit(p.clamp(1e-3, 1 - 1e-3))] * 2]
        return sum((s - s.mean(dim=0)) / (s.std(dim=0) + 1e-6) for s in scores).numpy()


def tables(found: list[dict[str, Any]]) -> None:
    """Mean of each row beside `auto` on the cells that both have, and in how many of them `auto` is ahead."""
    score = {key(line): line["mAP"] for line in found if line["mAP"] is not None}
    cells = sorted({at[:3] for at in score if (*at[:3], "auto") in score})
    rows = sorted({at[3] for at in score} - {"auto"})
    print(f"\n{len(cells)} cells")
    print(f"{'row':24} {'cells':>5} {'mean':>6} {'auto':>6} {'ahead':>6} {'worst':>6} {'best':>6}")
    for row in rows:
        both = [(score[*cell, "auto"], score[*cell, row]) for cell in cells if (*cell, row) in score]
        gaps = np.array([a - b for a, b in both])
        auto, other = np.mean(both, axis=0)
        ahead = (gaps > 0).mean()
        print(f"{row:24} {len(both):5} {other:6.2f} {auto:6.2f} {ahead:6.0%} {gaps.min():6.2f} {gaps.max():6.2f}")
    singles = [row for row in rows if row not in ("all", "recipe")]
    whole = [cell for cell in cells if all((*cell, row) in score for row in singles)]
    if whole and singles:
        gaps = [score[*cell, "auto"] - max(score[*cell, row] for row in singles) for cell in whole]
        best = f"best of {len(singles)} single rows in hindsight, {len(whole)} cells"
        print(f"{best}: auto is {np.mean(gaps):+.2f}, worst {min(gaps):+.2f}")
    known = [cell for cell in cells if (*cell, "all") in score and (*cell, "naive") in score]
    if known:
        three = [[score[*cell, row] for row in ("naive", "auto", "all")] for cell in known]
        naive, auto, whole_labels = np.mean(three, axis=0)
        closed = (auto - naive) / (whole_labels - naive)
        print(f"of the gap from naive ({naive:.2f}) to all labels ({whole_labels:.2f}) auto closes {closed:.0%}")
    print(f"\n{'':34}", *(f"{row[:9]:>9}" for row in ("auto", *rows)))
    for name, scenario in sorted({cell[:2] for cell in cells}):
        means = []
        for row in ("auto", *rows):
            some = [score[*c, row] for c in cells if c[:2] == (name, scenario) and (*c, row) in score]
            means.append(f"{np.mean(some):9.2f}" if some else f"{'':9}")
        print(f"{name:12} {scenario:21}", *means)


if __name__ == "__main__":
    main()
