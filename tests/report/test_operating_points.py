"""Counts by threshold give the scores of the metrics, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from partly import metrics
from partly.labels import Labels
from partly.report import operating_points as points

ENTRIES = st.tuples(st.integers(1, 12), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        arrays.arrays(np.int8, shape, elements=st.sampled_from([-1, 0, 1])),
        arrays.arrays(np.float32, shape, elements=st.integers(0, 40).map(lambda n: np.float32(n / 40))),
    )
)


@given(ENTRIES, st.sampled_from([20, 100]), st.data())
def test_every_threshold_gives_what_the_metrics_give(
    entries: tuple[np.ndarray, np.ndarray], steps: int, data: st.DataObject
) -> None:
    z, p = entries
    truth = Labels.from_ternary(z)
    step = data.draw(st.integers(1, steps - 1))
    called = points.count_by_threshold(p, truth, steps)
    scores, table = metrics.both(p, truth, step / steps)
    found = called.scores(step)
    for key in (*points.MICRO, *points.MACRO):
        assert found[key] == scores[key] or np.isnan([found[key], scores[key]]).all()
    hits, predicted, yes = called.count_above(step)
    for mine, key in ((hits, "hits"), (predicted, "predicted"), (yes, "yes")):
        np.testing.assert_array_equal(mine, table[key])


def test_packed_counts_are_thresholds_reached_yes_and_no(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = Labels.from_ternary([[1, -1], [1, 0], [-1, 1]])
    p = np.array([[0.5, 0.04], [0.52, 0.9], [0.5, 1.0]])
    called = points.count_by_threshold(p, truth, 20)
    assert called.to_lists() == [[10, 2, 1], [0, 0, 1, 20, 1, 0]]
    monkeypatch.setattr(points, "MAX_LABELS_LISTED", 1)
    assert called.to_lists() == [[0, 0, 1, 10, 2, 1, 20, 1, 0]]
