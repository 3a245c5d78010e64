"""Questions held, answered and taken back; the ledger says what came of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from annotate.making import ABOVE, FOUND, Project, browser, pose, project
from partly.annotate import tables
from partly.annotate.errors import ApiError
from partly.annotate.question_queue import LEASE_SECONDS, QuestionQueue
from partly.annotate.question_selection import QuestionDraft
from partly.errors import DataError
from partly.ledger import Ledger

ANIMAL, CAT, DOG, BOAT = range(4)


def states(made: Project) -> list[str]:
    with made.ledger.store.reading() as connection:
        return list(connection.scalars(select(tables.questions.c.state).order_by(tables.questions.c.id)))


def test_one_label_of_many_items(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(3, BOAT), (1, CAT), (5, BOAT), (7, BOAT)])
    held = made.queue.lease(made.person(), "label", 2)
    assert [(one.item, one.name, one.label) for one in held] == [(3, "item 3", "boat"), (5, "item 5", "boat")]


def test_one_item_with_many_labels(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(3, BOAT), (1, CAT), (3, DOG)])
    held = made.queue.lease(made.person(), "item", 8)
    assert [(one.item, one.label) for one in held] == [(3, "boat"), (3, "dog")]


def test_two_people_are_not_asked_the_same(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(i, BOAT) for i in range(4)])
    one, two = (made.queue.lease(made.person(name), "label", 3) for name in ("anna", "bela"))
    assert [len(one), len(two)] == [3, 1]
    assert not {q.id for q in one} & {q.id for q in two}
    assert made.queue.lease(made.person("carl"), "label", 3) == []
    made.time.at += LEASE_SECONDS + 1
    assert len(made.queue.lease(made.person("carl"), "label", 4)) == 4  # nobody holds them any more


def test_an_answer_is_a_statement_of_its_person(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT), (1, BOAT), (2, BOAT)])
    held = made.queue.lease(made.person("bela"), "label", 3)
    for question, value in zip(held, ("yes", "no", "cannot tell"), strict=True):
        made.queue.answer(made.person("bela"), question.id, value, 2.0, "label")
    assert made.known() == {("item 0", "boat"): 1, ("item 1", "boat"): -1}
    said = [statement for i in range(3) for statement in made.ledger.show(f"item {i}") if statement.label == "boat"]
    assert [(one.value, one.batch.author, one.batch.kind) for one in said] == [
        ("yes", "bela", "person"),
        ("no", "bela", "person"),
        ("cannot tell", "bela", "person"),
    ]


def test_the_same_answer_twice_is_written_once(tmp_path: Path) -> None:
    made = project(tmp_path, hierarchy=ABOVE)
    pose(made, [(0, CAT)])
    (question,) = made.queue.lease(made.person(), "label", 1)
    first, second = (made.queue.answer(made.person(), question.id, "yes", 1.0, "label") for _ in range(2))
    assert first == second
    assert first.implied == {"animal": "yes"}
    assert len([one for one in made.ledger.show("item 0") if one.label == "cat"]) == 1
    with pytest.raises(ApiError, match="You have answered this question already, perhaps in another window"):
        made.queue.answer(made.person(), question.id, "no", 1.0, "label")


def test_the_lease_of_another_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT), (1, BOAT)])
    (question,) = made.queue.lease(made.person("anna"), "label", 1)
    bela = made.person("bela")
    not_held = "belongs to another person, or was answered or settled"
    for job, reason, status in (
        (lambda: made.queue.answer(bela, question.id, "yes", 1.0, "label"), not_held, 409),
        (lambda: made.queue.answer(bela, question.id + 1, "yes", 1.0, "label"), not_held, 409),  # nobody holds it
        (lambda: made.queue.skip(bela, question.id), "cannot skip it", 409),
        (lambda: made.queue.answer(bela, 10_000, "yes", 1.0, "label"), "no such question", 404),
    ):
        with pytest.raises(ApiError, match=reason) as refused:
            job()
        assert refused.value.status == status
    assert made.known() == {}
    answer = made.queue.answer(made.person("anna"), question.id, "yes", 1.0, "label").batch
    for number in (answer, 0, 10_000):
        with pytest.raises(ApiError, match="no answer to undo") as refused:
            made.queue.undo(bela, number)
        assert refused.value.status == 404


def test_taking_back(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT), (1, BOAT)])
    one, two = made.queue.lease(made.person(), "label", 2)
    first = made.queue.answer(made.person(), one.id, "yes", 1.0, "label").batch
    last = made.queue.answer(made.person(), two.id, "no", 1.0, "label").batch
    assert made.queue.standing(made.person())["last"] == last
    assert made.queue.undo(made.person(), last).id == two.id
    assert made.queue.standing(made.person())["last"] == first
    assert made.known() == {("item 0", "boat"): 1}
    assert states(made) == ["answered", "open"]
    made.queue.answer(made.person(), two.id, "yes", 1.0, "label")
    made.queue.undo(made.person(), first)  # any answer, not only the last one
    assert made.known() == {("item 1", "boat"): 1}
    values = [one.value for one in made.ledger.show("item 1") if one.label == "boat"]
    assert values == ["no", "yes"]  # nothing is forgotten


def test_what_follows_is_settled_and_comes_back(tmp_path: Path) -> None:
    made = project(tmp_path, hierarchy=ABOVE)
    pose(made, [(0, ANIMAL), (0, BOAT), (1, CAT)])
    pose_more = [QuestionDraft(0, CAT, True), QuestionDraft(0, DOG, False)]
    made.queue.pose(FOUND, pose_more)
    animal = made.queue.lease(made.person(), "item", 8)
    assert [one.label for one in animal] == ["cat", "dog"]  # the chosen ones of the first round are withdrawn
    made.queue.answer(made.person(), animal[0].id, "no", 1.0, "item")
    assert states(made)[3:] == ["answered", "open"]
    pose(made, [(0, ANIMAL), (1, DOG)])
    first = made.queue.lease(made.person("bela"), "item", 8)
    assert [(one.name, one.label) for one in first] == [("item 0", "animal")]
    told = made.queue.answer(made.person("bela"), first[0].id, "no", 1.0, "item")
    assert told.implied == {"dog": "no"}  # cat was known
    assert states(made) == ["withdrawn"] * 3 + ["answered", "settled", "answered", "open"]
    assert made.known() == {("item 0", name): -1 for name in ("animal", "cat", "dog")}
    made.queue.undo(made.person("bela"), made.queue.standing(made.person("bela"))["last"])
    assert made.known() == {("item 0", "cat"): -1}
    assert states(made)[4:] == ["open", "open", "open"]


def test_a_contradiction_is_refused_and_nothing_written(tmp_path: Path) -> None:
    z = np.zeros((12, 4), np.int8)
    z[0, ANIMAL] = -1
    made = project(tmp_path, hierarchy=ABOVE, z=z)
    pose(made, [(0, CAT)])
    (question,) = made.queue.lease(made.person(), "label", 1)
    with pytest.raises(ApiError, match="'cat' is yes and 'animal' is no"):
        made.queue.answer(made.person(), question.id, "yes", 1.0, "label")
    assert states(made) == ["open"]
    made.queue.answer(made.person(), question.id, "no", 1.0, "label")


def test_skipped_is_not_answered(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT), (1, BOAT)])
    one, two = made.queue.lease(made.person(), "label", 2)
    made.queue.skip(made.person(), one.id)
    assert made.known() == {}
    assert [q.id for q in made.queue.lease(made.person(), "label", 2)] == [two.id]
    assert [q.id for q in made.queue.lease(made.person("bela"), "label", 2)] == [one.id]


def test_random_questions_stay_until_they_are_answered(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.queue.pose(FOUND, [QuestionDraft(0, BOAT, False), QuestionDraft(1, CAT, True)])
    made.queue.pose(FOUND, [QuestionDraft(2, BOAT, False)])
    assert states(made) == ["withdrawn", "open", "open"]
    assert [one.label for one in made.queue.lease(made.person(), "label", 1)] == ["cat"]


def test_repeats_go_to_whom_they_are_meant_for(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT)])
    (question,) = made.queue.lease(made.person("anna"), "label", 1)
    made.queue.answer(made.person("anna"), question.id, "yes", 1.0, "label")
    made.queue.pose(FOUND, [QuestionDraft(0, BOAT, False, repeats=question.id, own=True)])
    assert made.queue.lease(made.person("bela"), "label", 5) == []
    assert len(made.queue.lease(made.person("anna"), "label", 5)) == 1
    made.time.at += LEASE_SECONDS + 1
    made.queue.pose(FOUND, [QuestionDraft(0, BOAT, False, repeats=question.id, own=False)])
    assert made.queue.lease(made.person("anna"), "label", 5) == []
    assert len(made.queue.lease(made.person("bela"), "label", 5)) == 1


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("answer", {"value": "maybe"}),
        ("answer", {"seconds": -1.0}),
        ("answer", {"seconds": "1"}),
        ("answer", {"view": "x"}),
        ("questions", {"view": "x"}),
        ("questions", {"count": 0}),
        ("questions", {"count": 49}),
        ("decide", {"value": "maybe"}),
        ("invite", {"role": "root"}),
    ],
)
def test_invalid_requests_name_the_field(tmp_path: Path, path: str, wrong: dict[str, object]) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT)])
    page = browser(made, has_accounts=True)
    (question,) = page.call("/api/questions", {"view": "label", "count": 1}).json()["questions"]
    valid: dict[str, dict[str, object]] = {
        "answer": {"question": question["id"], "value": "yes", "seconds": 1.0, "view": "label"},
        "questions": {"view": "label", "count": 1},
        "decide": {"question": question["id"], "value": "yes"},
        "invite": {"role": "annotator"},
    }
    answer = page.call(f"/api/{path}", valid[path] | wrong)
    assert answer.status_code == 422
    assert answer.json()["error"] == "The request is invalid."
    assert [fault["where"] for fault in answer.json()["faults"]] == [["body", *wrong]]
    assert states(made) == ["open"]


def test_a_ledger_that_refuses_leaves_the_question_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One transaction: where the statement is not written, the state is not either."""
    made = project(tmp_path)
    pose(made, [(0, BOAT)])
    (question,) = made.queue.lease(made.person(), "label", 1)

    def full(*_: object, **__: object) -> int:
        raise DataError("the disk is full")

    monkeypatch.setattr("partly.ledger.Ledger.append", full)
    with pytest.raises(DataError):
        made.queue.answer(made.person(), question.id, "yes", 1.0, "label")
    assert states(made) == ["open"]


