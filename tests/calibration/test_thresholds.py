"""Thresholds beside a loop over all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partly.calibration.samples import CalibrationSample
from partly.calibration.thresholds import NEVER_YES, choose_threshold, choose_threshold_for_share, parse_goal
from partly.errors import SettingError

SCORES = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12)


def at(yes: np.ndarray, rest: np.ndarray, threshold: float, chance: float = 1.0) -> dict[str, float]:
    """Slowly: what calling yes from a threshold on is worth."""
    hits, called = (yes >= threshold).sum(), (yes >= threshold).sum() + (rest >= threshold).sum()
    true, total = min(hits / chance, called), len(yes) / chance
    precision = true / called if called else 0.0
    return {"precision": precision, "recall": hits / len(yes), "f1": 2 * true / (called + total), "called": called}


@given(SCORES, SCORES, st.sampled_from([1.0, 0.5, 0.2]))
def test_no_threshold_has_a_better_f1(yes: list[float], rest: list[float], chance: float) -> None:
    a, b = np.array(yes), np.array(rest)
    best = max(at(a, b, t, chance)["f1"] for t in {*yes, *rest})
    assert at(a, b, choose_threshold(CalibrationSample(a, b, chance), parse_goal("f1")), chance)["f1"] == pytest.approx(
        best
    )


@given(SCORES, SCORES, st.sampled_from([0.3, 0.7, 1.0]))
def test_a_target_is_met_with_the_most_of_the_other(yes: list[float], rest: list[float], target: float) -> None:
    a, b = np.array(yes), np.array(rest)
    every = [at(a, b, t) for t in {*yes, *rest}]
    for goal, other in (("precision", "recall"), ("recall", "precision")):
        found = choose_threshold(CalibrationSample(a, b), parse_goal(f"{goal}:{target}"))
        able = [one[other] for one in every if one[goal] >= target]
        if not able:
            assert found == NEVER_YES
        else:
            assert at(a, b, found)[goal] >= target
            assert at(a, b, found)[other] == pytest.approx(max(able))


def test_by_hand() -> None:
    yes, rest = np.array([3.0, 2.0, -1.0]), np.array([2.5, 0.0, -2.0])
    assert (
        choose_threshold(CalibrationSample(yes, rest), parse_goal("f1")) == -1.5
    )  # 3 of 5 called are yes, and all are found: 6 / 8
    assert choose_threshold(CalibrationSample(yes, rest), parse_goal("precision:1")) == 2.75
    assert choose_threshold(CalibrationSample(yes, rest), parse_goal("recall:1")) == -1.5
    assert choose_threshold(CalibrationSample(rest, yes), parse_goal("precision:0.9")) == NEVER_YES


@pytest.mark.parametrize(("share", "called"), [(0.0, 0), (0.04, 0), (0.25, 2), (0.31, 3), (1.0, 10)])
def test_a_share_of_all_items_is_called(share: float, called: int) -> None:
    scores = np.arange(10, dtype=np.float32)
    assert (
        (scores >= choose_threshold_for_share(scores, share)).sum() == called
        if called
        else choose_threshold_for_share(scores, share) == NEVER_YES
    )


@pytest.mark.parametrize("wrong", ["F1", "precision", "precision:0", "recall:1.2", "recall:x", "f1:0.5", "", 3, None])
def test_what_is_no_goal_is_refused(wrong: object) -> None:
    with pytest.raises(SettingError, match="thresholds = "):
        parse_goal(wrong)
