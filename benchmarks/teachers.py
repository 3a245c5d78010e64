"""Label names as a teacher of `auto`: test mAP with none to all of the labels known, and with misleading names.

    python benchmarks/teachers.py [--data ../shared/data] [--sets voc2012,coco,debtags] [--sizes 100,300,1000,3000]
        [--scenarios none,uniform:0.1,...] [--seeds 0,1,2] --work FOLDER --out benchmarks/teachers.jsonl
    python benchmarks/teachers.py --out benchmarks/teachers.jsonl          # only the tables

Each cell (data set, size, scenario, seed) trains `auto` once; its out-of-fold and test logits are kept in FOLDER, and
all rows are computed from them. A record is written for every finished row, and what is there is not run again.

Rows: `auto`; `names`, label names alone; `auto+names`; `permuted`, auto with the names dealt to wrong labels; `trial`,
the recipe of the first trial (one slope for the logit and one for the name's score, pooled over labels; no choice of
teachers). Data: 4,000 training items at most and 2,000 test items; EfficientNet-Lite2 features of VOC 2012 and COCO,
sentence vectors of Debian package descriptions with the 120 most frequent tags.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import time
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from partly import Classifier, Labels, __version__, items, metrics, scenarios  # noqa: E402
from partly.items import Origin, PrecomputedFeatures  # noqa: E402
from partly.networks.lazy_features import lazy_features  # noqa: E402
from partly.teachers import LabelNames, combination, encoders  # noqa: E402
from partly.teachers.cache import load_or_compute  # noqa: E402

SETS = "voc2012,coco,debtags"
SCENARIOS = "none,uniform:0.01,uniform:0.03,uniform:0.1,uniform:0.3,single-positive,positives:0.25,all"
ROWS = ("auto", "names", "auto+names", "permuted", "trial")
TRAIN, TEST, TAGS = 4000, 2000, 120


@dataclass
class Data:
    """Training and test items with all labels, and what scores names for them."""

    name: str
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    names: tuple[str, ...]
    origin: Origin

    def teach(self, x: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        """Return the scores of label names, [N, L]."""
        return LabelNames().scores(PrecomputedFeatures(items.features(x), self.origin), names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--sizes", default="100,300,1000,3000")
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--cached", action="store_true", help="Only cells whose portfolio is in FOLDER already.")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
        run(options)
    print_tables(read_records(options.out))


def run(options: argparse.Namespace) -> None:
    """Compute what is not there yet."""
    records_of_now = (r for r in read_records(options.out) if "earlier" not in r)
    done = {(r["set"], r["items"], r["scenario"], r["seed"], r["row"]) for r in records_of_now}
    loaded: dict[str, Data] = {}
    lists = (getattr(options, key).split(",") for key in ("seeds", "sizes", "scenarios", "sets"))
    for seed, size, scenario, name in itertools.product(*lists):
        cell = (name, int(size), scenario, int(seed))
        missing = [row for row in ROWS if (*cell, row) not in done]
        path = options.work / f"{name}-{size}-{scenario.replace(':', '_')}-{seed}.npz"
        if not missing or (options.cached and scenario != "none" and not path.exists()):
            continue
        if name not in loaded:
            loaded[name] = load(name, options.data)
        if scenario != "none" and not hide(loaded[name].y[: int(size)], scenario, int(seed)).known.any():
            continue  # 1 % of 20 labels rounds to none
        begun = time.monotonic()
        for record in records(loaded[name], *cell[1:], path):
            if record["row"] in missing:
                record |= {"seconds": round(time.monotonic() - begun, 2), "version": __version__}
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
        print(*cell, f"{time.monotonic() - begun:.1f} s", flush=True)


def load(name: str, folder: Path) -> Data:
    """Read a data set, cut to the sizes of this benchmark by a fixed seed."""
    if name == "debtags":
        return load_texts(folder / "debtags-text.jsonl.gz")
    arrays, rng = np.load(folder / f"{name}.npz"), np.random.default_rng(0)
    test = np.sort(rng.permutation(len(arrays["features_test"]))[:TEST])
    train = np.sort(rng.permutation(len(arrays["features_train"]))[:TRAIN])
    origin = Origin("pictures", (3, 260, 260), "efficientnet-lite2", {"pooling": "gap"}, None, "")
    parts = [
        arrays[f"{key}_{part}"][rows]
        for part, rows in (("train", train), ("test", test))
        for key in ("features", "labels")
    ]
    x, y, x_test, y_test = parts
    names = tuple(map(str, arrays["names"]))
    return Data(name, x.astype(np.float32), y, x_test.astype(np.float32), y_test, names, origin)


def load_texts(path: Path) -> Data:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[: TRAIN + TEST]]
    counts = Counter(tag for row in rows for tag in row["tags"])
    names = tuple(tag for tag, _ in counts.most_common(TAGS))
    y = np.array([[tag in row["tags"] for tag in names] for row in rows], np.int8)
    made = lazy_features(items.texts([row["text"] for row in rows]), "minilm", {})
    x = load_or_compute(
        {"features": made.digest()},
        (len(made), made.width),
        lambda part: made.take(part).numpy(),
        500,
        "Sentence vectors",
    )
    return Data("debtags", x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:], names, made.origin)


def hide(truth: np.ndarray, scenario: str, seed: int) -> Labels:
    """Return the labels that are known in a scenario."""
    full = Labels.from_full(truth)
    kind, _, share = scenario.partition(":")
    if kind == "uniform":
        return scenarios.uniform(full, float(share), seed=seed)
    if kind == "positives":
        return scenarios.positives(full, float(share), seed=seed)
    if kind == "single-positive":
        return scenarios.single_positive(full, seed=seed)
    return full if kind == "all" else Labels.from_ternary(np.zeros_like(truth))


def portfolio(data: Data, size: int, scenario: str, seed: int, path: Path) -> dict[str, Any]:
    """Return rows, labels and the logits of `auto`: out of fold, and of the test items."""
    rows = np.random.default_rng([7, seed]).permutation(len(data.x))[:size]
    if scenario == "none":
        nothing = np.zeros((size, len(data.names)), np.float32)
        return {
            "rows": rows,
            "z": nothing.astype(np.int8),
            "oof": nothing,
            "test": np.zeros(data.y_test.shape, np.float32),
        }
    if not path.exists():
        labels = hide(data.y[rows], scenario, seed)
        model = Classifier(progress=False, seed=seed).fit(data.x[rows], labels)
        made = {
            "oof": model.out_of_fold_,
            "test": model.decision_function(data.x_test),
            "z": labels.ternary(),
            "rows": rows,
        }
        np.savez(path.with_suffix(".new.npz"), **made)
        path.with_suffix(".new.npz").rename(path)
    return dict(np.load(path))


def records(data: Data, size: int, scenario: str, seed: int, path: Path) -> list[dict[str, Any]]:
    """Return a record for each row of a cell."""
    cell = portfolio(data, size, scenario, seed, path)
    labels = Labels.from_ternary(cell["z"])
    x, logits, test = data.x[cell["rows"]], cell["oof"], cell["test"]
    permutation = np.random.default_rng([8, seed]).permutation(len(data.names))
    found: list[dict[str, Any]] = []

    def add(row: str, scores: np.ndarray, **more: Any) -> None:
        ap = metrics.average_precision(np.asarray(scores, np.float32), Labels.from_full(data.y_test))
        mean = round(100 * float(np.nanmean(ap)), 3)
        found.append(
            {"set": data.name, "items": size, "scenario": scenario, "seed": seed, "row": row, "map": mean, **more}
        )

    add("auto", test)
    for row, names in (("auto+names", data.names), ("permuted", tuple(data.names[j] for j in permutation))):
        train, held_out = data.teach(x, names), data.teach(data.x_test, names)
        fitted = combination.fit(logits, [train], labels, seed=seed).combination
        weights = [round(float(w), 3) for w in fitted.pooled]
        add(row, fitted(test, [held_out]), weights=weights, used=len(fitted.used))
        if row == "auto+names":
            add("names", fitted.standardizations[0].per_item(held_out))
    add("trial", trial(data, x, logits, test, labels))
    return found


def trial(data: Data, x: np.ndarray, logits: np.ndarray, test: np.ndarray, labels: Labels) -> np.ndarray:
    """Return the test logits of the first trial's recipe: one logistic regression pooled over labels, two slopes."""
    train, held_out = (trial_scores(data, part) for part in (x, data.x_test))
    mean, scale = train.mean(axis=0), train.std(axis=0) + 1e-9
    train, held_out = (train - mean) / scale, (held_out - mean) / scale
    z = labels.ternary()
    known = np.ones(z.shape, bool) if not (z < 0).any() else z != 0
    target = (z > 0)[known]
    if len(np.unique(target)) < 2:
        return held_out if not (z != 0).any() else test
    slopes = LogisticRegression(C=1e6).fit(np.stack([logits[known], train[known]], axis=1), target).coef_[0]
    return slopes[0] * test + slopes[1] * held_out


