from __future__ import annotations

from pathlib import Path

import pytest

from comparison.making import line, lines
from partly.comparison import markdown, page
from partly.comparison.groups import gather
from partly.comparison.markdown import compute_gains, format_gain
from partly.comparison.statistics import Mean

ROOT = Path(__file__).resolve().parents[2]
RACE = {
    "full": [0.8, 0.9, 0.85],
    "assume-negative": [0.4, 0.5, 0.45],
    "bce": [0.62, 0.63, 0.64],
    "partial-bce": [0.6, 0.7, 0.65],
}


def cells(text: str) -> list[list[str]]:
    """The rows of the first table."""
    table = text[text.index("| method") :].split("\n\n")[0]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]


def test_a_table_by_hand():
    made = [*lines(RACE), line("seer", score=0.96, needs_truth=True)]
    head, rule, *rows = cells(markdown.render(made))
    assert head == ["method", "mAP", "CF1 at 0.5", "OF1 at 0.5", "gap closed", "seconds", "memory", "seeds"]
    assert len(rule) == len(head)
    # Three values 0.05 apart: 4.303 x 0.05 / sqrt 3; 0.01 apart: 0.0248.
    assert [row[:2] for row in rows] == [
        ["bce, all labels *(reference)*", "0.850 ± 0.124"],
        ["seer *(oracle: sees the truth)*", "0.960"],
        ["**partial-bce**", "**0.650 ± 0.124**"],
        ["bce ≈ *(naive baseline)*", "0.630 ± 0.025"],
        ["assume-negative *(naive baseline)*", "0.450 ± 0.124"],
    ]
    assert [row[4] for row in rows] == ["", "140 %", "50 %", "45 %", "0 %"]
    assert rows[2][5:] == ["2.0", "100 MB", "3"]


def test_the_verdict_comes_first():
    assert markdown.render(lines(RACE)).startswith("**partial-bce** and **bce** share the lead at uniform:0.5")


def test_published_values_fill_a_last_column():
    made = lines({"full": [0.8], "assume-negative": [0.7]})
    head, _, full, naive = cells(markdown.render(made, published=lambda row: "0.9" if row.kind == "full" else ""))
    assert head[-1] == "papers"
    assert (full[-1], naive[-1]) == ("0.9", "")
    assert "papers" not in cells(markdown.render(made, published=lambda row: ""))[0]
    assert "papers" not in cells(markdown.render(made))[0]


def test_with_coarse_labels_the_scores_are_those_of_the_paper():
    ranks = {"mAP": 0.5, "P@1": 0.7, "P@3": 0.4, "P@5": 0.3, "CF1": 0.1}
    made = lines({"refine": [0.5]}, data="coco", scenario="coarse-only:0.0009765625", test=ranks)
    head, _, row = cells(markdown.render(made))
    assert head[1:5] == ["mAP", "P@1", "P@3", "P@5"]
    assert row[1:5] == ["0.500", "0.700", "0.400", "0.300"]
    assert '">P@3</abbr></th>' in page.render(made)


def test_undefined_is_a_word():
    assert cells(markdown.render(lines({"bce": [None], "assume-negative": [0.5]})))[-1][1] == "undefined"


def test_text_from_the_data_stays_text():
    text = markdown.render(lines({"bce": [0.5], "assume-negative": [0.4]}, data="a|b *c* <i>\n# d"))
    assert "**a\\|b \\*c\\* \\<i\\> \\# d, linear**" in text


def test_kinds_of_validation_have_their_own_sections():
    made = lines({"bce": [0.5]}) + lines({"bce": [0.4]}, validation="partial")
    text = markdown.render(made)
    assert "## uniform:0.5\n" in text
    assert "## uniform:0.5, validated on partly known labels\n" in text


GAINS = {"full": [0.8, 0.9], "assume-negative": [0.4, 0.5], "bce": [0.60, 0.64], "hill": [0.65, 0.65]}


def grouped(method: str, seed: int, *scores: float | None) -> dict:
    """A line with a mAP for each group."""
    groups = {f"mAP group {n}": score for n, score in enumerate(scores, 1)}
    return line(method, seed) | {"test": {"mAP": 0.5, "CF1": 0.4, "OF1": 0.6} | groups}


def test_differences_are_those_of_the_same_seed():
    made = lines(GAINS) + lines({"bce": [0.3, 0.3], "hill": [0.31]}, scenario="uniform:0.1")
    (found,) = compute_gains(gather(made), "bce")  # lines without groups have no tables of groups
    assert found.title == "tiny, linear"
    assert found.columns == ("uniform:0.1", "uniform:0.5")
    assert [one.value for one in found.base] == pytest.approx([0.3, 0.62])
    (name, (few, many)), (naive, (none, less)) = found.rows
    assert (name, naive, none) == ("hill", "assume-negative", None)
    assert (few.value, few.margin, few.count) == (pytest.approx(0.01), None, 1)
    assert (many.value, many.count) == (pytest.approx((0.05 + 0.01) / 2), 2)
    assert many.margin == pytest.approx(12.706 * 0.02, rel=1e-4)  # two differences 0.04 apart
    assert less.value == pytest.approx(-0.17)


def test_groups_have_a_table_for_each_scenario():
    made = [grouped("bce", 0, 0.1, 0.2, 0.3, 0.4, 0.5), grouped("hill", 0, 0.2, 0.2, None, 0.3, 0.7)]
    _, found = compute_gains(gather(made), "bce")
    assert found.title == "tiny, linear, uniform:0.5"
    assert found.columns == ("group 1", "group 2", "group 3", "group 4", "group 5")
    assert [one.value for one in found.base] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert [format_gain(one) for one in found.rows[0][1]] == ["+10.00", "+0.00", "", "-10.00", "+20.00"]


def test_kinds_of_validation_are_not_mixed():
    made = lines(GAINS) + lines({"bce": [0.2], "hill": [0.1]}, validation="partial")
    assert [one.title for one in compute_gains(gather(made), "bce")] == [
        "tiny, linear", "tiny, linear, validated on partly known labels",
    ]  # fmt: skip


def test_a_difference_in_words():
    assert format_gain(Mean(-0.0123, 0.004, 3)) == "-1.23 ± 0.40"
    assert format_gain(None) == ""


def test_reports_have_them_where_wanted():
    made = lines(GAINS)
    assert "Improvement over" not in markdown.render(made) + page.render(made)
    text = markdown.render(made, over="bce")
    assert "| method | uniform:0.5 |\n|---|---:|\n| bce | 0.620 ± 0.254 |\n| hill | +3.00 ± 25.41 |\n" in text
    assert "+3.00 ± 25.41" in page.render(made, over="bce")
    assert "Improvement over" not in markdown.render(made, over="nobody") + page.render(made, over="nobody")


@pytest.mark.parametrize(("seeds", "marked"), [(1, False), (2, True)])
def test_one_seed_shows_no_leader(seeds: int, marked: bool) -> None:
    text = markdown.render(lines({"bce": [0.5] * seeds, "em": [0.6] * seeds}))
    table = [row for row in text.splitlines() if row.startswith("|")]
    assert any("**" in row for row in table) == marked
