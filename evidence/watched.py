"""What becomes of hidden yes while a method learns, on digits: the pictures of docs/methods/.

    python -m evidence.watched [METHOD ...]     those that are named anew, or all

Every method at its defaults, with an MLP head that is trained by steps, on 600 digits of which one yes is known, and on
the same with a fifth of the entries known; after every epoch, of the unknown entries with the highest scores, as many
as there are hidden yes, the share that are hidden yes. One seed: it shows a shape, and decides nothing. A minute or two
on one core; `make docs` draws what is written.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from evidence.hidden_entries import measure_epochs
from partly import engine, methods, scenarios
from partly.data.formats.digits import digits

HERE = Path(__file__).resolve().parent
OUT = HERE / "results" / "watched.json"
EPOCHS, ITEMS = 15, 600
OWN = ("auto", "per-label")  # methods without a head or epochs to choose
STEPS = {"head": "mlp", "head_settings": {"solve": False, "hidden": 128}, "epochs": EPOCHS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", default=list(methods.discover()))
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {line["method"]: line for line in json.loads(OUT.read_text("utf-8"))} if OUT.exists() else {}
    for name in options.methods:
        found[name] = {"method": name, **watched(name)}
        print(found[name], flush=True)
    lines = [json.dumps(found[name]) for name in methods.discover() if name in found]
    OUT.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


def watched(name: str) -> dict[str, list[float]]:
    """Scenario -> the share found after each epoch (after a method's only one, where it has one)."""
    data = digits(train=ITEMS)
    observed = {
        "single-positive": scenarios.single_positive(data.labels, seed=0),
        "uniform:0.2": scenarios.uniform(data.labels, 0.2, seed=0),
    }
    lines = {}
    for scenario, labels in observed.items():
        asked = {"method": name, "seed": 0} | ({} if name in OWN else STEPS)
        plan = engine.resolve(engine.TrainConfig.from_params(asked), (data.items, labels))
        epochs = measure_epochs(plan, data.labels)
        lines[scenario] = [round(one["found"], 4) for one in epochs]
    return lines


if __name__ == "__main__":
    main()
