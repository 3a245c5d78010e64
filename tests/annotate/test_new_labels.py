"""Labels that are added to the ledger of a project: their names are scored, and asked about, at once."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from partly import Labels
from partly.annotate.accounts import Accounts, Person
from partly.annotate.project import ProjectConfig, open_project
from partly.annotate.trainer import BEFORE_MODEL, Trainer
from partly.cli.main import app
from partly.data.demo_texts import FILE
from partly.errors import LabelError
from partly.ledger import Ledger
from partly.teachers.label_names import is_installed
from tests.annotate.making import project

NEW = "gardening"


def write_project(folder: Path, known: int) -> ProjectConfig:
    """Write the texts of the demo and the answers to the first texts, without the topic that is added later."""
    lines = [line.split(" | ", 1) for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    names = sorted({name for topics, _ in lines for name in topics.split(", ")} - {NEW})
    with open(folder / "texts.csv", "w") as texts, open(folder / "labels.csv", "w") as labels:
        print("item,text", file=texts)
        print("item", *names, sep=",", file=labels)
        for i, (topics, text) in enumerate(lines):
            quoted = text.replace('"', '""')
            print(f'{i},"{quoted}"', file=texts)
            answers = [int(name in topics.split(", ")) if i % (len(lines) // known) == 0 else "" for name in names]
            print(i, *answers, sep=",", file=labels)
    return ProjectConfig(
        str(folder / "texts.csv"), str(folder / "labels.db"), str(folder / "labels.csv"), count=40, every=20
    )


def partly(*arguments: str) -> None:
    """Run a command."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output


def texts_about(name: str) -> set[str]:
    lines = [line.split(" | ", 1) for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    return {str(i) for i, (topics, _) in enumerate(lines) if name in topics.split(", ")}


def questions_about(trainer: Trainer, label: str) -> dict[str, float | None]:
    """Lease everything that is asked; return the probabilities of the questions about a label, by item."""
    trainer.queue.add_new_labels()
    person = Person(Accounts(trainer.queue.ledger.store).local_admin("anna"), "anna", "admin")
    asked = {}
    for _ in range(20):
        for question in trainer.queue.lease(person, "label", 48):
            asked[question.name, question.label] = question.probability
            trainer.queue.skip(person, question.id)
    return {item: probability for (item, name), probability in asked.items() if name == label}


def test_new_labels_are_asked_about_at_once(tmp_path: Path) -> None:
    if not is_installed("minilm"):
        pytest.skip("the sentence encoder is not installed")
    config = write_project(tmp_path, known=36)
    trainer = Trainer(config, *open_project(config))
    trainer.pose_first_questions()
    trainer.run_round()
    assert not trainer.is_round_due()
    partly("vocabulary", "add", config.ledger, NEW)
    assert trainer.is_round_due()  # without an answer
    restarted = Trainer(config, *open_project(config))
    assert restarted.is_round_due()  # also where the page is started again
    assert restarted.dataset.labels.names[-1] == NEW
    trainer.run_round()
    assert not trainer.is_round_due()
    probabilities = questions_about(trainer, NEW)
    right = texts_about(NEW)
    scored = {item for item, probability in probabilities.items() if probability is not None}
    assert len(scored) >= 3
    assert len(scored & right) / len(scored) > 2 * len(right) / 72  # the name says which texts
    # The same ledger trains a model that scores the new label, though no answer is known.
    run, out = str(tmp_path / "run"), tmp_path / "scores.csv"
    partly("train", config.data, "--labels", config.ledger, "--run", run)
    partly("predict", run, config.data, "--out", str(out))
    with open(out) as file:
        scores = {row["item"]: float(row[NEW]) for row in csv.DictReader(file)}
    questions = str(tmp_path / "questions.csv")
    partly("query", run, config.data, "--labels", config.ledger, "--out", questions, "-n", "200")
    with open(questions) as file:
        assert NEW in {row["label"] for row in csv.DictReader(file)}
    best = sorted(scores, key=lambda item: -scores[item])[: len(right)]
    assert len(right.intersection(best)) > 0.7 * len(right)


def test_first_questions_wait_for_answers(tmp_path: Path) -> None:
    """Nothing is known: what the teacher asks first is not replaced before people have answered."""
    made = project(tmp_path, names=("cat", "dog"))
    (tmp_path / "x.csv").write_text("item,a\n" + "".join(f"item {i},{i}\n" for i in range(12)))
    config = ProjectConfig(str(tmp_path / "x.csv"), made.ledger.store.place.address, count=8, every=4)
    trainer = Trainer(config, *open_project(config))
    trainer.pose_first_questions()
    assert not trainer.is_round_due()
    made.ledger.add(["boat"])
    assert trainer.is_round_due()
    assert trainer.run_round() == 8
    assert trainer.queue.given.names == ("cat", "dog", "boat")
    assert not trainer.is_round_due()
    with trainer.queue.ledger.store.reading() as connection:
        queries = [row.query for row in connection.exec_driver_sql("select query from annotate_rounds")]
    assert queries == [BEFORE_MODEL, BEFORE_MODEL]


def test_running_pages_show_added_labels(tmp_path: Path) -> None:
    made = project(tmp_path, names=("cat", "dog"))
    context = made.context()
    made.ledger.split("cat", ["tabby", "siamese"])
    labels = context.refresh_labels()
    assert labels.names == context.queue.given.names == ("cat", "dog", "tabby", "siamese")
    assert context.queue.columns["siamese"] == 3
    assert context.queue.hierarchy is not None
    assert set(context.queue.hierarchy.parents_of("tabby")) == {"cat"}


def test_labels_of_the_data_must_be_in_the_ledger(tmp_path: Path) -> None:
    """A ledger of other labels is still refused."""
    config = replace(write_project(tmp_path, known=36), ledger=str(tmp_path / "other.db"))
    ledger = Ledger.create(config.ledger, ["boat"], author="tests")
    ledger.append_labels(Labels.from_full([[1]], names=["boat"], ids=["0"]), author="tests")
    with pytest.raises(LabelError, match="only in the data"):
        open_project(config)
