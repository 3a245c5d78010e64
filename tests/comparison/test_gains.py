from __future__ import annotations

import pytest

from comparison.making import line, lines
from partly.comparison import overview as page
from partly.comparison import score_tables
from partly.comparison.gains import gains, signed
from partly.comparison.groups import gather
from partly.comparison.statistics import Mean

RACE = {"full": [0.8, 0.9], "assume-negative": [0.4, 0.5], "bce": [0.60, 0.64], "hill": [0.65, 0.65]}


def grouped(method: str, seed: int, *scores: float | None) -> dict:
    """A line with a mAP for each group."""
    groups = {f"mAP group {n}": score for n, score in enumerate(scores, 1)}
    return line(method, seed) | {"test": {"mAP": 0.5, "CF1": 0.4, "OF1": 0.6} | groups}


def test_differences_are_those_of_the_same_seed():
    made = lines(RACE) + lines({"bce": [0.3, 0.3], "hill": [0.31]}, scenario="uniform:0.1")
    (found,) = gains(gather(made), "bce")  # lines without groups have no tables of groups
    assert found.title == "tiny, linear"
    assert found.columns == ("uniform:0.1", "uniform:0.5")
    assert [one.value for one in found.own] == pytest.approx([0.3, 0.62])
    (name, (few, many)), (naive, (none, less)) = found.rows
    assert (name, naive, none) == ("hill", "assume-negative", None)
    assert (few.value, few.margin, few.count) == (pytest.approx(0.01), None, 1)
    assert (many.value, many.count) == (pytest.approx((0.05 + 0.01) / 2), 2)
    assert many.margin == pytest.approx(12.706 * 0.02, rel=1e-4)  # two differences 0.04 apart
    assert less.value == pytest.approx(-0.17)


def test_groups_have_a_table_for_each_scenario():
    made = [grouped("bce", 0, 0.1, 0.2, 0.3, 0.4, 0.5), grouped("hill", 0, 0.2, 0.2, None, 0.3, 0.7)]
    _, found = gains(gather(made), "bce")
    assert found.title == "tiny, linear, uniform:0.5"
    assert found.columns == ("group 1", "group 2", "group 3", "group 4", "group 5")
    assert [one.value for one in found.own] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert [signed(one) for one in found.rows[0][1]] == ["+10.00", "+0.00", "", "-10.00", "+20.00"]


def test_kinds_of_validation_are_not_mixed():
    made = lines(RACE) + lines({"bce": [0.2], "hill": [0.1]}, validation="partial")
    assert [one.title for one in gains(gather(made), "bce")] == [
        "tiny, linear", "tiny, linear, validated on partly known labels",
    ]  # fmt: skip


def test_a_difference_in_words():
    assert signed(Mean(-0.0123, 0.004, 3)) == "-1.23 ± 0.40"
    assert signed(None) == ""


def test_reports_have_them_where_wanted():
    made = lines(RACE)
    assert "Improvement over" not in score_tables.markdown(made) + page.render(made)
    text = score_tables.markdown(made, over="bce")
    assert "| method | uniform:0.5 |\n|---|---:|\n| bce | 0.620 ± 0.254 |\n| hill | +3.00 ± 25.41 |\n" in text
    assert "+3.00 ± 25.41" in page.render(made, over="bce")
    assert "Improvement over" not in score_tables.markdown(made, over="nobody") + page.render(made, over="nobody")
