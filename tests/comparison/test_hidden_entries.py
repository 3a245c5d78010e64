from __future__ import annotations

import math

import numpy as np
import pytest

from comparison.making import write_split
from partly.comparison.hidden_entries import measure_distance, measure_left_out, measure_pseudo_labels
from partly.comparison.plan import Cell
from partly.comparison.protocol import open_data, run_cell


def test_pseudo_labels_by_hand():
    z = np.array([[1, 0, 0], [0, 0, -1]], np.int8)
    hidden = np.array([[0, 1, -1], [1, -1, 0]], np.int8)  # what is under the unknown entries
    beliefs = np.array([[1.0, 0.9, 0.6], [0.5, 0.1, 0.0]])  # one right yes, one wrong yes, none, one right no
    found = measure_pseudo_labels(beliefs, z, hidden)
    assert found == pytest.approx(
        {
            "labelled": 5 / 6,
            "TP": 1.0,
            "TN": 0.5,
            "accuracy": 2 / 3,
            "F1": 2 * 1 / (2 + 2),  # 2 called yes, 2 are yes
            "F1 of all yes": 2 * 2 / (4 + 2),
        }
    )


def test_without_a_yes_there_is_no_rate_of_them():
    nothing = np.zeros((1, 2), np.int8)
    found = measure_pseudo_labels(np.full((1, 2), 0.2), nothing, nothing - 1)
    assert math.isnan(found["TP"])
    assert math.isnan(found["F1"])
    assert found["TN"] == 1


def test_the_distance_between_scores_by_hand():
    scores = np.array([[0.9, 0.1, 0.7], [0.5, 0.3, 0.0]], np.float32)
    hidden = np.array([[1, -1, 1], [0, -1, 0]], np.int8)
    assert measure_distance(scores, hidden) == pytest.approx((0.9 + 0.7) / 2 - (0.1 + 0.3) / 2)
    assert math.isnan(measure_distance(scores, np.abs(hidden)))


def test_a_line_says_how_good_the_pseudo_labels_are_and_nothing_where_all_is_known(tmp_path):
    data = open_data(str(write_split(tmp_path / "tiny.npz")))
    recipe = {"epochs": 4, "batch_size": 32}
    line = run_cell(
        Cell("tiny.npz", "uniform:0.5", "curriculum", "linear", "adamw", 0, {"strategy": "two-steps"}, recipe), data
    )
    assert line["beside"]["labelled"] == 1.0
    assert 0 < line["beside"]["accuracy"] < 1
    assert 0 < line["beside"]["wasserstein"] < 1
    plain = run_cell(Cell("tiny.npz", "uniform:0.5", "bce", "linear", "adamw", 0, {}, recipe), data)
    assert set(plain["beside"]) == {"wasserstein"}  # it believes nothing
    assert "beside" not in run_cell(Cell("tiny.npz", "full", "bce", "linear", "adamw", 0, {}, recipe), data)


def test_what_is_left_out_by_hand():
    scores = np.array([[0.9, 0.8, 0.7], [0.6, 0.99, 0.1]], np.float32)
    hidden = np.array([[1, -1, 1], [1, 0, -1]], np.int8)
    assert measure_left_out(scores, hidden, 0.5) == pytest.approx(
        {"yes left out": 2 / 3, "no left out": 1 / 3}
    )  # 2.5: three
    assert measure_left_out(scores, hidden, 0.1) == {"yes left out": 1.0, "no left out": 0.0}
    assert measure_left_out(scores, hidden, 0.0) == {}


def test_a_line_of_cls_says_what_it_leaves_out(tmp_path):
    data = open_data(str(write_split(tmp_path / "tiny.npz")))
    cell = Cell("tiny.npz", "positives:0.5", "cls", "linear", "adamw", 0, {}, {"epochs": 4, "batch_size": 32})
    assert run_cell(cell, data)["beside"].keys() == {"wasserstein", "yes left out", "no left out"}
