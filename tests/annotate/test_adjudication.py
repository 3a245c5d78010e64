"""Votes of several people, what an admin decides where they differ, and who is asked about which labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from annotate.making import ABOVE, Project, pose, project
from partly.annotate import stats
from partly.annotate.adjudication import decide, disagreements, undo_decision
from partly.annotate.assignments import assign, assignments
from partly.annotate.passwords import Refused
from partly.annotate.question_selection import Wanted

ANIMAL, CAT, DOG, BOAT = range(4)


def voted(made: Project, name: str, value: str, count: int = 1) -> list[tuple[str, str]]:
    """Answer the next questions of a person; what they were about."""
    person = made.person(name)
    asked = made.desk.lease(person, "label", count)
    for one in asked:
        made.desk.answer(person, one.id, value, 1.0, "label")
    return [(one.name, one.label) for one in asked]


def known(made: Project, policy: str) -> dict[tuple[str, str], int]:
    labels = made.ledger.labels(policy=policy)
    row, column, value = labels.entries()
    pairs = zip(row.tolist(), column.tolist(), value.tolist(), strict=True)
    return {(labels.ids[i], labels.names[j]): 1 if v == 1 else -1 for i, j, v in pairs}


def disputed(made: Project, *values: str) -> int:
    """One entry on which people vote so, in this order; the question to decide."""
    made.desk.votes = len(values)
    pose(made, [(0, BOAT)])
    for name, value in zip(("anna", "bela", "carl"), values, strict=False):
        assert voted(made, name, value) == [("item 0", "boat")]
    (found,), left = disagreements(made.desk)
    assert left == 1
    return found.question


def test_each_entry_is_answered_by_so_many_people(tmp_path: Path, place: Callable[[], str]) -> None:
    made = project(tmp_path, url=place())
    made.desk.votes = 3
    pose(made, [(0, BOAT), (1, BOAT)])
    both = [("item 0", "boat"), ("item 1", "boat")]
    assert voted(made, "anna", "yes", 2) == both
    assert voted(made, "anna", "yes", 2) == []  # each person once
    assert voted(made, "bela", "no", 1) == both[:1]
    assert voted(made, "bela", "yes", 2) == both[1:]
    assert voted(made, "carl", "no", 2) == both
    assert voted(made, "dora", "no", 2) == []  # three are enough
    assert known(made, "majority") == {both[0]: -1, both[1]: 1}
    assert made.desk.labels() == made.ledger.labels(policy="majority")
    assert stats.agreement(made.desk)["between"]["pairs"] == 4


def test_one_vote_asks_nobody_else(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT)])
    voted(made, "anna", "yes")
    assert voted(made, "bela", "yes") == []
    assert made.desk.labels() == made.ledger.labels()


def test_votes_outlive_the_round(tmp_path: Path) -> None:
    """A new model withdraws what it would not ask; what people have begun to vote on stays."""
    made = project(tmp_path)
    made.desk.votes = 2
    pose(made, [(0, BOAT), (1, BOAT)])
    voted(made, "anna", "yes")
    pose(made, [(2, BOAT)])
    assert voted(made, "bela", "no", 5) == [("item 0", "boat"), ("item 2", "boat")]


def test_an_answer_taken_back_asks_for_no_further_vote(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.desk.votes = 2
    pose(made, [(0, BOAT)])
    for _ in range(2):
        voted(made, "anna", "yes")
        made.desk.take_back(made.person("anna"), made.desk.standing(made.person("anna"))["last"])
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
    decision = decide(made.desk, admin, question, value)
    assert decision.left == 0
    expected = {} if value == "cannot tell" else {("item 0", "boat"): 1 if value == "yes" else -1}
    assert known(made, "latest") == known(made, "majority") == expected
    assert made.ledger.disagreements() == []
    assert disagreements(made.desk) == ([], 0)
    assert decide(made.desk, admin, question, value) == decision  # sent twice, written once
    other = "no" if value == "yes" else "yes"
    with pytest.raises(Refused, match="decided already"):
        decide(made.desk, admin, question, other)
    with pytest.raises(Refused, match="An admin has decided"):
        made.desk.take_back(made.person("anna"), made.desk.standing(made.person("anna"))["last"])
    assert made.desk.standing(admin)["last"] == 0  # undo on the page of questions is about answers
    for _ in range(2):
        undo_decision(made.desk, admin, decision.batch)
    assert {policy: known(made, policy) for policy in ("latest", "majority")} == before
    assert disagreements(made.desk)[1] == 1
    decide(made.desk, admin, question, other)
    assert known(made, "latest") == {("item 0", "boat"): 1 if other == "yes" else -1}


def test_who_voted_what_is_shown_when_all_have(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.desk.votes = 3
    pose(made, [(0, BOAT), (1, BOAT), (2, BOAT)])
    voted(made, "anna", "yes", 3)
    voted(made, "bela", "no", 1)
    voted(made, "bela", "yes", 1)
    voted(made, "bela", "cannot tell", 1)
    assert disagreements(made.desk) == ([], 0)  # one vote is to come
    voted(made, "carl", "yes", 3)
    (found,), left = disagreements(made.desk)
    assert (found.name, found.item, found.label, found.probability, left) == ("item 0", 0, "boat", 0.7, 1)
    assert found.votes == (("anna", "yes"), ("bela", "no"), ("carl", "yes"))
    with pytest.raises(Refused, match="Nobody disagrees"):
        decide(made.desk, made.person("dora"), found.question + 1, "yes")
    with pytest.raises(Refused, match="A decision is"):
        decide(made.desk, made.person("dora"), found.question, "maybe")
    with pytest.raises(Refused, match="no such decision"):
        undo_decision(made.desk, made.person("dora"), 1)


def test_repeats_to_others_are_decided_too_but_not_those_to_oneself(tmp_path: Path) -> None:
    made = project(tmp_path)
    for row, own in ((0, True), (1, False)):
        pose(made, [(row, BOAT)])
        voted(made, "anna", "yes")
        first = max(one.id for one in stats.answered(made.desk))
        again = [Wanted(row, BOAT, False, repeats=first, own=own)]
        made.desk.pose({"answers": 0, "known": 0, "seconds": 0.0, "query": "q", "found": "{}"}, again)
        voted(made, "anna" if own else "bela", "no")
    assert [one.name for one in disagreements(made.desk)[0]] == ["item 1"]


def test_a_vote_taken_back_elsewhere_does_not_hinder_a_decision(tmp_path: Path) -> None:
    made = project(tmp_path)
    question = disputed(made, "yes", "no")
    made.ledger.undo(stats.answered(made.desk)[1].batch)
    decide(made.desk, made.person("dora"), question, "yes")
    assert known(made, "majority") == {("item 0", "boat"): 1}


def test_a_decision_may_not_contradict_the_hierarchy(tmp_path: Path) -> None:
    made = project(tmp_path, hierarchy=ABOVE)
    made.desk.votes = 2
    pose(made, [(0, CAT)])
    voted(made, "anna", "yes")
    voted(made, "bela", "no")
    made.desk.votes = 1
    pose(made, [(0, ANIMAL)])
    voted(made, "anna", "no")
    (found,), _ = disagreements(made.desk)
    with pytest.raises(Refused, match="contradicts what is known"):
        decide(made.desk, made.person("dora"), found.question, "yes")
    decide(made.desk, made.person("dora"), found.question, "no")
    assert made.known()["item 0", "cat"] == -1


def test_people_are_asked_about_their_labels(tmp_path: Path) -> None:
    made = project(tmp_path)
    pose(made, [(0, BOAT), (0, CAT), (1, CAT), (1, DOG)])
    anna, bela = made.person("anna"), made.person("bela")
    held = made.desk.lease(bela, "label", 1)
    assert [one.label for one in held] == ["boat"]
    assign(made.desk, bela.id, ["dog", "cat", "dog"])
    assert assignments(made.desk) == {bela.id: ["cat", "dog"]}  # in the order of the labels
    assert [one.label for one in made.desk.lease(anna, "item", 5)] == ["boat", "cat"]  # boat is free again
    assert [one.label for one in made.desk.lease(bela, "item", 5)] == ["cat", "dog"]
    assign(made.desk, bela.id, ["dog"])
    assert [one.label for one in made.desk.lease(bela, "label", 5)] == ["dog"]
    assign(made.desk, bela.id, [])
    assert assignments(made.desk) == {}
    with pytest.raises(Refused, match="Did you mean 'boat'"):
        assign(made.desk, bela.id, ["cat", "baot"])
    with pytest.raises(Refused, match="no such person"):
        assign(made.desk, 99, ["cat"])
