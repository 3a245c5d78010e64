"""What choosing is worth, where it is known how much: of models that are the surer, the more answers they have had."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest

from partly.annotate.query_gain import (
    MIN_RANDOM_ANSWERS,
    SELECTED_SHARES,
    SPLITS,
    AnswerSeries,
    QueryGain,
    estimate_savings,
    measure_gain,
)
from partly.labels import Labels

N = 2000
Predict = Callable[[np.ndarray], np.ndarray]
NOTHING = Labels.from_ternary(np.zeros((N, 2), np.int8))


def answers(count: int, column: int, seed: int = 0) -> AnswerSeries:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(N // 2)[:count] + column * (N // 2)
    return AnswerSeries(rows, np.full(count, column), rng.choice([-1, 1], count).astype(np.int8))


def learner(
    truth: AnswerSeries, by_random: float, by_chosen: float, noise: float = 0.02
) -> Callable[[Labels], Predict]:
    """A model that is the surer, the more answers it has seen; one about label 0 (random) counts `by_random`, one about
    label 1 (chosen) `by_chosen`. It never is wrong; how sure it is of an item hangs on luck, by `noise`."""
    z = dict(zip(truth.rows.tolist(), truth.z.tolist(), strict=True))

    def learn(labels: Labels) -> Predict:
        yes, no = labels.counts()
        seen = by_random * (yes[0] + no[0]) + by_chosen * (yes[1] + no[1])
        sure = 0.5 + 0.4 * (1 - math.exp(-seen / 100))
        luck = np.random.default_rng(int(labels.entries()[0].sum()) % 2**31)

        def predict(rows: np.ndarray) -> np.ndarray:
            p = np.array([sure if z[row] == 1 else 1 - sure for row in rows.tolist()])
            return np.clip(p + noise * luck.normal(size=len(p)), 0, 1)[:, None].repeat(2, axis=1)

        return predict

    return learn


@pytest.mark.parametrize(("times", "share"), [(3.0, 2 / 3), (2.0, 0.5), (4 / 3, 0.25)])
def test_chosen_answers_that_count_so_many_times(times: float, share: float) -> None:
    random, chosen = answers(200, 0), answers(400, 1, 1)
    found = measure_gain(NOTHING, random, chosen, learner(random, 1.0, times), seed=0)
    assert found.saved == pytest.approx(share, abs=0.06)
    assert 0 < found.low <= found.saved <= found.high <= share + 0.2


def test_words() -> None:
    random, chosen = answers(200, 0), answers(400, 1, 1)
    wins = measure_gain(NOTHING, random, chosen, learner(random, 1.0, 2.0), seed=0)
    assert wins.words.startswith("Selection saves ")
    assert "95 % interval" in wins.words
    loses = measure_gain(NOTHING, random, chosen, learner(random, 1.0, 0.3), seed=0)
    assert loses.words.startswith("Selection does not help")
    assert loses.plain()["high"] is None
    same = measure_gain(NOTHING, random, chosen, learner(random, 1.0, 1.0), seed=0)
    assert same.words.startswith("No significant difference yet")
    most = QueryGain(100, 400, 0.75, 0.6, 1.0)
    assert "saves at least 75 % of the answers (95 % interval 60 % to 100 %): about 25 selected" in most.words


def test_luck_makes_nothing_certain() -> None:
    """Models whose errors are luck: of 40 comparisons of like with like hardly any is decided."""
    random, chosen = answers(60, 0), answers(240, 1, 1)
    learn = learner(random, 1.0, 1.0, noise=0.3)
    found = [measure_gain(NOTHING, random, chosen, learn, seed).words for seed in range(40)]
    assert sum(words.startswith("No significant") for words in found) >= 36


def test_too_early() -> None:
    random, chosen = answers(MIN_RANDOM_ANSWERS - 1, 0), answers(50, 1, 1)
    few = measure_gain(NOTHING, random, chosen, learner(random, 1.0, 2.0), seed=0)
    assert math.isnan(few.saved)
    assert f"At least {MIN_RANDOM_ANSWERS} of each" in few.words
    random = answers(MIN_RANDOM_ANSWERS, 0)
    assert math.isnan(
        measure_gain(NOTHING, random, chosen[: MIN_RANDOM_ANSWERS - 1], learner(random, 1.0, 2.0), seed=0).saved
    )
    json.dumps(few.plain(), allow_nan=False)


@pytest.mark.parametrize(
    "gain", [QueryGain(100, 400, 0.5, 0.3, 0.7), QueryGain(100, 400, 0.0, -math.inf, -math.inf), QueryGain(3, 4)]
)
def test_stored_gains_read_the_same(gain: QueryGain) -> None:
    assert QueryGain.from_plain(json.loads(json.dumps(gain.plain()))).words == gain.words


def test_nobody_is_judged_by_who_has_seen_the_item() -> None:
    random = answers(60, 0)
    chosen = AnswerSeries(random.rows.repeat(4), np.ones(240, np.int64), np.ones(240, np.int8))  # about the same items
    taught: list[tuple[int, int]] = []

    def learn(labels: Labels) -> Predict:
        row, column, _ = labels.entries()
        taught.append((int((column == 0).sum()), int((column == 1).sum())))

        def predict(rows: np.ndarray) -> np.ndarray:
            assert not set(row.tolist()) & set(rows.tolist())
            return np.full((len(rows), 2), 0.6)

        return predict

    measure_gain(NOTHING, random, chosen, learn, seed=0)
    assert len(taught) == 2 * SPLITS * (1 + len(SELECTED_SHARES))
    assert taught[0] == (30, 0)
    assert all(one == 0 for one, other in taught if other)  # and nobody learns from both arms


def test_saved_by_hand() -> None:
    none = np.zeros(3)  # of a quarter, a half and all
    assert estimate_savings(np.array([-2.0, 0, 2]), none) == pytest.approx((0.5, 0.5, 0.5))
    assert estimate_savings(np.array([-2.0, -1, 1]), none)[0] == pytest.approx(1 - 0.5**0.5)  # along the logarithm
    here, low, high = estimate_savings(np.array([-2.0, 0, 2]), np.full(3, 1.0))
    assert (low, here, high) == pytest.approx((1 - 0.5**0.5, 0.5, 1 - 0.5**1.5))
    assert estimate_savings(np.array([1.0, 2, 3]), none) == pytest.approx((0.75, 0.75, 1))  # less than a quarter
    assert estimate_savings(np.array([-3.0, -2, -1]), none) == pytest.approx((0, -math.inf, -math.inf))
    assert estimate_savings(np.array([-1.0, 0, 1]), np.full(3, 9.0))[1:] == (-math.inf, 1)  # nothing is certain
    assert (
        estimate_savings(np.array([2.0, 2, -1]), none)[1] == -math.inf
    )  # ahead, and no more with more answers: not certain
