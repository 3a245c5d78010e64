"""Every method at its defaults against the plain baseline and tuned scikit-learn: test mAP on the shared data sets.

    python benchmarks/methods.py [--data ../shared/data] [--sets scene,yeast] [--scenarios single-positive,uniform:0.1]
        [--methods em,cls,...] [--seeds 0,1,2] [--items 1500] [--labels 60] --out lines.jsonl

A line is written for every finished (data set, scenario, seed, method), and finished ones are not run again. Without
--sets the table of the lines in the file is printed. All methods learn from the same known entries of the whole
training part. Data sets are cut to --items items and --labels labels, by a seed.

The baseline is `bce`, or `assume-negative` where no no is known. `LR` is scikit-learn's LogisticRegression per label,
with C by three folds. `:random` after a name starts a method from nothing, as in the papers.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from auto import LEARNERS, cut, lines  # noqa: E402

from partly import Classifier, Dataset, Labels, PerLabel, metrics, read, scenarios  # noqa: E402
from partly.methods import discover  # noqa: E402

SETS = "scene,yeast,debtags,voc2012,corel5k,coco,delicious"
SCENARIOS = "single-positive,positives:0.25,uniform:0.1,uniform:0.3"
PAPERS = ("em", "em-apl", "role", "cls", "imcl", "curriculum")  # whose mean is to be at or above the baseline
BASELINE = "baseline"
MAX_LOSS = 0.5  # points of mAP below the baseline that count as a loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--sets", default="", help=f"of {SETS}")
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--methods", default="", help="all that are trained by steps, by default")
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
                observed = scenarios.parse(scenario)(data.labels, seed, None)
                for method in (BASELINE, *filter(None, options.methods.split(","))) if options.methods else all_rows():
                    cell = {"set": name, "scenario": scenario, "seed": seed, "method": method}
                    if key(cell) not in done:
                        line = cell | measure(data, observed, seed, method)
                        with options.out.open("a") as file:
                            file.write(json.dumps(line) + "\n")
    print_table(lines(options.out))


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["set"], line["scenario"], line["seed"], line["method"]


def all_rows() -> list[str]:
    """Return the baseline, scikit-learn, and every method that is trained by steps; no oracle."""
    stepped = [
        name
        for name, info in discover().items()
        if info.about.terms is None and info.kind.supports_distributed and not info.kind.needs_truth
    ]
    return [BASELINE, "LR", *stepped]


def measure(data: Dataset, observed: Labels, seed: int, method: str) -> dict[str, Any]:
    begun = time.process_time()
    try:
        scores, notes = predict(data, observed, seed, method)
    except Exception as error:  # a method that refuses these data is a result too
        return {"mAP": None, "error": f"{type(error).__name__}: {error}"}
    assert data.test is not None
    seconds = round(time.process_time() - begun, 2)
    score = 100 * float(np.nanmean(metrics.average_precision(scores, data.test.labels)))
    return {"mAP": score, "seconds": seconds, "steps": notes}


def predict(data: Dataset, observed: Labels, seed: int, method: str) -> tuple[np.ndarray, Any]:
    """Return scores of the test items, and the steps that were chosen."""
    assert data.test is not None
    only_yes = not observed.counts()[1].any()
    x, test = (part.items.take(slice(None)).numpy() for part in (data, data.test))
    if method in LEARNERS:
        mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-8)
        model = PerLabel(LEARNERS[method](), unknown="no" if only_yes else "ignore", seed=seed, progress=False)
        return model.fit((x - mean) / scale, observed).predict_proba((test - mean) / scale), None
    name, _, start = method.partition(":")
    name = {BASELINE: "assume-negative" if only_yes else "bce"}.get(name, name)
    model = Classifier(name, start=start or None, seed=seed, progress=False).fit(x, observed)
    notes = model.fitted_.progress.notes.get("start") or {}
    return model.decision_function(test), {
        name: notes.get(name) for name in ("lr_factor", "epochs", "start_score", "score", "standard_error", "reason")
    }


def print_table(found: Sequence[dict[str, Any]]) -> None:
    """Print for each method the difference to the baseline, and its time as a multiple of the baseline's."""
    by_key = {key(line): line for line in found if line["mAP"] is not None}
    baselines = {at[:3]: line for at, line in by_key.items() if at[3] == BASELINE}
    names = sorted({at[3] for at in by_key} - {BASELINE})
    print(f"{len(baselines)} cells; differences to the plain baseline in points of test mAP")
    columns = ("cells", "mean", "worst", "best", "lost", "ahead", "moved", "time")
    print(f"{'method':26}", *(f"{column:>6}" for column in columns))
    for name in names:
        pairs = [(by_key[*cell, name], base) for cell, base in baselines.items() if (*cell, name) in by_key]
        gaps = np.array([line["mAP"] - base["mAP"] for line, base in pairs])
        moved = np.mean([bool((line.get("steps") or {}).get("lr_factor")) for line, _ in pairs])
        times = np.median([line["seconds"] / max(base["seconds"], 0.01) for line, base in pairs])
        print(
            f"{name:26} {len(gaps):6} {gaps.mean():6.2f} {gaps.min():6.2f} {gaps.max():6.2f} "
            f"{(gaps < -MAX_LOSS).mean():6.0%} {(gaps > 0).mean():6.0%} {moved:6.0%} {times:6.1f}"
        )
    whole = [cell for cell in baselines if all((*cell, name) in by_key for name in PAPERS)]
    if whole:
        best = [max(by_key[*cell, name]["mAP"] for name in PAPERS) - baselines[cell]["mAP"] for cell in whole]
        print(f"best of {', '.join(PAPERS)} in hindsight, {len(whole)} cells: {np.mean(best):+.2f}")
    failed = sorted({f"{line['method']}: {line['error']}" for line in found if line["mAP"] is None})
    print("\n".join(failed))


if __name__ == "__main__":
    main()
