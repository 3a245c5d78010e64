"""Rounds: what is trained on, what is asked next, and that nothing is lost with the process."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import event

from partly import Classifier
from partly.annotate.accounts import Accounts, Person
from partly.annotate.project import ProjectConfig, open_project
from partly.annotate.question_queue import QuestionQueue
from partly.annotate.stats import read_snapshot
from partly.annotate.trainer import BEFORE_MODEL, Trainer, drop_contradictions, suspect_labels
from partly.errors import DataError, LabelError, SettingError
from partly.labels import Hierarchy, Labels
from partly.ledger import Ledger

NAMES = ("big", "small", "left")


def written(folder: Path, count: int = 40) -> ProjectConfig:
    """Two features; big is the first above 0, small the first below -1, left the second below 0. One in four known."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 2))
    z = np.stack([x[:, 0] > 0, x[:, 0] < -1, x[:, 1] < 0], axis=1).astype(int)
    with open(folder / "x.csv", "w") as items, open(folder / "y.csv", "w") as labels:
        one, two = csv.writer(items), csv.writer(labels)
        one.writerow(["item", "a", "b"])
        two.writerow(["item", *NAMES])
        for i in range(count):
            one.writerow([f"i{i}", *x[i]])
            two.writerow([f"i{i}", *(v if rng.random() < 0.25 else "" for v in z[i])])
    return ProjectConfig(
        str(folder / "x.csv"), str(folder / "labels.db"), str(folder / "y.csv"), method="bce", count=20, every=8
    )


def truth(queue: QuestionQueue, plan: ProjectConfig) -> dict[tuple[str, str], str]:
    with open(plan.data) as file:
        rows = {row["item"]: (float(row["a"]), float(row["b"])) for row in csv.DictReader(file)}
    return {
        (item, name): "yes" if yes else "no"
        for item, (a, b) in rows.items()
        for name, yes in zip(NAMES, (a > 0, a < -1, b < 0), strict=True)
    }


def answer(queue: QuestionQueue, plan: ProjectConfig, count: int, name: str = "anna") -> int:
    """So many answers that are true; how many there were."""
    person = Person(Accounts(queue.ledger.store).local_admin(name), name, "admin")
    right, given = truth(queue, plan), 0
    while given < count and (held := queue.lease(person, "label", 1)):
        queue.answer(person, held[0].id, right[held[0].name, held[0].label], 1.0, "label")
        given += 1
    return given


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[ProjectConfig, Trainer]:
    """A first round without a model, one with, some answers, and another one."""
    plan = written(tmp_path_factory.mktemp("rounds"))
    trainer = Trainer(plan, *open_project(plan))
    assert trainer.is_round_due()
    trainer.pose_first_questions()
    assert answer(trainer.queue, plan, 2) == 2  # nobody waits for the first model
    trainer.run_round()
    assert not trainer.is_round_due()
    assert answer(trainer.queue, plan, 8) == 8
    assert trainer.is_round_due()
    trainer.run_round()
    return plan, trainer


