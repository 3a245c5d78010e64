"""Every method at its defaults against the plain baseline and tuned scikit-learn: test mAP on the shared data sets.

    python benchmarks/methods.py [--data ../shared/data] [--sets scene,yeast] [--scenarios single-positive,uniform:0.1]
        [--methods em,cls,...] [--seeds 0] [--items 600] [--labels 20] [--out lines.jsonl] [--page]

A line is written for every finished (data set, scenario, seed, method), and finished ones are not run again. All
methods learn from the same known entries of the whole training part. Data sets are cut to --items items and --labels
labels, by a seed.

The baseline is `bce`, or `assume-negative` where no no is known. `LR` is scikit-learn's LogisticRegression per label,
with C by three folds. `:random` after a name starts a method from nothing, as in the papers.

A run here leaves its start for any gain on held-out entries. The line says how large that gain was, and what the test
mAP became. Which gain is enough (`MIN_GAIN`, in standard errors, and `MIN_YES` of `partly.engine.step_search`) is
applied to the lines afterwards: a run below it keeps the mAP of the baseline. `--page` writes the tables of
docs/measurements/methods.md and runs nothing: the methods under the rule of the package, and, for each data set, what
the rule that is best on the others would give. `--defaults` runs with the rule as it is, which gives the same numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from auto import LEARNERS, cut, lines  # noqa: E402

from partly import Classifier, Dataset, Labels, PerLabel, metrics, read, scenarios  # noqa: E402
from partly.engine import step_search  # noqa: E402
from partly.methods import discover  # noqa: E402

SETS = "scene,yeast,debtags,voc2012,corel5k,coco,delicious"
SCENARIOS = "single-positive,positives:0.25,uniform:0.1,uniform:0.3"
PAPERS = ("em", "em-apl", "role", "cls", "imcl", "curriculum")  # whose mean is to be at or above the baseline
BASELINE, PORTFOLIO = "baseline", "auto"
TWO_NETWORKS = ("cls", "co-teaching", "co-teaching-plus", "decoupling", "jocor")
MAX_LOSS = 0.5  # points of mAP below the baseline that count as a loss
MAX_LOST = 0.05  # share of cells in which a method may lose that much
RULES = [(gain, yes) for gain in (1.0, 2.0, 3.0, 0.5, 0.0, float("inf")) for yes in (100, 300, 30, 0)]
NOTES = ("lr_factor", "epochs", "start_score", "score", "standard_error", "held_out_yes", "reason")
PACKAGE_RULE = (step_search.MIN_GAIN, step_search.MIN_YES)
RESULTS = Path(__file__).with_suffix(".jsonl")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "measurements" / "methods.md"
BEGIN, END = "<!-- results: written by benchmarks/methods.py --page -->", "<!-- end of results -->"
Line = dict[str, Any]
Rule = tuple[float, int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--methods", default="", help="all that are trained by steps, by default")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--items", type=int, default=600)
    parser.add_argument("--labels", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--defaults", action="store_true")
    options = parser.parse_args()
    if not options.page:
        run(options)
    written = "\n".join(tables(lines(options.out)))
    print(written)
    if options.page:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text("\n".join([before + BEGIN, written, END + rest.partition(END)[2]]), "utf-8")


def run(options: argparse.Namespace) -> None:
    """Every cell that is not there yet."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if not options.defaults:
        step_search.MIN_GAIN = step_search.MIN_YES = 0
    done = {key(line) for line in lines(options.out)}
    rows = options.methods.split(",") if options.methods else all_rows()
    for seed in map(int, options.seeds.split(",")):
        for scenario in options.scenarios.split(","):
            for name in options.sets.split(","):
                data = cut(read(options.data / f"{name}.npz"), options.items, options.labels, seed)
                observed = scenarios.parse(scenario)(data.labels, seed, None)
                for method in rows:
                    cell = {"set": name, "scenario": scenario, "seed": seed, "method": method}
                    if key(cell) not in done:
                        line = cell | measure(data, observed, seed, method)
                        with options.out.open("a") as file:
                            file.write(json.dumps(line) + "\n")


def key(line: Line) -> tuple[Any, ...]:
    return line["set"], line["scenario"], line["seed"], line["method"]


def all_rows() -> list[str]:
    """Return the baseline, scikit-learn, `auto`, and every method that is trained by steps; no oracle."""
    stepped = [
        name
        for name, info in discover().items()
        if info.about.terms is None and info.kind.supports_distributed and not info.kind.needs_truth
    ]
    return [BASELINE, "LR", PORTFOLIO, *stepped]


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
    return model.decision_function(test), {name: notes.get(name) for name in NOTES}


# -------------------------------------------------------------------- tables


