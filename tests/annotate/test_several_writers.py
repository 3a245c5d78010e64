"""Several people at once, in a file and on a server: nobody is asked what another is, every answer is there once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from annotate.conftest import ledger_places
from annotate.making import ABOVE, pose, project
from partly.annotate.errors import ApiError

NAMES = ("anna", "bela", "carl")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_three_people_at_once(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    url = None if kind == "sqlite" else ledger_places.databases(request.getfixturevalue("server"))()
    made = project(tmp_path, count=30, hierarchy=ABOVE, url=url)
    pose(made, [(i, 3) for i in range(30)])
    people = {name: made.person(name) for name in NAMES}

    def answer(name: str) -> list[int]:
        given = []
        while held := made.queue.lease(people[name], "label", 3):
            for question in held:
                made.queue.answer(people[name], question.id, "yes", 1.0, "label")
                given.append(question.id)
        return given

    with ThreadPoolExecutor(len(NAMES)) as pool:
        given = list(pool.map(answer, NAMES))
    assert sorted(number for one in given for number in one) == list(range(1, 31))
    said = [one for i in range(30) for one in made.ledger.show(f"item {i}") if one.batch.kind == "person"]
    assert len(said) == 30
    name = next(name for name, one in zip(NAMES, given, strict=True) if one)
    made.queue.undo(people[name], made.queue.standing(people[name])["last"])
    assert len(made.known()) == 29
    token = made.people.invite("annotator")
    made.people.join(token, "Dora", "a long password")
    with pytest.raises(ApiError, match="used already"):
        made.people.join(token, "Emil", "a long password")
    with pytest.raises(ApiError, match="taken"):
        made.people.join(made.people.invite("annotator"), "DORA", "a long password")
