"""Share of simulated draws whose 95 % interval contains the truth.

    python benchmarks/interval_coverage.py [--draws 1000] [--items 100 300 1000] [--known 1 0.3] [--whole]

Each draw samples items anew; the truth is the metric on 300,000 items. `label AP` and so on are of the second label.
With --whole, the intervals are those of the estimates for all entries: 2,000 items, 10 % of the entries known at
random; 30 % of the yes known, with the true priors and with estimated ones; and an audit of 300 entries, whose truth is
the matrix at hand. The share should lie between 93 % and 97 %.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit

from partly import Labels
from partly.metrics import estimate, intervals, label_intervals, measure

NAMES = ("mAP", "AUROC", "OF1", "macro_f1", "P@1", "P@3", "nDCG@3", "LRAP", "brier", "pooled_AP")
OF_LABEL, LABEL = ("AP", "AUROC", "F1"), 1
WHOLE = ("mAP", "AUROC", "OP", "OR", "OF1", "macro_f1", "prevalence", "P@1", "P@3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--items", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--known", type=float, nargs="+", default=[1.0, 0.3])
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    shares = np.random.default_rng(0).uniform(0.1, 0.5, 5)
    if options.whole:
        for row in cover_whole(shares, options.draws):
            print(json.dumps(row), flush=True)
        return
    for known in options.known:
        rng = np.random.default_rng(1)
        population = measure(*sample(rng, shares, 300_000, known))
        for items in options.items:
            row = cover(rng, population, shares, items, known, options.draws)
            print(json.dumps({"known": known, "items": items, "draws": options.draws} | row), flush=True)


def cover(
    rng: np.random.Generator, population: Any, shares: np.ndarray, items: int, known: float, draws: int
) -> dict[str, float]:
    """Return the share of draws whose interval contains the truth, by metric; undefined intervals are left out."""
    hits, defined = Counter[str](), Counter[str]()
    truth = population.values | {f"label {name}": population.by_label[name][LABEL] for name in OF_LABEL}
    for _ in range(draws):
        measured = measure(*sample(rng, shares, items, known), influence=True)
        found = {name: intervals(measured, 0.95)[name] for name in NAMES}
        of_label = label_intervals(measured, 0.95)
        count(hits, defined, truth, found | {f"label {name}": tuple(of_label[name][LABEL]) for name in OF_LABEL})
    return {name: round(hits[name] / defined[name], 3) for name in defined}


def count(hits: Counter[str], defined: Counter[str], truth: dict[str, float], found: dict[str, Any]) -> None:
    for name, (low, high) in found.items():
        if low == low:
            defined[name] += 1
            hits[name] += bool(low <= truth[name] <= high)


def cover_whole(shares: np.ndarray, draws: int, items: int = 2000, audited: int = 300) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(2)
    scores, labels = sample(rng, shares, 300_000, 1.0)
    population = values_of(scores, labels)
    for name in ("at-random", "positives-only, true priors", "positives-only", "audit"):
        hits, defined = Counter[str](), Counter[str]()
        for _ in range(draws):
            scores, full = sample(rng, shares, items, 1.0)
            truth = values_of(scores, full) if name == "audit" else population
            found = estimate_draw(rng, name, scores, full, shares, audited)
            count(hits, defined, truth, {key: (found[key].low, found[key].high) for key in WHOLE})
        rates = {key: round(hits[key] / defined[key], 3) for key in defined}
        yield {"mechanism": name, "items": items, "draws": draws, "defined": max(defined.values())} | rates


def values_of(scores: np.ndarray, labels: Labels) -> dict[str, float]:
    counts = labels.counts()[0].sum() / scores.size
    return measure(scores, labels).values | {"prevalence": float(counts)}


def estimate_draw(
    rng: np.random.Generator, name: str, scores: np.ndarray, full: Labels, shares: np.ndarray, audited: int
) -> Any:
    """Hide entries, and estimate."""
    z = np.array(full.ternary())
    if name == "at-random":
        return estimate(scores, Labels.from_ternary(np.where(rng.random(z.shape) < 0.1, z, 0))).estimates
    known = np.where((z == 1) & (rng.random(z.shape) < 0.3), 1, 0)
    if name != "audit":
        prior = shares if "true" in name else None
        return estimate(scores, Labels.from_ternary(known), prior=prior).estimates
    unknown = np.flatnonzero(known == 0)
    drawn = rng.choice(unknown, audited, replace=False)
    answers = np.zeros(z.size, np.int8)
    answers[drawn] = z.ravel()[drawn]
    audit = Labels.from_ternary(answers.reshape(z.shape))
    return estimate(scores, Labels.from_ternary(known), audit=audit).estimates


def sample(rng: np.random.Generator, shares: np.ndarray, items: int, known: float) -> tuple[np.ndarray, Labels]:
    """Draw probabilities of a model with errors that items share, and labels of which a share is known."""
    y = rng.random((items, len(shares))) < shares
    noise = rng.normal(size=y.shape) + 0.5 * rng.normal(size=(items, 1))
    z = np.where(rng.random(y.shape) < known, np.where(y, 1, -1), 0).astype(np.int8)
    return expit(noise + 1.5 * y - 0.5), Labels.from_ternary(z)


if __name__ == "__main__":
    main()