def tables(found: Sequence[Line]) -> Iterator[str]:
    """Yield the lines of the page."""
    cells = Cells(found)
    yield f"{len(cells.baselines)} cells: {', '.join(sorted(cells.sets))}; {', '.join(sorted(cells.scenarios))}."
    yield "\n| method | cells | mean | worst | best | lost | ahead | moved | time |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for name in sorted(cells.methods, key=lambda name: (name not in ("LR", PORTFOLIO), name not in PAPERS, name)):
        yield cells.row(name)
    stepped = [name for name in cells.methods if name not in ("LR", PORTFOLIO)]
    gaps = np.array([gap for name in stepped for gap in cells.gaps(name).values()])
    yield f"\nOf {len(gaps)} cells of methods {(gaps < -MAX_LOSS).mean():.1%} lose more than {MAX_LOSS} points."
    best = cells.best_in_hindsight()
    yield f"The best of {', '.join(f'`{name}`' for name in PAPERS)} in hindsight: {np.mean(best):+.2f}."
    free = np.array([gap for name in stepped for gap in cells.gaps(name, (0.0, 0)).values()])
    gain, yes = PACKAGE_RULE
    yield f"The rule: gain more than {gain:g} standard errors on held-out entries, and hold out at least {yes} yes."
    yield f"If every gain on held-out entries counted: mean {free.mean():+.2f}, {(free < -MAX_LOSS).mean():.1%} lost."
    yield "\n| data set left out | least gain, standard errors | least held-out yes | mean | lost | if all moved |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name in sorted(cells.sets):
        yield cells.rule_row(name, stepped)
    gain, yes = cells.rule(set(), stepped)
    yield f"\nBest rule on all sets: more than {gain:g} standard errors, and at least {yes} held-out yes."
    if failed := sorted({f"{line['method']}: {line['error']}" for line in found if line["mAP"] is None}):
        yield "\nRefused: " + "; ".join(failed)


class Cells:
    """Lines by cell, and what they become under a rule."""

    def __init__(self, found: Sequence[Line]) -> None:
        self.lines = {key(line): line for line in found if line["mAP"] is not None}
        self.baselines = {at[:3]: line for at, line in self.lines.items() if at[3] == BASELINE}
        self.sets, self.scenarios = ({cell[i] for cell in self.baselines} for i in (0, 1))
        self.methods = {at[3] for at in self.lines} - {BASELINE}
        self.chosen = {name: self.rule({name}, [*self.methods - {"LR", PORTFOLIO}]) for name in self.sets}

    def gaps(self, method: str, rule: Rule | None = None) -> dict[tuple[Any, ...], float]:
        """Return the distance to the baseline in each cell, by default under the rule of the package."""
        both = (
            (cell, self.lines[*cell, method], base) for cell, base in self.baselines.items() if self._has(cell, method)
        )
        return {
            cell: line["mAP"] - base["mAP"] if stays_moved(line, rule or PACKAGE_RULE) else 0.0
            for cell, line, base in both
        }

    def _has(self, cell: tuple[Any, ...], method: str) -> bool:
        return (*cell, method) in self.lines

    def rule(self, without: set[str], methods: Sequence[str]) -> Rule:
        """Return the rule with the highest mean among those that lose rarely, on all data sets but some."""

        def worth(rule: Rule) -> float:
            gaps = [gap for name in methods for cell, gap in self.gaps(name, rule).items() if cell[0] not in without]
            return float(np.mean(gaps)) if np.mean(np.array(gaps) < -MAX_LOSS) <= MAX_LOST else -np.inf

        return max(RULES, key=worth)

    def rule_row(self, name: str, methods: Sequence[str]) -> str:
        gaps, free = (
            np.array([gap for m in methods for cell, gap in self.gaps(m, rule).items() if cell[0] == name])
            for rule in (self.chosen[name], (0.0, 0))
        )
        gain, yes = self.chosen[name]
        lost = (gaps < -MAX_LOSS).mean()
        return f"| {name} | {gain:g} | {yes} | {gaps.mean():+.2f} | {lost:.1%} | {free.mean():+.2f} |"

    def row(self, method: str) -> str:
        every = self.gaps(method)
        gaps = np.array(list(every.values()))
        pairs = [(self.lines[*cell, method], self.baselines[cell]) for cell in every]
        moved = np.mean([has_steps(line) and stays_moved(line, PACKAGE_RULE) for line, _ in pairs])
        times = [line["seconds"] / max(base["seconds"], 0.01) for line, base in pairs]
        return (
            f"| `{method}` | {len(gaps)} | {gaps.mean():+.2f} | {gaps.min():+.2f} | {gaps.max():+.2f} | "
            f"{(gaps < -MAX_LOSS).mean():.0%} | {(gaps > 0).mean():.0%} | {moved:.0%} | "
            f"{np.median(times):.1f} ({max(times):.1f}) |"
        )

    def best_in_hindsight(self) -> list[float]:
        best = defaultdict(list)
        for name in PAPERS:
            for cell, gap in self.gaps(name).items():
                best[cell].append(gap)
        return [max(gaps) for gaps in best.values()]


def has_steps(line: Line) -> bool:
    """Whether a method left its start."""
    return bool((line.get("steps") or {}).get("lr_factor"))


def stays_moved(line: Line, rule: Rule) -> bool:
    """Whether a rule leaves a line as it is; else the method keeps its start."""
    if (line.get("steps") or {}).get("lr_factor") is None:
        return True  # not trained from a solved start
    steps, (gain, yes) = line["steps"], rule
    enough = not steps["reason"] and (steps["held_out_yes"] or 0) >= yes
    return enough and has_steps(line) and steps["score"] - steps["start_score"] > gain * (steps["standard_error"] or 0)


if __name__ == "__main__":
    main()
