"""Numbers of the overview, by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from annotate.making import ABOVE, FOUND, Project, browser, pose, project
from partly.annotate import stats
from partly.annotate.dashboard import format_duration, loss_chart, overview_data
from partly.annotate.label_state import align, exclude_answers
from partly.annotate.question_selection import QuestionDraft
from partly.annotate.stats import read_snapshot
from partly.errors import LabelError
from partly.labels import Labels


def answer_all(made: Project, value: str, seconds: float = 2.0, name: str = "anna", view: str = "label") -> None:
    while held := made.queue.lease(made.person(name), view, 12):
        for question in held:
            made.queue.answer(made.person(name), question.id, value, seconds, view)


def test_kappa_by_hand() -> None:
    pairs = [("yes", "yes")] * 4 + [("no", "no")] * 3 + [("yes", "no")] * 2 + [("cannot tell", "no")]
    found = stats.count_agreement(pairs)
    chance = (6 * 4 + 3 * 6 + 1 * 0) / 100
    assert (found["pairs"], found["same"]) == (10, 7)
    assert found["kappa"] == pytest.approx((0.7 - chance) / (1 - chance))
    assert stats.count_agreement([("yes", "yes")])["kappa"] is None
    assert stats.count_agreement([]) == {"pairs": 0, "same": 0, "kappa": None}


def test_agreement_within_and_between(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, 3), (1, 3)])
    answer_all(made, "yes")
    made.queue.pose(
        FOUND, [QuestionDraft(0, 3, False, repeats=1, own=True), QuestionDraft(1, 3, False, repeats=2, own=False)]
    )
    answer_all(made, "yes")
    answer_all(made, "no", name="bela")
    found = read_snapshot(made.queue).agreement()
    assert (found["within"]["pairs"], found["within"]["same"]) == (1, 1)
    assert (found["between"]["pairs"], found["between"]["same"]) == (1, 0)
    assert made.ledger.disagreements() == [("item 1", "boat")]


def test_seconds_of_a_label_are_drawn_to_the_usual_pace_of_the_view(tmp_path: Path) -> None:
    made = project(tmp_path)
    assert read_snapshot(made.queue).seconds_per_answer("label").tolist() == [stats.DEFAULT_SECONDS] * 4
    pose(made, [(0, 3), (1, 3)])
    answer_all(made, "yes", 2.0)
    pose(made, [(0, 0)])
    answer_all(made, "no", 8.0, view="item")
    pose(made, [(0, 1)])
    answer_all(made, "no", 5.0, view="item")
    snapshot = read_snapshot(made.queue)
    by_label, by_item = (snapshot.seconds_per_answer(view) for view in stats.VIEWS)
    np.testing.assert_allclose(by_label, [2, 2, 2, 2])
    usual = (8 + 5) / 2
    np.testing.assert_allclose(by_item, [(8 + 5 * usual) / 6, (5 + 5 * usual) / 6, usual, usual])
    np.testing.assert_allclose(
        replace(snapshot, questions=snapshot.questions[:2]).seconds_per_answer("item"), [2] * 4
    )  # nobody was there yet
    pose(made, [(1, 0)])
    answer_all(made, "no", 17.0, view="item")
    assert read_snapshot(made.queue).mean_seconds_by_view() == {"label": 2.0, "item": 10.0}


def test_arms(tmp_path: Path) -> None:
    """Settled random ones count, repeats and cannot tell do not, nor what nobody has chosen, which has no score."""
    made = project(tmp_path, hierarchy=ABOVE)
    chosen_ones = [QuestionDraft(0, 0, False, score=0.5), QuestionDraft(3, 3, False, score=0.5)]
    random_ones = [QuestionDraft(0, 1, True), QuestionDraft(1, 3, True), QuestionDraft(2, 3, True)]
    made.queue.pose(FOUND, [*chosen_ones, *random_ones, QuestionDraft(4, 3, False)])
    said = {
        ("item 0", "animal"): "no",
        ("item 1", "boat"): "yes",
        ("item 2", "boat"): "cannot tell",
        ("item 3", "boat"): "no",
        ("item 4", "boat"): "no",
    }
    while held := made.queue.lease(made.person(), "item", 5):
        for question in held:
            if (question.name, question.label) in said:
                made.queue.answer(made.person(), question.id, said[question.name, question.label], 1.0, "item")
    random, chosen = read_snapshot(made.queue).answer_series(True), read_snapshot(made.queue).answer_series(False)
    told = [
        sorted(zip(one.rows.tolist(), one.columns.tolist(), one.z.tolist(), strict=True)) for one in (random, chosen)
    ]
    assert told == [[(0, 1, -1), (1, 3, 1)], [(0, 0, -1), (3, 3, -1)]]
    assert read_snapshot(made.queue).list_asked_entries() == {(0, 0), (0, 1), (1, 3), (2, 3), (3, 3), (4, 3)}


def test_a_model_is_judged_by_answers_it_could_not_know(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.queue.pose(
        FOUND | {"found": json.dumps({"worth": {"words": "?"}})},
        [QuestionDraft(0, 3, True, None, 0.9), QuestionDraft(1, 3, True, None, 0.0)],
    )
    answer_all(made, "yes")
    (found,) = read_snapshot(made.queue).rounds
    assert found["judged"] == 2
    assert found["loss"] == pytest.approx((-math.log(0.9) - math.log(1e-3)) / 2)
    assert found["found"]["worth"]["words"] == "?"


def test_what_was_known_before_the_answers() -> None:
    names = ["animal", "cat", "boat"]
    z = np.array([[-1, -1, 1], [1, 1, 0]], np.int8)
    labels = Labels.from_ternary(z, names=names)
    found = exclude_answers(labels, [(0, 0, -1)], ABOVE)
    np.testing.assert_array_equal(found.ternary(), [[0, 0, 1], [1, 1, 0]])  # the cat's no followed from it
    np.testing.assert_array_equal(exclude_answers(labels, [(0, 0, -1)], None).ternary(), [[0, -1, 1], [1, 1, 0]])
    assert exclude_answers(labels, [], ABOVE) is labels


def test_a_ledger_beside_the_data() -> None:
    said = Labels.from_ternary([[1, 0], [0, -1]], names=["b", "a"], ids=["y", "gone"])
    wanted = Labels.from_ternary(np.zeros((2, 2), np.int8), names=["a", "b"], ids=["x", "y"])
    np.testing.assert_array_equal(align(said, wanted, "l.db").ternary(), [[0, 0], [0, 1]])
    other = Labels.from_ternary(np.zeros((1, 1), np.int8), names=["c"])
    with pytest.raises(LabelError, match="only in the ledger"):
        align(said, other, "l.db")


def test_a_curve_and_a_span_of_time() -> None:
    assert loss_chart([(0, 0.7)]) is None
    found = loss_chart([(0, 0.8), (50, 0.4), (100, 0.2)])
    assert found["points"] == [(0.0, 0.0), (300.0, 80.0), (600.0, 120.0)]
    assert [format_duration(s) for s in (30, 600, 7200, 172790)] == [
        "30 seconds",
        "10 minutes",
        "2.0 hours",
        "48 hours",
    ]


def test_the_overview_shows_the_reliability_of_sources(tmp_path: Path) -> None:
    made = project(tmp_path, count=60)
    items = [f"item {i}" for i in range(60)]
    truth = [i % 2 for i in range(60)]
    for author in ("anna", "bela"):
        made.ledger.append(items, ["cat"] * 60, truth, author=author)
    made.ledger.append(
        items, ["cat"] * 60, [1 - z for z in truth], kind="model", author="<b>liar", run="language-model x"
    )
    page = browser(made).get("/overview").text
    assert "&lt;b&gt;liar" in page
    rows = {row["name"]: row for row in overview_data(made.context(), made.person())["sources"]}
    assert rows["<b>liar"]["weight"] == 0 < rows["anna"]["weight"]
    assert (rows["anna"]["shared"], rows["anna"]["worst"]) == (60, ["cat"])
