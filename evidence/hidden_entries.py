"""What becomes of hidden entries while methods learn: the pictures behind the papers' pictures, from real features.

    python -m evidence.hidden_entries [--out evidence/results/hidden.json]

After every epoch: how many of the hidden yes are found, how far apart the scores of hidden yes and hidden no are, and
how good the pseudo-labels are (`hidden_entries.over_epochs`); at the end, a histogram of both kinds of scores.
Methods are trained by steps, so that there are epochs. About two minutes on one core; `make results` draws what is
written.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from partly import engine
from partly.comparison import hidden_entries, protocol
from partly.comparison.plan import Cell

HERE = Path(__file__).resolve().parent
DATA = "../shared/data/voc2012.npz:2000"
ROWS = (
    *(("single-positive", "linear", name) for name in ("assume-negative", "em", "em-apl", "asymmetric", "role")),
    ("single-positive", "mlp", "cls"),
    ("coarse-only:0.015625", "mlp", "refine"),
)
SEEDS = 3
BINS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "hidden.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = protocol.open_data(str(HERE.parent / DATA))
    lines = [line(data, *row, seed) for row in ROWS for seed in range(SEEDS)]
    options.out.write_text(json.dumps(lines, indent=0, sort_keys=True) + "\n", "utf-8")


def line(data: Any, scenario: str, head: str, method: str, seed: int) -> dict[str, Any]:
    cell = Cell("voc2012:2000", scenario, method, head, "adamw", seed)
    observed = protocol.mask(cell, data)
    asked: dict[str, Any] = {"method": method, "head": head, "seed": seed}
    if head == "linear":
        asked["head_settings"] = {"solve": False}
    plan = engine.resolve(engine.TrainConfig(**asked), (data.items, observed))
    epochs = hidden_entries.over_epochs(plan, data.labels)
    scores = engine.fit(plan).predict(data.items)
    hidden = np.where(observed.rows(slice(None)) == 0, data.labels.rows(slice(None)), 0)
    shares = {name: histogram(scores[hidden == sign]) for name, sign in (("yes", 1), ("no", -1))}
    print(method, seed, {name: round(value, 3) for name, value in epochs[-1].items()}, flush=True)
    return {**asked, "data": cell.data, "scenario": scenario, "epochs": epochs, "scores": shares}


def histogram(scores: Any) -> list[float]:
    """The share of scores in each of equal bins from 0 to 1."""
    counts, _ = np.histogram(scores, BINS, (0, 1))
    return [round(float(share), 5) for share in counts / max(1, len(scores))]


if __name__ == "__main__":
    main()
