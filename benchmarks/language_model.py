"""A simulated annotator model with known error rates: calibration, certified labels, and what it saves people.

    python benchmarks/language_model.py [--data ../shared/data] [--seeds 10] --out benchmarks/language_model.jsonl
    python benchmarks/language_model.py --out benchmarks/language_model.jsonl --table          # only the tables

A stub server answers requests of `partly.teachers.LanguageModel` about 400 items and 8 labels of debtags and VOC. It
knows the truth and errs: the log-odds that it sees of an entry are normal around plus or minus a separation, and it
reports twice these log-odds, so it is overconfident. `liar` reports the opposite of what `good` does.

A cell is a set, an annotator, a share of entries known from people, and a seed. Probabilities are recalibrated on these
entries and judged on the others. `partly.complete` then fills in labels at precision 0.9 and confidence 0.9, with and
without the annotator as a teacher of a linear model. A promise is broken where less than 0.9 of the filled yes is yes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402

import partly  # noqa: E402
from partly import Labels, items, scenarios  # noqa: E402
from partly.clock import seed_for  # noqa: E402
from partly.teachers import LanguageModel, Scores  # noqa: E402
from partly.teachers.chat.recalibration import recalibrate  # noqa: E402
from tests.teachers.chat.stub import Stub, serve  # noqa: E402

SETS = ("debtags", "voc2012")
ANNOTATORS = {"good": 2.5, "fair": 1.2, "liar": -2.5}  # separation: half the distance of the two means, in log-odds
SHARPENING = 2.0
SHARES = (1 / 8, 1 / 4, 1 / 2)  # one, two and four labels of each item
PRECISION = CONFIDENCE = 0.9
ITEMS, LABELS, AXES = 400, 8, 24
BINS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="print the tables and run nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if not options.table:
        run(options)
    print_tables([json.loads(line) for line in options.out.read_text().splitlines()])


def run(options: argparse.Namespace) -> None:
    """Compute the cells that are not there yet."""
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = {tuple(json.loads(line)[key] for key in ("set", "annotator", "share", "seed")) for line in lines}
    for name in SETS:
        x, truth = load(options.data / f"{name}.npz")
        opinions = {"none": None} | {annotator: ask(truth, annotator) for annotator in ANNOTATORS}
        for seed in range(options.seeds):
            for share in SHARES:
                observed = scenarios.uniform(truth, share, seed=seed)
                for annotator, chance in opinions.items():
                    if (name, annotator, share, seed) in done:
                        continue
                    line = {"set": name, "annotator": annotator, "share": share, "seed": seed}
                    line |= cell(x, truth, observed, chance, seed) | {"version": partly.__version__}
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line) + "\n")


def load(path: Path) -> tuple[np.ndarray, Labels]:
    """Return principal axes of features, and the most frequent labels, of some items."""
    data = partly.read(path)
    rows = np.sort(np.random.default_rng(12345).permutation(len(data.items))[:ITEMS])
    x = np.asarray(data.items.take(torch.from_numpy(rows)), np.float32)
    x = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-6)
    x = PCA(AXES, random_state=0).fit_transform(x).astype(np.float32) if x.shape[1] > AXES else x
    z = data.labels.rows(rows)
    columns = np.sort(np.argsort(-(z == 1).sum(axis=0), kind="stable")[:LABELS])
    names = [data.labels.names[j] for j in columns]
    return x, Labels.from_ternary(z[:, columns], names=names, ids=[f"i{k}" for k in range(len(rows))])


def ask(truth: Labels, annotator: str) -> np.ndarray:
    """Return the probabilities of yes that the teacher reads from the stub, [N, L]."""
    z, separation = truth.ternary(), abs(ANNOTATORS[annotator])
    sign = math.copysign(1, ANNOTATORS[annotator])
    prior = np.log((z == 1).mean(axis=0) / (z == -1).mean(axis=0))
    column = {name: j for j, name in enumerate(truth.names)}

    def answer(item: str, label: str) -> tuple[str, float]:
        i, j = int(item.split()[1]), column[label]
        draw = np.random.default_rng(seed_for("annotator", separation, i, j)).normal()
        # Log-odds of mean +-2 d and variance 4 d are those of two normal populations: calibrated with the prior.
        evidence = z[i, j] * 2 * separation + math.sqrt(4 * separation) * draw
        chance = 1 / (1 + math.exp(-sign * SHARPENING * (evidence + prior[j])))
        return ("yes" if chance > 0.5 else "no"), min(max(chance, 1e-4), 1 - 1e-4)

    with serve(Stub(answer=answer)) as stub, tempfile.TemporaryDirectory(dir=shared_memory()) as folder:
        teacher = LanguageModel(stub.url, annotator, direct=LABELS, cache=Path(folder) / "replies.sqlite")
        return teacher.opinions(items.texts([f"item {k}" for k in range(len(z))]), truth.names).chance


def shared_memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def cell(x: np.ndarray, truth: Labels, observed: Labels, chance: np.ndarray | None, seed: int) -> dict[str, Any]:
    """Calibrate, complete and judge."""
    z, hidden = truth.ternary(), observed.ternary() == 0
    found: dict[str, Any] = {}
    teacher: Any = "none"
    if chance is not None:
        own = recalibrate(chance, observed, truth.ids, truth.names)
        found |= {
            "sensitivity": float((chance > 0.5)[z == 1].mean()),
            "specificity": float((chance < 0.5)[z == -1].mean()),
        }
        found |= {f"ece_{key}": ece(p[hidden], z[hidden] == 1) for key, p in (("raw", chance), ("recalibrated", own))}
        teacher = Scores(np.log(chance / (1 - chance)).astype(np.float32))
    model = partly.Classifier("bce", head="linear", progress=False, seed=seed, teacher=teacher)
    done = partly.complete(model, x, observed, PRECISION, CONFIDENCE, missing="at-random", seed=seed)
    filled = np.where(hidden, done.labels.ternary(), 0)
    yes = filled == 1
    found |= {
        "filled_yes": int(yes.sum()),
        "wrong_yes": int((z[yes] == -1).sum()),
        "hidden_yes": int((hidden & (z == 1)).sum()),
    }
    found |= {"filled_no": int((filled == -1).sum()), "wrong_no": int((z[filled == -1] == 1).sum())}
    weights = done.model.teacher_ if teacher != "none" else None
    return found | {"used": None if weights is None else bool(weights["used"]), "people": int(observed.known.sum())}


def ece(chance: np.ndarray, yes: np.ndarray) -> float:
    """Expected calibration error in bins of equal width."""
    place = np.minimum((chance * BINS).astype(int), BINS - 1)
    sums = [np.bincount(place, part, BINS) for part in (chance, yes)]
    return float(np.abs(sums[0] - sums[1]).sum() / len(yes))


def print_tables(lines: list[dict[str, Any]]) -> None:
    """Print a row per set, annotator and share: means over seeds."""
    cells = defaultdict(list)
    for line in lines:
        cells[line["set"], line["annotator"], line["share"]].append(line)
    print("set annotator known seeds | ECE own, recalibrated | used | hidden yes filled | promises broken | yes lost")
    for key, rows in cells.items():
        filled = np.mean([(row["filled_yes"] - row["wrong_yes"]) / row["hidden_yes"] for row in rows])
        broken = sum(row["wrong_yes"] > (1 - PRECISION) * row["filled_yes"] for row in rows)
        lost = np.mean([row["wrong_no"] / row["hidden_yes"] for row in rows])
        calibration = "-"
        if rows[0]["used"] is not None:
            calibration = ", ".join(
                f"{np.mean([row[f'ece_{k}'] for row in rows]):.3f}" for k in ("raw", "recalibrated")
            )
        used = "-" if rows[0]["used"] is None else f"{sum(row['used'] for row in rows)} of {len(rows)}"
        print(*key, len(rows), "|", calibration, "|", used, "|", f"{filled:.3f} | {broken} of {len(rows)} | {lost:.3f}")


if __name__ == "__main__":
    main()
