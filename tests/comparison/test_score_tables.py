from __future__ import annotations

from pathlib import Path

from comparison.making import line, lines
from partly.comparison import overview as page
from partly.comparison import score_tables

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
    head, rule, *rows = cells(score_tables.markdown(made))
    assert head == ["method", "mAP", "CF1 at 0.5", "OF1 at 0.5", "gap closed", "seconds", "memory", "seeds"]
    assert len(rule) == len(head)
    # Three values 0.05 apart: 4.303 x 0.05 / sqrt 3; 0.01 apart: 0.0248.
    assert [row[:2] for row in rows] == [
        ["bce, all labels *(reference)*", "0.850 ± 0.124"],
        ["seer *(oracle: sees the truth)*", "0.960"],
        ["**partial-bce**", "**0.650 ± 0.124**"],
        ["bce ≈ *(naive)*", "0.630 ± 0.025"],
        ["assume-negative *(naive)*", "0.450 ± 0.124"],
    ]
    assert [row[4] for row in rows] == ["", "140 %", "50 %", "45 %", "0 %"]
    assert rows[2][5:] == ["2.0", "100 MB", "3"]


def test_the_verdict_comes_first():
    assert score_tables.markdown(lines(RACE)).startswith("**partial-bce** and **bce** share the lead at uniform:0.5")


def test_published_values_fill_a_last_column():
    made = lines({"full": [0.8], "assume-negative": [0.7]})
    head, _, full, naive = cells(score_tables.markdown(made, published=lambda row: "0.9" if row.kind == "full" else ""))
    assert head[-1] == "papers"
    assert (full[-1], naive[-1]) == ("0.9", "")
    assert "papers" not in cells(score_tables.markdown(made, published=lambda row: ""))[0]
    assert "papers" not in cells(score_tables.markdown(made))[0]


def test_with_coarse_labels_the_scores_are_those_of_the_paper():
    ranks = {"mAP": 0.5, "P@1": 0.7, "P@3": 0.4, "P@5": 0.3, "CF1": 0.1}
    made = lines({"refine": [0.5]}, data="coco", scenario="coarse-only:0.0009765625", test=ranks)
    head, _, row = cells(score_tables.markdown(made))
    assert head[1:5] == ["mAP", "P@1", "P@3", "P@5"]
    assert row[1:5] == ["**0.500**", "0.700", "0.400", "0.300"]
    assert '<th scope="col" class="number">P@3</th>' in page.render(made)


def test_undefined_is_a_word():
    assert cells(score_tables.markdown(lines({"bce": [None], "assume-negative": [0.5]})))[-1][1] == "undefined"


def test_text_from_the_data_stays_text():
    text = score_tables.markdown(lines({"bce": [0.5], "assume-negative": [0.4]}, data="a|b *c* <i>\n# d"))
    assert "**a\\|b \\*c\\* \\<i\\> \\# d, linear**" in text


def test_kinds_of_validation_have_their_own_sections():
    made = lines({"bce": [0.5]}) + lines({"bce": [0.4]}, validation="partial")
    text = score_tables.markdown(made)
    assert "## uniform:0.5\n" in text
    assert "## uniform:0.5, validated on partly known labels\n" in text


def test_pictures_are_drawn_where_asked_for():
    drawn = {}
    text = score_tables.markdown(
        lines(RACE), draw=lambda name, svg: drawn.setdefault(name, svg) and f"at/{len(drawn)}.svg"
    )
    assert list(drawn) == ["ranks complete", "uniform:0.5"]
    assert all(svg.startswith(b"<svg") for svg in drawn.values())
    assert "](at/1.svg)" in text
    assert "](at/2.svg)" in text
