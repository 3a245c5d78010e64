from __future__ import annotations

import numpy as np

from comparison.making import lines
from evidence import gap_map
from partly.comparison.groups import gather


def test_shares_of_the_gap_by_method_and_race() -> None:
    # From 0.4 (naive) to 0.8 (all labels): 0.6 is half of the way, 0.5 a quarter.
    scores = {
        "full": [0.8, 0.8],
        "assume-negative": [0.4, 0.4],
        "bce": [0.5, 0.5],
        "em": [0.6, 0.6],
        "auto": [0.7, 0.7],
    }
    other = {"full": [0.8, 0.8], "assume-negative": [0.4, 0.4], "em": [0.2, 0.2]}
    blocks = gather(lines(scores)) + gather(lines(other, data="small"))
    found = gap_map.gather(blocks)
    assert found.columns == ("tiny, uniform:0.5", "small, uniform:0.5")
    assert found.rows == (
        "auto",
        "bce",
        "em",
    )  # who chooses for itself first; then by mean: 0.25 and 0
    np.testing.assert_allclose(found.shares, [[0.75, np.nan], [0.25, np.nan], [0.5, -0.5]], atol=1e-12)


def test_a_race_without_ends_has_no_column() -> None:
    assert gap_map.gather(gather(lines({"bce": [0.5], "em": [0.6]}))).columns == ()


def test_the_picture_has_a_number_a_cell() -> None:
    scores = {"full": [0.8] * 2, "assume-negative": [0.4] * 2, "em": [0.6] * 2, "focal": [-0.1] * 2}
    svg = gap_map.draw(gap_map.gather(gather(lines(scores)))).decode()
    assert ">50<" in svg
    assert "&lt; -100" in svg
