"""Is the last sentence of `partly complete` right, that completing helped or hurt?

    python benchmarks/completion_benefit.py [--data ../shared/data] [--sets scene,...] [--seeds 3] [--out lines.jsonl]

A cell is a data set x share of known entries x way of filling in x seed, cut as in completion.py. Two models are
trained and compared on held-out known entries, as `partly complete` does; the truth of the same held-out items judges
the sentence by mAP. A sentence is wrong where it claims a difference, and the mAP on the truth differs the other way.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

import partly
from completion import AXES, ITEMS, LABELS, SETS, taken
from partly.completion.completer import complete
from partly.completion.downstream import compare_scores, score_both

WAYS: dict[str, dict[str, Any]] = {
    "certified at 0.8": {"precision": 0.8},
    "forced at 0.8": {"precision": 0.8, "force": True},
    "forced at 0.5": {"precision": 0.5, "max_missed": 0.5, "force": True},
}
SHARES = (0.1, 0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [json.loads(line) for line in options.out.open()] if options.out.exists() else []
    done = {(line["set"], line["share"], line["way"], line["seed"]) for line in lines}
    for name in options.sets.split(","):
        x, truth = taken(options.data / f"{name}.npz", ITEMS, AXES, LABELS)
        cells = ((share, way, seed) for seed in range(options.seeds) for share in SHARES for way in WAYS)
        for share, way, seed in cells:
            if (name, share, way, seed) not in done:
                lines.append({"set": name, "share": share, "way": way, "seed": seed} | cell(x, truth, share, way, seed))
                with options.out.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    for key, count in sorted(Counter((line["way"], judge(line)) for line in lines).items()):
        print(*key, count, sep=": ")


def cell(x: Any, truth: partly.Labels, share: float, way: str, seed: int) -> dict[str, Any]:
    observed = partly.scenarios.uniform(truth, share, seed)
    model = partly.Classifier("bce", head="linear", progress=False, seed=seed)
    done = complete(model, x, observed, missing="at-random", seed=seed, **WAYS[way])
    if not done.filled:
        return {"filled": 0}
    first, second, test = score_both(model, x, observed, done, None, seed)
    benefit = compare_scores(first, second, done.known[test], seed)
    before, after = (float(np.nanmean(partly.metrics.average_precision(s, truth[test]))) for s in (first, second))
    return {"filled": done.filled, "low": benefit.low, "high": benefit.high, "before": before, "after": after}


def judge(line: dict[str, Any]) -> str:
    """What the sentence says, and what the truth says to it."""
    if not line["filled"]:
        return "nothing filled in"
    said = "hurt" if line["high"] < 0 else "helped" if line["low"] > 0 else "no significant difference"
    true = "mAP rises" if line["after"] > line["before"] else "mAP falls"
    return f"{said}, {true}"


if __name__ == "__main__":
    main()