def trial_scores(data: Data, x: np.ndarray) -> np.ndarray:
    spoken = [name.replace("::", " ").replace("-", " ").replace("_", " ") for name in data.names]
    vectors = encoders.minilm_embed(spoken).numpy()
    if data.name == "debtags":
        return x @ vectors.T
    scorer = encoders.ConseScorer(2, [[name] for name in spoken], encoders.minilm_embed)
    similarity = encoders.minilm_embed(encoders.class_names()).numpy() @ vectors.T
    scorer.spread = torch.softmax(torch.from_numpy(similarity) / 0.05, dim=0)
    return scorer(torch.from_numpy(x)).numpy()


def read_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def print_tables(found: list[dict[str, Any]]) -> None:
    """Print the mean over seeds of each cell, and how the rows compare. Records of earlier code are left out."""
    cells: dict[tuple[str, int, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in (record for record in found if "earlier" not in record):
        cells[record["set"], record["items"], record["scenario"]][record["row"]].append(record["map"])
    print(f"\n{'data':8} {'items':>5} {'scenario':16} {'seeds':>5} " + " ".join(f"{row:>10}" for row in ROWS))
    for (name, size, scenario), rows in sorted(
        cells.items(), key=lambda cell: (cell[0][0], cell[0][1], SCENARIOS.find(cell[0][2]))
    ):
        values = " ".join(f"{np.mean(rows[row]):10.1f}" for row in ROWS)
        print(f"{name:8} {size:5} {scenario:16} {len(rows['auto']):5} {values}")
    means = {
        cell: {row: float(np.mean(v)) for row, v in rows.items()} for cell, rows in cells.items() if cell[2] != "none"
    }
    labelled = list(means.values())
    if not labelled:
        return
    for row in ROWS:
        gains = [cell[row] - cell["auto"] for cell in labelled]
        print(f"{row:10} mean {np.mean([c[row] for c in labelled]):5.1f}, least gain over auto {min(gains):5.2f}")
    shares = [
        (rows["auto+names"] - rows["auto"]) / (means[name, size, "all"]["auto"] - rows["auto"])
        for (name, size, scenario), rows in means.items()
        if scenario != "all" and (name, size, "all") in means
    ]
    if shares:
        print(f"share of the gap to all labels known that names close: median {np.median(shares):.2f}")
    taught = [r for r in found if r["row"] == "permuted" and r["scenario"] != "none" and "earlier" not in r]
    print(f"permuted names have a weight in {sum(r['used'] for r in taught)} of {len(taught)} fits")
    wins = sum(cell["auto+names"] > cell["trial"] for cell in labelled)
    print(f"auto+names above the trial's recipe in {wins} of {len(labelled)} cells")


if __name__ == "__main__":
    main()