def test_a_round_reads_answers_and_rounds_once(
    played: tuple[ProjectConfig, Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trainer = played
    selects: list[str] = []
    table = re.compile(r"FROM (annotate_\w+)")

    def count(connection: object, cursor: object, statement: str, *_: object) -> None:
        selects.extend(table.findall(statement))

    event.listen(trainer.queue.ledger.store.engine, "before_cursor_execute", count)
    monkeypatch.setattr(trainer.queue, "pose", lambda *_: 0)  # other tests share the project
    trainer.run_round()
    event.remove(trainer.queue.ledger.store.engine, "before_cursor_execute", count)
    assert sorted(selects) == ["annotate_questions", "annotate_rounds"]


def test_rounds_are_written_down(played: tuple[ProjectConfig, Trainer]) -> None:
    _, trainer = played
    rounds = read_snapshot(trainer.queue).rounds
    assert [(one["round"], one["query"], one["answers"]) for one in rounds] == [
        (1, BEFORE_MODEL, 0),
        (2, "uncertainty", 2),
        (3, "uncertainty", 10),
    ]
    assert rounds[2]["known"] == rounds[0]["known"] + 10
    assert "Too early" in rounds[2]["found"]["worth"]["words"]


def test_the_arms_have_their_shares(played: tuple[ProjectConfig, Trainer]) -> None:
    _, trainer = played
    with trainer.queue.ledger.store.reading() as connection:
        found = connection.exec_driver_sql(
            "select random, repeats, item, label, probability from annotate_questions where round = 3"
        ).all()
    assert len(found) == 20
    assert sum(bool(row[0]) for row in found) == 2
    assert sum(row[1] is not None for row in found) == 1
    assert all(0 < row[4] < 1 for row in found)
    known = {(row.item, row.label) for row in read_snapshot(trainer.queue).answers}
    assert not {(row[2], row[3]) for row in found if row[1] is None} & known  # what is answered is not asked again


def test_a_trainer_that_starts_anew_goes_on(played: tuple[ProjectConfig, Trainer]) -> None:
    """All is in the database: another process sees the same, and makes no round that is not due."""
    plan, _ = played
    again = Trainer(plan, *open_project(plan))
    again.pose_first_questions()
    assert not again.is_round_due()
    assert len(read_snapshot(again.queue).rounds) == 3
    np.testing.assert_array_equal(again.queue.given.ternary(), open_project(plan)[1].given.ternary())
    assert int(again.dataset.labels.known_per_item().sum()) == int(again.queue.given.known_per_item().sum()) + 10


def test_a_finished_run_asks_first_and_once(tmp_path: Path) -> None:
    plan = written(tmp_path)
    opened, _ = open_project(plan)
    Classifier("bce", "linear", run_dir=tmp_path / "run", progress=False).fit(opened.items, opened.labels)
    plan = replace(plan, run=str(tmp_path / "run"), method="auto")
    trainer = Trainer(plan, *open_project(plan))
    assert trainer.estimator.head == "linear"
    trainer.pose_first_questions()
    assert read_snapshot(trainer.queue).rounds == []  # nobody need wait for it
    trainer.run_round()
    assert [one["query"] for one in read_snapshot(trainer.queue).rounds] == ["uncertainty"]
    again = Trainer(plan, *open_project(plan))  # after a kill
    again.pose_first_questions()
    assert again.first_model is None
    assert not again.is_round_due()


def test_what_is_given_is_taken_from_the_data_once(played: tuple[ProjectConfig, Trainer]) -> None:
    plan, trainer = played
    batches = [batch for batch in trainer.queue.ledger.log() if batch.kind == "import"]
    assert len(batches) == 1
    assert batches[0].author == plan.labels
    without_labels = replace(plan, labels=None)  # the ledger knows which labels there are
    opened, _ = open_project(without_labels)
    assert opened.labels.names == NAMES
    with pytest.raises(DataError, match="no ledger yet"):
        open_project(replace(without_labels, ledger=plan.ledger + ".other"))


def test_a_ledger_about_other_items_is_refused(tmp_path: Path) -> None:
    """Not one about some of them, or about more."""
    plan = written(tmp_path)
    open_project(plan)
    for ids, refused in (("ab", True), (("a", "i7"), False)):
        items = tmp_path / "other.csv"
        items.write_text("item,a,b\n" + "".join(f"{name},1,2\n" for name in ids))
        other = replace(plan, data=str(items), labels=None)
        if not refused:
            assert open_project(other)[1].given.ids == ids
            continue
        with pytest.raises(DataError) as error:
            open_project(other)
        for words in (str(items), plan.ledger, "'a', 'b'", "'i0', 'i1', 'i2', ... (40 in all)", "another --ledger"):
            assert words in str(error.value)
    empty = Ledger.create(tmp_path / "empty.db", names=NAMES)
    assert len(open_project(replace(plan, ledger=str(empty.store.place.file)))[0].items) == 40


def test_a_ledger_is_made_with_what_is_known_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be there after a crash, and what is known forgotten, since only what it says itself is taken."""
    plan = written(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append_labels", _crashing)
        with pytest.raises(RuntimeError, match="crash"):
            open_project(plan)
    opened, _ = open_project(plan)
    assert opened.labels.known_per_item().sum() > 0


def _crashing(*_: object, **__: object) -> None:
    raise RuntimeError("a crash")


def test_a_plan_that_cannot_be() -> None:
    for wrong in ({"query": "gut"}, {"random": 0.9}, {"every": 0}, {"run": "r", "method": "bce"}):
        with pytest.raises(SettingError):
            ProjectConfig("x", "y", **wrong)  # type: ignore[arg-type]


def test_contradictions_of_people_are_not_learned_from() -> None:
    hierarchy = Hierarchy({"cat": "animal"})
    labels = Labels.from_ternary([[-1, 1, 1], [0, 1, 0], [-1, 0, 0]], names=["animal", "cat", "boat"])
    with pytest.raises(LabelError):
        hierarchy.deduce(labels)
    np.testing.assert_array_equal(drop_contradictions(labels, hierarchy).ternary(), [[0, 0, 1], [1, 1, 0], [-1, -1, 0]])
    assert drop_contradictions(labels, None) is labels


def test_a_hierarchy_of_labels_that_are_not_all_there() -> None:
    hierarchy = Hierarchy({"cat": "pet", "pet": "animal", "oak": "tree"})
    assert dict(hierarchy.restrict(("cat", "animal", "oak")).parents) == {"cat": "animal"}
    assert hierarchy.restrict(("oak",)) is None


def test_doubts_by_hand() -> None:
    class Model:
        out_of_fold = np.array([[4.0, -4.0], [4.0, 0.0]])

    labels = Labels.from_ternary([[-1, -1], [1, 1]], names=["a", "b"], ids=["x", "y"])
    (found,) = suspect_labels(Model(), labels)  # type: ignore[arg-type]
    assert (found["item"], found["label"], found["given"]) == ("x", "a", "no")
    assert found["chance"] == pytest.approx(1 / (1 + np.exp(4)))


def test_the_first_questions_have_a_shadow_arm_too(tmp_path: Path) -> None:
    plan = written(tmp_path)
    trainer = Trainer(plan, *open_project(plan))
    trainer.pose_first_questions()
    with trainer.queue.ledger.store.reading() as connection:
        found = connection.exec_driver_sql("select random, item, label from annotate_questions order by place").all()
    assert len(found) == plan.count
    assert sum(bool(row[0]) for row in found) == round(plan.random * plan.count)
    assert len({(row[1], row[2]) for row in found}) == len(found)