@settings(max_examples=15)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(("yes", "no", "cannot tell", "undo", "skip"))), max_size=20
    )
)
def test_the_fold_is_what_the_answers_say(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    """By a dictionary that is kept by hand, whatever is answered and taken back in whatever order."""
    made = project(tmp_path_factory.mktemp("fold"), count=6)
    pose(made, [(i, BOAT) for i in range(6)])
    person, said, order = made.person(), {}, []
    for item, what in steps:
        held = {one.item: one.id for one in made.queue.lease(person, "label", 6)}
        if what == "undo":
            if order:
                last = order.pop()
                assert made.queue.undo(person, made.queue.standing(person)["last"]).item == last
                del said[last]
        elif item in held and what == "skip":
            made.queue.skip(person, held[item])
        elif item in held:
            made.queue.answer(person, held[item], what, 1.0, "label")
            said[item], order = what, [*order, item]
    expected = {
        (f"item {i}", "boat"): 1 if value == "yes" else -1 for i, value in said.items() if value != "cannot tell"
    }
    assert made.known() == expected


def test_taking_back_twice_takes_back_once(tmp_path: Path) -> None:
    """A request that is sent again, because its reply was lost, must not take back the answer before it too."""
    made = project(tmp_path)
    pose(made, [(0, BOAT), (1, BOAT)])
    one, two = made.queue.lease(made.person(), "label", 2)
    made.queue.answer(made.person(), one.id, "yes", 1.0, "label")
    last = made.queue.answer(made.person(), two.id, "no", 1.0, "label").batch
    assert [made.queue.undo(made.person(), last).id for _ in range(3)] == [two.id] * 3
    assert made.known() == {("item 0", "boat"): 1}
    again = made.queue.answer(made.person(), two.id, "yes", 1.0, "label").batch
    with pytest.raises(ApiError, match="no answer to undo"):  # a request that comes far too late
        made.queue.undo(made.person(), last)
    assert made.known() == {("item 0", "boat"): 1, ("item 1", "boat"): 1}
    made.queue.undo(made.person(), again)


def test_skipping_twice_is_skipping_once(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT)])
    (question,) = made.queue.lease(made.person(), "label", 1)
    for _ in range(2):
        made.queue.skip(made.person(), question.id)
    with pytest.raises(ApiError, match="cannot skip it"):
        made.queue.skip(made.person("bela"), question.id)


