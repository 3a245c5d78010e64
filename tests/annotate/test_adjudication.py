"""Votes of several people, what an admin decides where they differ, and who is asked about which labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from annotate.making import ABOVE, Project, pose, project
from partly.annotate.adjudication import decide, list_disagreements, undo_decision
from partly.annotate.errors import ApiError
from partly.annotate.question_selection import QuestionDraft
from partly.annotate.stats import read_snapshot

ANIMAL, CAT, DOG, BOAT = range(4)


def voted(made: Project, name: str, value: str, count: int = 1) -> list[tuple[str, str]]:
    """Answer the next questions of a person; what they were about."""
    person = made.person(name)
    asked = made.queue.lease(person, "label", count)
    for one in asked:
        made.queue.answer(person, one.id, value, 1.0, "label")
    return [(one.name, one.label) for one in asked]


def known(made: Project, policy: str) -> dict[tuple[str, str], int]:
    labels = made.ledger.labels(policy=policy)
    row, column, value = labels.entries()
    pairs = zip(row.tolist(), column.tolist(), value.tolist(), strict=True)
    return {(labels.ids[i], labels.names[j]): 1 if v == 1 else -1 for i, j, v in pairs}


def disputed(made: Project, *values: str) -> int:
    """One entry on which people vote so, in this order; the question to decide."""
    made.queue.votes = len(values)
    pose(made, [(0, BOAT)])
    for name, value in zip(("anna", "bela", "carl"), values, strict=False):
        assert voted(made, name, value) == [("item 0", "boat")]
    (found,), left = list_disagreements(made.queue)
    assert left == 1
    return found.question


def test_each_entry_is_answered_by_so_many_people(tmp_path: Path, place: Callable[[], str]) -> None:
    made = project(tmp_path, url=place())
    made.queue.votes = 3
    pose(made, [(0, BOAT), (1, BOAT)])
    both = [("item 0", "boat"), ("item 1", "boat")]
    assert voted(made, "anna", "yes", 2) == both
    assert voted(made, "anna", "yes", 2) == []  # each person once
    assert voted(made, "bela", "no", 1) == both[:1]
    assert voted(made, "bela", "yes", 2) == both[1:]
    assert voted(made, "carl", "no", 2) == both
    assert voted(made, "dora", "no", 2) == []  # three are enough
    assert known(made, "majority") == {both[0]: -1, both[1]: 1}
    assert made.queue.labels() == made.ledger.labels(policy="majority")
    assert read_snapshot(made.queue).agreement()["between"]["pairs"] == 4


def test_one_vote_asks_nobody_else(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT)])
    voted(made, "anna", "yes")
    assert voted(made, "bela", "yes") == []
    assert made.queue.labels() == made.ledger.labels()


def test_votes_outlive_the_round(tmp_path: Path) -> None:
    """A new model withdraws what it would not ask; what people have begun to vote on stays."""
    made = project(tmp_path)
    made.queue.votes = 2
    pose(made, [(0, BOAT), (1, BOAT)])
    voted(made, "anna", "yes")
    pose(made, [(2, BOAT)])
    assert voted(made, "bela", "no", 5) == [("item 0", "boat"), ("item 2", "boat")]


def test_an_answer_taken_back_asks_for_no_further_vote(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.queue.votes = 2
    pose(made, [(0, BOAT)])
    for _ in range(2):
        voted(made, "anna", "yes")
        made.queue.undo(made.person("anna"), made.queue.standing(made.person("anna"))["last"])
    assert voted(made, "anna", "no") == [("item 0", "boat")]
    assert voted(made, "bela", "no") == [("item 0", "boat")]
    assert voted(made, "carl", "no") == []


@pytest.mark.parametrize("value", ["yes", "no", "cannot tell"])
@pytest.mark.parametrize("votes", [("yes", "no"), ("yes", "no", "no"), ("no", "cannot tell", "yes")])
def test_a_decision_counts_under_every_policy(tmp_path: Path, votes: tuple[str, ...], value: str) -> None:
    """Instead of the votes, which come back with its undoing."""
    made = project(tmp_path)
    question, admin = disputed(made, *votes), made.person("dora")
    before = {policy: known(made, policy) for policy in ("latest", "majority")}
    decision = decide(made.queue, admin, question, value)
    assert decision.left == 0
    expected = {} if value == "cannot tell" else {("item 0", "boat"): 1 if value == "yes" else -1}
    assert known(made, "latest") == known(made, "majority") == expected
    assert made.ledger.disagreements() == []
    assert list_disagreements(made.queue) == ([], 0)
    assert decide(made.queue, admin, question, value) == decision  # sent twice, written once
    other = "no" if value == "yes" else "yes"
    with pytest.raises(ApiError, match="decided already"):
        decide(made.queue, admin, question, other)
    with pytest.raises(ApiError, match="An admin has decided"):
        made.queue.undo(made.person("anna"), made.queue.standing(made.person("anna"))["last"])
    assert made.queue.standing(admin)["last"] == 0  # undo on the page of questions is about answers
    for _ in range(2):
        undo_decision(made.queue, admin, decision.batch)
    assert {policy: known(made, policy) for policy in ("latest", "majority")} == before
    assert list_disagreements(made.queue)[1] == 1
    decide(made.queue, admin, question, other)
    assert known(made, "latest") == {("item 0", "boat"): 1 if other == "yes" else -1}


def test_who_voted_what_is_shown_when_all_have(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.queue.votes = 3
    pose(made, [(0, BOAT), (1, BOAT), (2, BOAT)])
    voted(made, "anna", "yes", 3)
    voted(made, "bela", "no", 1)
    voted(made, "bela", "yes", 1)
    voted(made, "bela", "cannot tell", 1)
    assert list_disagreements(made.queue) == ([], 0)  # one vote is to come
    voted(made, "carl", "yes", 3)
    (found,), left = list_disagreements(made.queue)
    assert (found.name, found.item, found.label, found.probability, left) == ("item 0", 0, "boat", 0.7, 1)
    assert found.votes == (("anna", "yes"), ("bela", "no"), ("carl", "yes"))
    with pytest.raises(ApiError, match="no disagreement about this entry"):
        decide(made.queue, made.person("dora"), found.question + 1, "yes")
    with pytest.raises(ApiError, match="no such decision"):
        undo_decision(made.queue, made.person("dora"), 1)


def test_repeats_to_others_are_decided_too_but_not_those_to_oneself(tmp_path: Path) -> None:
    made = project(tmp_path)
    for row, own in ((0, True), (1, False)):
        pose(made, [(row, BOAT)])
        voted(made, "anna", "yes")
        first = max(one.id for one in read_snapshot(made.queue).answers)
        again = [QuestionDraft(row, BOAT, False, repeats=first, own=own)]
        made.queue.pose({"answers": 0, "known": 0, "seconds": 0.0, "query": "q", "found": "{}"}, again)
        voted(made, "anna" if own else "bela", "no")
    assert [one.name for one in list_disagreements(made.queue)[0]] == ["item 1"]


def test_a_vote_taken_back_elsewhere_does_not_hinder_a_decision(tmp_path: Path) -> None:
    made = project(tmp_path)
    question = disputed(made, "yes", "no")
    made.ledger.undo(read_snapshot(made.queue).answers[1].batch)
    decide(made.queue, made.person("dora"), question, "yes")
    assert known(made, "majority") == {("item 0", "boat"): 1}


def test_a_decision_may_not_contradict_the_hierarchy(tmp_path: Path) -> None:
    made = project(tmp_path, hierarchy=ABOVE)
    made.queue.votes = 2
    pose(made, [(0, CAT)])
    voted(made, "anna", "yes")
    voted(made, "bela", "no")
    made.queue.votes = 1
    pose(made, [(0, ANIMAL)])
    voted(made, "anna", "no")
    (found,), _ = list_disagreements(made.queue)
    with pytest.raises(ApiError, match="contradicts known labels"):
        decide(made.queue, made.person("dora"), found.question, "yes")
    decide(made.queue, made.person("dora"), found.question, "no")
    assert made.known()["item 0", "cat"] == -1


def test_people_are_asked_about_their_labels(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT), (0, CAT), (1, CAT), (1, DOG)])
    anna, bela = made.person("anna"), made.person("bela")
    held = made.queue.lease(bela, "label", 1)
    assert [one.label for one in held] == ["boat"]
    made.people.assign(bela.id, ["dog", "cat", "dog"])
    assert made.people.read_assignments(made.queue.given.names) == {
        bela.id: ["cat", "dog"]
    }  # in the order of the labels
    assert [one.label for one in made.queue.lease(anna, "item", 5)] == ["boat", "cat"]  # boat is free again
    assert [one.label for one in made.queue.lease(bela, "item", 5)] == ["cat", "dog"]
    made.people.assign(bela.id, ["dog"])
    assert [one.label for one in made.queue.lease(bela, "label", 5)] == ["dog"]
    made.people.assign(bela.id, [])
    assert made.people.read_assignments(made.queue.given.names) == {}
    with pytest.raises(ApiError, match="no such person"):
        made.people.assign(99, ["cat"])


def test_answers_that_a_language_model_contradicts_are_decided_after_those_of_people(tmp_path: Path) -> None:
    made = project(tmp_path)
    said = {"item 0": 0, "item 1": 1, "item 2": 0}
    made.ledger.append(said, ["boat"] * 3, said.values(), kind="model", author="qwen", run="language-model x")
    made.ledger.append(["item 3"], ["boat"], [0], kind="model", author="other", run="runs/7")
    pose(made, [(0, BOAT), (1, BOAT), (2, BOAT), (3, BOAT)])
    for value in ("yes", "yes", "cannot tell", "yes"):
        voted(made, "anna", value, 1)
    (found,), left = list_disagreements(made.queue)
    assert (found.name, left) == ("item 0", 1)
    assert found.votes == (("anna", "yes"), ("model qwen", "no"))
    decide(made.queue, made.person("dora"), found.question, "no")
    assert known(made, "latest")["item 0", "boat"] == -1
    assert list_disagreements(made.queue) == ([], 0)
