"""What choosing is worth, where it is known how much: of models that are the surer, the more answers they have had."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from partly.annotate.worth import FOLDS, LEAST, Given, Worth, needed, worth
from partly.labels import Labels

N = 500


def answers(count: int, column: int, seed: int = 0) -> Given:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(N)[:count]
    return Given(rows, np.full(count, column), rng.choice([-1, 1], count).astype(np.int8))


def learner(truth: Given, by_random: float, by_chosen: float) -> Callable[[Labels], Callable[[np.ndarray], np.ndarray]]:
    """A model that is the surer, the more answers it has seen; one about label 0 (random) counts `by_random`, one about
    label 1 (chosen) `by_chosen`. It never is wrong."""
    z = dict(zip(truth.rows.tolist(), truth.z.tolist(), strict=True))

    def learn(labels: Labels) -> Callable[[np.ndarray], np.ndarray]:
        yes, no = labels.counts()
        seen = by_random * (yes[0] + no[0]) + by_chosen * (yes[1] + no[1])
        sure = 0.5 + 0.4 * (1 - math.exp(-seen / 100))

        def predict(rows: np.ndarray) -> np.ndarray:
            noise = 0.02 * np.sin(rows)  # so that items differ
            p = np.array([sure if z[row] == 1 else 1 - sure for row in rows.tolist()])
            return np.stack([np.clip(p + noise, 0.01, 0.99), p], axis=1)

        return predict

    return learn


NOTHING = Labels.from_ternary(np.zeros((N, 2), np.int8))


@pytest.mark.parametrize(("times", "saved"), [(2.0, 0.5), (4 / 3, 0.25), (1.0, 0.0)])
def test_chosen_answers_that_count_so_many_times(times: float, saved: float) -> None:
    random, chosen = answers(100, 0), answers(400, 1, 1)
    found = worth(NOTHING, random, chosen, learner(random, 1.0, times), seed=0)
    assert found.saved == pytest.approx(saved, abs=0.06)
    assert found.low <= found.saved <= found.high
    assert found.high - found.low < 0.3


def test_words() -> None:
    random, chosen = answers(100, 0), answers(400, 1, 1)
    wins = worth(NOTHING, random, chosen, learner(random, 1.0, 2.0), seed=0)
    assert "100 random answers bring what about" in wins.words
    assert wins.low > 0
    loses = worth(NOTHING, random, chosen, learner(random, 1.0, 0.6), seed=0)
    assert loses.high < 0
    assert loses.words.startswith("Choosing does not win")
    never = worth(NOTHING, random, chosen, learner(random, 1.0, 0.0), seed=0)
    assert never.words.startswith("Choosing does not win")
    same = Worth(100, 400, 0.02, -0.1, 0.14)
    assert same.words.startswith("Too early to say whether")


def test_too_early() -> None:
    random, chosen = answers(LEAST - 1, 0), answers(50, 1, 1)
    learn = learner(random, 1.0, 2.0)
    assert math.isnan(worth(NOTHING, random, chosen, learn, seed=0).saved)
    random = answers(LEAST, 0)
    assert math.isnan(worth(NOTHING, random, chosen[:2], learner(random, 1.0, 2.0), seed=0).saved)
    useless = worth(NOTHING, random, chosen, learner(random, 0.0, 2.0), seed=0)  # random answers teach nothing
    assert "Too early" in useless.words
    assert useless.plain()["saved"] is None


def test_nobody_is_judged_by_who_has_seen_the_item() -> None:
    random, chosen = answers(60, 0), answers(100, 1, 1)
    seen: list[set[int]] = []

    def learn(labels: Labels) -> Callable[[np.ndarray], np.ndarray]:
        row, column, _ = labels.entries()
        told = set(row[column == 0].tolist())
        seen.append(told)

        def predict(rows: np.ndarray) -> np.ndarray:
            assert not told & set(rows.tolist())
            return np.full((len(rows), 2), 0.6)

        return predict

    worth(NOTHING, random, chosen, learn, seed=0)
    folds = [told for told in seen if told]
    assert len(folds) == FOLDS
    assert sum(60 - len(told) for told in folds) == 60


def test_needed_by_hand() -> None:
    sizes, losses = [10, 20, 40], np.array([0.6, 0.5, 0.3])
    assert needed(sizes, losses, 0.7) == 10  # never fewer
    assert needed(sizes, losses, 0.5) == pytest.approx(20)
    assert needed(sizes, losses, 0.4) == pytest.approx(20 * 2**0.5)  # half way, along the logarithm
    assert needed(sizes, losses, 0.2) == 80  # never as good
    assert needed(sizes, np.array([0.6, 0.4, 0.45]), 0.4) == pytest.approx(20)  # more that is worse is no reason
