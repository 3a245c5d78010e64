"""What models have filled in is asked about by chance, and the bound holds whenever one looks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotate.making import Project, browser, pose, project
from partly.annotate.auditing import ModelBatch, audit, next_audits, read_model_batches
from partly.annotate.stats import read_snapshot


def completed(folder: Path) -> Project:
    """A model has said yes to all cats and no to all boats."""
    made = project(folder)
    items = [f"item {i}" for i in range(12)]
    made.ledger.append(items * 2, ["cat"] * 12 + ["boat"] * 12, [1] * 12 + [0] * 12, kind="model", run="runs/m")
    return made


def test_what_is_filled_in_is_found_in_one_order(tmp_path: Path) -> None:
    made = completed(tmp_path)
    (one,) = read_model_batches(made.queue, seed=0)
    assert (one.run, len(one.entries)) == ("runs/m", 24)
    assert {(column, z) for _, column, z in one.entries} == {(1, 1), (3, -1)}
    assert read_model_batches(made.queue, seed=0) == [one]
    assert read_model_batches(made.queue, seed=1) != [one]
    made.ledger.undo(one.batch, by="anna")
    assert read_model_batches(made.queue, seed=0) == []


def test_where_a_model_cannot_tell_there_is_nothing_to_audit(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.ledger.append(["item 0", "item 1"], ["cat"] * 2, [1, None], kind="model", run="language-model x")
    (one,) = read_model_batches(made.queue, seed=0)
    assert one.entries == [(0, 1, 1)]


def test_what_is_due_comes_by_turns_and_never_twice() -> None:
    batches = [
        ModelBatch(1, "a", "", [(0, 0, 1), (1, 0, 1), (2, 0, 1)]),
        ModelBatch(2, "b", "", [(0, 1, 1), (1, 0, -1)]),
    ]
    assert next_audits(batches, [], 3) == [(0, 0), (0, 1), (1, 0)]
    assert next_audits(batches, [(0, 0, 1), (1, 0, 0)], 5) == [(2, 0), (0, 1)]
    assert next_audits(batches, [], 0) == []


def test_only_the_beginning_of_the_order_counts() -> None:
    one = ModelBatch(1, "a", "", [(i, 0, 1) for i in range(10)])
    answers = [(0, 0, 1), (1, 0, -1), (2, 0, 0), (3, 0, 1), (9, 0, -1)]  # the last one happened to be asked
    found = audit(one, answers)
    assert (found.judged, found.wrong) == (3, 1)
    assert "1 of 3 audited entries are wrong" in found.words
    assert audit(one, []).words == "not audited yet"
    every = audit(one, [(i, 0, 1 if i else -1) for i in range(10)])
    assert (every.judged, every.wrong, every.max_share) == (10, 1, 0.1)  # nothing is left to chance


def test_the_bound_holds_whenever_one_looks() -> None:
    """Of 60 entries 9 are wrong: in at most one of twenty orders it is ever said that fewer are."""
    truth = np.array([-1] * 9 + [1] * 51)
    failed = 0
    for seed in range(100):
        order = np.random.default_rng(seed).permutation(60)
        one = ModelBatch(1, "a", "", [(int(i), 0, 1) for i in order])
        answers = [(int(i), 0, int(truth[i])) for i in order]
        failed += any(audit(one, answers[:k]).max_share < 9 / 60 for k in range(5, 60, 5))
    assert failed <= 10  # 5 are expected at most


def test_the_overview_says_how_far_it_is(tmp_path: Path) -> None:
    made = completed(tmp_path)
    (one,) = read_model_batches(made.queue, seed=0)
    pose(made, [(row, column) for row, column, _ in one.entries[:2]])
    page = browser(made)
    for _ in range(2):
        question = page.call("/api/questions", {"view": "label", "count": 1}).json()["questions"][0]
        said = {"question": question["id"], "value": "yes", "seconds": 1.0, "view": "label"}
        assert page.call("/api/answer", said).status_code == 200
    answers = read_snapshot(made.queue).entries
    assert audit(one, answers).judged == 2
    assert "of 2 audited entries" in page.get("/overview").text