def test_a_clock_that_is_set_back_leaves_no_question_held(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT)])
    (question,) = made.queue.lease(made.person("anna"), "label", 1)
    made.time.at -= 86400
    assert [one.id for one in made.queue.lease(made.person("bela"), "label", 1)] == [question.id]
    assert made.queue.lease(made.person("carl"), "label", 1) == []  # it is held now, by the clock of now


def test_questions_about_other_items_hold_up_nobody(tmp_path: Path) -> None:
    """The same ledger, with fewer items than when the questions were posed."""
    made = project(tmp_path)
    pose(made, [(9, BOAT), (8, BOAT), (1, BOAT)])
    known = made.ledger.labels()
    fewer = QuestionQueue(made.ledger, known[:5], now=made.time)
    (question,) = fewer.lease(made.person(), "label", 5)
    assert question.name == "item 1"
    assert fewer.lease(made.person("bela"), "label", 5) == []
    with pytest.raises(ApiError, match="no such question"):
        fewer.answer(made.person(), 1, "yes", 1.0, "label")
    fewer.withdraw_foreign_questions()
    assert states(made) == ["withdrawn", "withdrawn", "open"]


def test_retired_labels_are_not_asked(tmp_path: Path) -> None:
    """Though another process retires them while the pages are served."""
    made = project(tmp_path, hierarchy=ABOVE)
    pose(made, [(0, CAT), (1, CAT), (2, BOAT)])
    cat = made.queue.lease(made.person(), "label", 1)[0]
    Ledger(tmp_path / "labels.db").retire(["cat"])
    with pytest.raises(ApiError, match="'cat' was retired") as refused:
        made.queue.answer(made.person(), cat.id, "yes", 1.0, "label")
    assert refused.value.status == 409
    assert [one.label for one in made.queue.lease(made.person(), "label", 5)] == ["boat"]
    context = made.context()
    assert int(context.refresh_labels().known_per_item().sum()) == 0  # pages that fold go on too
