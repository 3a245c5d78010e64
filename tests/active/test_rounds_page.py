"""The page of a loop of questions: its numbers, and that text from the data stays text."""

from __future__ import annotations

import numpy as np

from partly.active import rounds_page
from partly.active.selection import Questions
from partly.labels import Labels
from partly.report.layout import SCRIPT

BAD = "</script><script>alert(1)</script>'\""
ROUNDS = [
    {"round": n, "answers": 10 * n, "implied": n, "known": 40 + 11 * n, "scores": {"P@1": 0.5 + n / 10, "mAP": None}}
    for n in range(2)
]


def test_numbers_are_those_of_the_rounds_and_what_is_asked_is_listed() -> None:
    labels = Labels.from_ternary([[1, 0], [0, -1]], names=["cat", "dog"], ids=["a", "b"])
    asked = Questions(np.array([1, 0]), np.array([0, 1]), {"score": np.array([0.75, 0.5])})
    html = rounds_page.render("Title", ["Said."], {"uncertainty": ROUNDS}, labels, asked)
    cells = [["0", "0", "0", "40", "0.500", "undefined"], ["1", "10", "1", "51", "0.600", "undefined"]]
    for row in cells:
        assert "<tr>" + "".join(f'<td class="number">{cell}</td>' for cell in row) + "</tr>" in html
    assert html.index("<bdi>b</bdi></th><td><bdi>cat</bdi>") < html.index("<bdi>a</bdi></th><td><bdi>dog</bdi>")
    assert "uncertainty, answers 10: 0.6" in html
    assert "data-points=" not in rounds_page.render("Title", ["Said."], {"uncertainty": ROUNDS[:1]}, labels)


def test_text_from_the_data_stays_text() -> None:
    labels = Labels.from_ternary([[1, 0]], names=[BAD, "dog"], ids=[BAD])
    asked = Questions(np.array([0]), np.array([0]), {"score": np.array([0.75])})
    html = rounds_page.render(BAD, [BAD], {BAD: ROUNDS, "other": ROUNDS}, labels, asked)
    assert html.count("<script") == html.count(f"<script>{SCRIPT}</script>") == 1
    assert html.count("&lt;script&gt;") == 7  # title, heading, lead, legend, arm, item, label
