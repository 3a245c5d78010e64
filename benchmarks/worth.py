"""Is the pages' verdict right? What they say choosing is worth, beside what it was worth where the truth is known.

    python benchmarks/worth.py ../shared/data/voc2012.npz [--seeds 3] [--answers 200] [--dimensions 64]

Of 500 items 3 % of the entries are known. Random questions and questions of a query are answered, one answer in
twenty wrong; nobody is asked what was asked before. The verdict is that of the pages (`annotate.worth`): the share of
random answers that choosing makes needless, with its interval. The truth is the same reckoning on what the pages cannot
see: all entries of the test part, right, in the place of the answers of the shadow arm. `random` in the place of a
query must come out as worth nothing. Features are cut to their first principal components, so that it takes seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from partly import Classifier, Labels, scenarios
from partly.active.queries import Questions, choose
from partly.active.simulation import from_people
from partly.annotate.worth import FOLDS, SIZES, Given, Learn, _losses, needed, worth
from partly.clock import Clock
from partly.comparison.protocol import open_data
from partly.items import Items, features

Positions = npt.NDArray[np.int64]
QUERIES = ("random", "uncertainty", "diverse")
ERRORS, ROUNDS, KNOWN = 0.05, 8, 0.03


def learner(items: Items) -> Learn:
    """As the pages judge: a linear model, solved."""

    def learn(labels: Labels):  # type: ignore[no-untyped-def]
        told = np.flatnonzero(labels.known_per_item())
        model = Classifier("bce", "linear", progress=False).fit(items[told], labels[told])
        return lambda rows: model.predict_proba(items[rows])

    return learn


def told(truth: Labels, rows: Positions, columns: Positions, seed: int) -> Given:
    said = from_people(truth, ERRORS, seed)(Questions(rows, columns, {}))
    return Given(rows, columns, np.where(said, 1, -1).astype(np.int8))


def asked(query: str, items: Items, given: Labels, truth: Labels, count: int, seed: int, out: Given) -> Given:
    """So many answers to questions of a query, in rounds, none of them about the entries in `out`."""
    found, size = out[:0], -(-count // ROUNDS)
    for number in range(ROUNDS):
        labels = found.told(given)
        method = Classifier("bce", "linear", progress=False).fit(items, labels).fitted_.method
        before = np.concatenate([out.rows, found.rows]), np.concatenate([out.columns, found.columns])
        some = choose(query, method, items, labels, size, Clock(seed, epoch=number), asked=before)
        more = told(truth, some.rows, some.columns, seed)
        parts = ([getattr(one, name) for one in (found, more)] for name in ("rows", "columns", "z"))
        found = Given(*(np.concatenate(part) for part in parts))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--answers", type=int, default=200, help="random ones; twice as many are chosen")
    parser.add_argument("--dimensions", type=int, default=64)
    how = parser.parse_args()
    data = open_data(f"{how.data}:500")
    assert data.test is not None
    x, x_test = (one.items.take(slice(None)).double().numpy() for one in (data, data.test))
    axes = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[2][: how.dimensions].T
    both = features(np.concatenate([x, x_test]) @ axes)
    items, size, count = both[: len(x)], len(x), how.answers
    rows, columns = (part.ravel() for part in np.indices(data.test.labels.shape))
    exam = Given(rows + size, columns, data.test.labels.rows(slice(None)).ravel())
    print(f"{'seed':>4} {'query':>12} {'truth':>7} {'verdict':>8}  interval", flush=True)
    for seed in range(how.seeds):
        given = scenarios.uniform(data.labels, KNOWN, seed)
        wider = Labels.from_ternary(np.concatenate([given.ternary(), np.zeros(data.test.labels.shape, np.int8)]))
        unknown = np.flatnonzero(given.ternary().ravel() == 0)
        picked = np.random.default_rng(seed).permutation(unknown)[:count]
        random = told(data.labels, *np.divmod(picked, given.shape[1]), seed)
        seen = round(count * (1 - 1 / FOLDS))  # as many as the pages' models learn from
        learn, sizes = learner(both), [round(share * seen) for share in SIZES]
        goal = _losses(learn(random[:seen].told(wider)), exam).mean()
        for query in QUERIES:
            chosen = asked(query, items, given, data.labels, 2 * count, seed, random)
            losses = np.array([_losses(learn(chosen[:k].told(wider)), exam).mean() for k in sizes])
            truth = 1 - needed(sizes, losses, goal) / seen
            said = worth(wider, random, chosen, learn, seed)
            span = f"{said.low:.0%} to {said.high:.0%}" if said.saved == said.saved else "too early to say"
            print(f"{seed:4} {query:>12} {truth:7.0%} {said.saved:8.0%}  {span}", flush=True)


if __name__ == "__main__":
    main()
