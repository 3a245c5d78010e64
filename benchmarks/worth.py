"""Is the pages' verdict right? What they say choosing is worth, beside what it was worth where the truth is known.

    python benchmarks/worth.py ../shared/data/voc2012.npz:2000 --known 0.03 --answers 400 [--givens 2] [--seeds 10]

A few entries are known. Random questions and questions of a query are answered, one answer in twenty wrong; nobody is
asked what was asked before. The verdict is that of the pages (`annotate.query_gain`): the share of random answers that
choosing makes needless, with its interval. The truth is what the pages cannot see: the same share by the errors on the
test part, all of it and right, as the mean over all seeds with the same known entries, so that hardly any luck is left
in it. `random` in the place of a query must be worth nothing, and `surest`, which asks what the model is most sure of,
must lose. Features are cut to their first principal components, and asked and judged by a plain logistic regression
with a fixed ridge, so that a model takes milliseconds: the verdict takes any.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from partly import Labels, scenarios
from partly.active.selection import Questions
from partly.active.simulation import answers_with_errors
from partly.annotate.query_gain import (
    SELECTED_SHARES,
    AnswerSeries,
    Learn,
    QueryGain,
    brier_score,
    estimate_savings,
    measure_gain,
)
from partly.comparison.protocol import open_data

Positions = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
QUERIES = ("random", "uncertainty", "surest")
ERRORS, ROUNDS, STEPS = 0.05, 8, 5


def learner(x: Floats) -> Learn:
    """A logistic regression of each label, by Newton's steps."""
    x = np.hstack([4 * (x - x.mean(axis=0)) / (x.std(axis=0).mean() * np.sqrt(x.shape[1])), np.ones((len(x), 1))])
    ridge = np.diag([1.0] * (x.shape[1] - 1) + [0.05])

    def learn(labels: Labels):  # type: ignore[no-untyped-def]
        z = labels.ternary()
        weights = np.zeros((x.shape[1], z.shape[1]))
        for column in np.flatnonzero(z.any(axis=0)):
            rows = np.flatnonzero(z[:, column])
            here, yes = x[rows], z[rows, column] == 1
            for _ in range(STEPS):
                p = expit(here @ weights[:, column])
                slope = here.T @ (p - yes) + ridge @ weights[:, column]
                weights[:, column] -= np.linalg.solve((here.T * (p * (1 - p))) @ here + ridge, slope)
        return lambda rows: expit(x[rows] @ weights)

    return learn


def told(truth: Labels, flat: Positions, seed: int) -> AnswerSeries:
    rows, columns = np.divmod(flat, truth.shape[1])
    said = answers_with_errors(truth, ERRORS, seed)(Questions(rows, columns, {}))
    return AnswerSeries(rows, columns, np.where(said, 1, -1).astype(np.int8))


def asked(
    query: str, learn: Learn, given: Labels, truth: Labels, count: int, seed: int, out: AnswerSeries
) -> AnswerSeries:
    """So many answers to questions of a query, in rounds, none of them about the entries in `out`."""
    found, rng = out[:0], np.random.default_rng([seed, 1])
    for _ in range(ROUNDS):
        sure = np.abs(learn(found.add_to(given))(np.arange(len(truth))) - 0.5)
        value = {"random": rng.random(sure.shape), "uncertainty": -sure, "surest": sure}[query]
        for gone in (out, found):
            value[gone.rows, gone.columns] = -np.inf
        value[given.ternary()[: len(truth)] != 0] = -np.inf
        more = told(truth, np.argsort(-value, axis=None, kind="stable")[: -(-count // ROUNDS)], seed)
        parts = ([getattr(one, name) for one in (found, more)] for name in ("rows", "columns", "z"))
        found = AnswerSeries(*(np.concatenate(part) for part in parts))
    return found


class World:
    """Items with what is known of them, and a test part, as rows of one table."""

    def __init__(self, where: str, dimensions: int) -> None:
        data = open_data(where)
        assert data.test is not None
        x, x_test = (one.items.take(slice(None)).double().numpy() for one in (data, data.test))
        axes = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[2][:dimensions].T
        self.truth, self.unseen = data.labels, np.zeros(data.test.labels.shape, np.int8)
        self.learn = learner(np.concatenate([x, x_test]) @ axes)
        rows, columns = (part.ravel() for part in np.indices(self.unseen.shape))
        self.exam = AnswerSeries(rows + len(x), columns, data.test.labels.rows(slice(None)).ravel())

    def judged(self, given: Labels, query: str, count: int, seed: int) -> tuple[QueryGain, Floats]:
        """The verdict of one seed, and by how much lower the error on the test part is after chosen answers, [K]."""
        unknown = np.flatnonzero(given.ternary().ravel() == 0)
        random = told(self.truth, np.random.default_rng(seed).permutation(unknown)[:count], seed)
        wider = Labels.from_ternary(np.concatenate([given.ternary(), self.unseen]))
        chosen = asked(query, self.learn, wider, self.truth, 2 * count, seed, random)
        by_random = brier_score(self.learn(random[: count // 2].add_to(wider)), self.exam)
        firsts = [chosen[: round(size * (count // 2))] for size in SELECTED_SHARES]
        ahead = by_random - np.array([brier_score(self.learn(some.add_to(wider)), self.exam) for some in firsts])
        return measure_gain(wider, random, chosen, self.learn, seed), ahead


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="FILE:ITEMS, or FILE, or a data set that is built in")
    parser.add_argument("--known", type=float, default=0.03)
    parser.add_argument("--givens", type=int, default=2, help="draws of what is known")
    parser.add_argument("--seeds", type=int, default=10, help="of questions and answers, for each of them")
    parser.add_argument("--answers", type=int, default=200, help="random ones; twice as many are chosen")
    parser.add_argument("--dimensions", type=int, default=32)
    parser.add_argument("--queries", nargs="+", default=QUERIES)
    how = parser.parse_args()
    world = World(how.data, how.dimensions)
    for query in how.queries:
        counts = dict.fromkeys(("cases", "wins", "loses", "covered"), 0)
        truths = []
        for number in range(how.givens):
            given = scenarios.uniform(world.truth, how.known, number, per_entry=True)
            found = [world.judged(given, query, how.answers, 1000 * number + seed) for seed in range(how.seeds)]
            ahead = np.mean([one for _, one in found], axis=0)
            # Without an error its lower end is the truth: -inf where choosing loses, 0.75 where a quarter is enough.
            truth = 0.0 if query == "random" else estimate_savings(ahead, np.zeros(len(SELECTED_SHARES)))[1]
            truths.append(f"{truth:.0%}")
            for said, _ in found:
                print(json.dumps({"query": query, "truth": truths[-1]} | said.plain()), flush=True)
                counts["cases"] += 1
                counts["wins"] += said.low > 0
                counts["loses"] += said.high <= 0
                counts["covered"] += said.low <= truth <= said.high
        print(json.dumps({"data": how.data, "query": query, "truth": truths} | counts), flush=True)


if __name__ == "__main__":
    main()
