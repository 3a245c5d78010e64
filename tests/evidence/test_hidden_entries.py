from __future__ import annotations

import math

import numpy as np
import pytest

from comparison.making import write_split
from evidence.hidden_entries import measure_epochs, share_found
from partly import engine, scenarios
from partly.comparison.hidden_entries import measure_distance
from partly.comparison.protocol import open_data
from plans import fit_config, plan_of


def test_found_by_hand():
    scores = np.array([[0.9, 0.8, 0.7], [0.6, 0.99, 0.1]], np.float32)
    hidden = np.array([[1, -1, 1], [1, 0, -1]], np.int8)  # of the three highest that are unknown, two are yes
    assert share_found(scores, hidden) == pytest.approx(2 / 3)
    assert math.isnan(share_found(scores, -np.abs(hidden)))


def test_a_run_that_is_looked_at_after_every_epoch_ends_as_one_that_is_not(tmp_path):
    data = open_data(str(write_split(tmp_path / "tiny.npz")))
    observed = scenarios.uniform(data.labels, 0.5, 0)
    config = engine.make_config("curriculum", "linear", epochs=4, batch_size=32, settings={"strategy": "two-steps"})
    lines = measure_epochs(plan_of(config, data.items, observed), data.labels)
    assert [line["labelled"] for line in lines] == [0.5, 0.5, 1.0, 1.0]  # everything at once, half-way
    fitted = fit_config(config, data.items, observed)
    hidden = np.where(observed.known, 0, data.labels.ternary())
    assert lines[-1]["wasserstein"] == measure_distance(fitted.predict(data.items), hidden)
    assert lines[-1]["found"] == share_found(fitted.predict(data.items), hidden)
    assert lines[0]["found"] < lines[-1]["found"]
