"""Beliefs that start at label names: test mAP and mAP of the beliefs, with and without them.

    python benchmarks/teacher_beliefs.py [--data ../shared/data] [--seeds 0,1] --out benchmarks/teacher_beliefs.jsonl

300 items of VOC 2012 (EfficientNet-Lite2 features). `alone`: test mAP of the trained network without the teacher;
`combined`: with it; `beliefs`: mAP of the beliefs about the training entries. What is in the file is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from partly import Classifier, Labels, items, metrics
from partly.items import PrecomputedFeatures
from teachers import hide, load, read_records

SCENARIOS = ("uniform:0.1", "single-positive")
ROWS = (
    ("em-apl", "none", {}),
    ("em-apl", "names", {}),
    ("role", "none", {}),
    ("role", "names", {}),
    ("vlpl", "none", {}),
    ("vlpl", "names", {}),
    ("vlpl", "names", {"pseudo": "positive"}),
)
ITEMS = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    keys = ("scenario", "seed", "method", "teacher", "settings")
    done = [tuple(record[key] for key in keys) for record in read_records(options.out)]
    data = load("voc2012", options.data)
    test = PrecomputedFeatures(items.features(data.x_test), data.origin)
    for seed in map(int, options.seeds.split(",")):
        rows = np.random.default_rng([7, seed]).permutation(len(data.x))[:ITEMS]
        train = PrecomputedFeatures(items.features(data.x[rows]), data.origin)
        for scenario in SCENARIOS:
            labels = Labels.from_ternary(hide(data.y[rows], scenario, seed).ternary(), names=data.names)
            for method, teacher, settings in ROWS:
                cell = (scenario, seed, method, teacher, settings)
                if cell in done:
                    continue
                begun = time.monotonic()
                model = Classifier(method, teacher=teacher, settings=settings, seed=seed, progress=False)
                model.fit(train, labels)
                record = dict(zip(keys, cell, strict=True)) | {
                    "alone": mean_ap(model.predict_proba(test, teacher="none"), data.y_test),
                    "combined": mean_ap(model.predict_proba(test), data.y_test),
                    "beliefs": mean_ap(model.beliefs_, data.y[rows]),
                    "seconds": round(time.monotonic() - begun, 1),
                }
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")


def mean_ap(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return mAP in percent."""
    ap = metrics.average_precision(np.asarray(scores, np.float32), Labels.from_full(truth))
    return round(100 * float(np.nanmean(ap)), 2)


if __name__ == "__main__":
    main()
