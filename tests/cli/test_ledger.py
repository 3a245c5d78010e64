"""`partly ledger` and `partly vocabulary`, as they are typed."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from partly import Labels, Ledger
from partly.cli.annotate import annotate
from partly.cli.main import app
from partly.cli.options import DataOptions
from partly.cli.refine import refine
from partly.errors import CheckpointError, DataError, PartlyError


def typed(*words: str) -> Any:
    """What a command prints as JSON; errors are raised."""
    result = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("theirs.csv").write_text("item,kitty,puppy\na,1,0\nb,0,\nc,,\n")
    Path("answers.csv").write_text("item,label,score,answer\na,Animal,0.5,1\nb,Animal,0.5,0\nc,Animal,0.1,\n")
    return "labels.db"


def test_from_the_first_import_to_the_last_undo(place: str) -> None:
    typed("ledger", "init", place, "--labels", "Cat,Dog,Animal", "--author", "anna")
    typed("ledger", "import", place, "theirs.csv", "--map", "kitty=Cat,puppy=Dog")
    typed("ledger", "import", place, "answers.csv", "--person", "ben", "--key", "round 1")
    assert typed("ledger", "import", place, "answers.csv", "--person", "ben", "--key", "round 1")["batches"] == [3]
    assert typed("vocabulary", "split", place, "Animal", "into", "Bird,Fish")["labels"][-2:] == ["Bird", "Fish"]
    typed("vocabulary", "merge", place, "Cat,Dog", "as", "Pet")
    typed("vocabulary", "rename", place, "Pet", "to", "House pet")
    typed("vocabulary", "add", place, '"with, comma"', "--parent", "Animal")
    typed("vocabulary", "retire", place, "Fish")
    assert typed("ledger", "show", place, "b")["known"] == {"Animal": "no", "Bird": "no", "with, comma": "no"}
    there = {one["label"]: one["hidden"] for one in typed("vocabulary", "list", place)}
    assert [name for name, hidden in there.items() if not hidden] == ["Animal", "Bird", "House pet", "with, comma"]
    log = typed("ledger", "log", place)
    assert [one["kind"] for one in log[:3]] == ["person", "import", "person"]
    assert log[2]["author"] == "ben"
    typed("ledger", "export", place, "all.csv")
    assert Path("all.csv").read_text().splitlines()[0] == '"item","Animal","Bird","House pet","with, comma"'
    typed("ledger", "export", place, "all.parquet", "--statements")
    typed("ledger", "init", "copy.db", "--statements", "all.parquet")
    assert typed("ledger", "log", "copy.db") == log
    assert {one["after"] for one in typed("ledger", "diff", place, "2", "3")} == {"yes", "no"}
    undo = typed("ledger", "undo", place, "--author", "ben", "--note", "not his day")["batch"]
    assert typed("ledger", "show", place, "b")["known"] == {}
    typed("ledger", "undo", place, str(undo))
    assert typed("ledger", "disagreements", place) == []


def test_importing_a_file_twice_changes_nothing(place: str) -> None:
    typed("ledger", "init", place, "--labels", "Cat,Dog,Animal")
    for words in (["theirs.csv", "--map", "kitty=Cat,puppy=Dog"], ["answers.csv", "--person", "ben"]):
        first = typed("ledger", "import", place, *words)
        assert first["imported_before"] == []
        log = typed("ledger", "log", place)
        result = CliRunner().invoke(app, ["ledger", "import", place, *words])
        (batch,) = first["batches"]
        assert f"imported before, nothing changed (batch {batch}). --force appends it again." in result.output
        assert typed("ledger", "log", place) == log
        forced = typed("ledger", "import", place, *words, "--force")
        assert forced["batches"] == [batch + 1]
        assert forced["imported_before"] == []


def test_what_is_typed_wrong_is_said(place: str) -> None:
    typed("ledger", "init", place, "--labels", "Cat,Dog")
    for words, told in (
        (["ledger", "import", place, "theirs.csv"], "not in the vocabulary"),
        (["ledger", "import", place, "theirs.csv", "--map", "kitty"], "old=new"),
        (["ledger", "import", place, "theirs.csv", "--person", "a", "--model", "b"], "one source"),
        (["vocabulary", "merge", place, "Cat,Dog", "into", "Pet"], "after 'as'"),
        (["ledger", "export", place, "all.csv", "--statements"], "to a .parquet"),
        (["ledger", "undo", place], "Say what to undo"),
        (["ledger", "log", "postgresql://anna:s3cret@host/labels"], "PGPASSWORD"),
        (["complete", "digits", "--ledger", "postgresql://anna:s3cret@host/labels"], "PGPASSWORD"),
    ):
        with pytest.raises(PartlyError, match=told) as error:
            typed(*words)
        assert "s3cret" not in str(error.value)


def test_lists_for_people(place: str) -> None:
    typed("ledger", "init", place, "--labels", "Cat")
    typed("ledger", "import", place, "theirs.csv", "--map", "kitty=Cat", "--add-labels")
    for words, told in (
        (["ledger", "log", place], "import theirs.csv: 3 statements"),
        (["ledger", "show", place, "a"], "Cat: yes"),
        (["ledger", "diff", place, "1"], "a  Cat: unknown -> yes"),
        (["vocabulary", "list", place], "puppy"),
    ):
        result = CliRunner().invoke(app, words, catch_exceptions=False)
        assert told in result.stdout


def test_a_ledger_is_asked_without_torch(place: str) -> None:
    typed("ledger", "init", place, "--labels", "Cat")
    program = f"""
import sys
sys.argv = ["partly", "ledger", "log", {place!r}]
from partly.cli.main import main
try:
    main()
except SystemExit as left:
    assert not left.code, left.code
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_answers_of_people_go_back_into_the_ledger_once(place: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    y = np.where(rng.random((40, 2)) < 0.5, x[:, :2] > 0, np.nan)
    ids = [f"i{k}" for k in range(40)]
    with open("items.csv", "w") as file:
        csv.writer(file).writerows([["item", "u", "v", "w"], *([name, *row] for name, row in zip(ids, x, strict=True))])
    ledger = Ledger.create(place)
    ledger.append_labels(Labels.from_nan(y, names=["Cat", "Dog"], ids=ids), author="first.csv", add_labels=True)
    how: Any = {"method": "bce", "head": "linear", "epochs": 1, "device": "cpu", "query": "uncertainty", "count": 3}

    def call(**more: Any) -> str:
        found = refine("items.csv", Path("run"), reading=DataOptions(Path(place)), **how, **more)
        return str(found["questions"])

    asked = call()
    ledger.rename("Cat", "Tomcat")  # meanwhile
    rows = list(csv.DictReader(Path(asked).read_text().splitlines()))
    with open(asked, "w") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(row | {"answer": "1"} for row in rows[:2])
    call(answers=Path(asked), author="anna")
    call()
    log = ledger.log()
    assert [(one.kind, one.author, one.count) for one in log[3:]] == [("person", "anna", 2)]
    labels = ledger.labels()
    for row in rows[:2]:
        name = {"Cat": "Tomcat"}.get(row["label"], row["label"])
        assert labels.rows([labels.ids.index(row["item"])])[0][labels.names.index(name)] == 1
    Ledger.create("other.db", names=["Cat"])
    with pytest.raises(CheckpointError, match="asks about the ledger"):
        refine("items.csv", Path("run"), reading=DataOptions(Path("other.db")), **how)


def test_no_password_is_typed_for_pages() -> None:
    with pytest.raises(DataError, match="PGPASSWORD") as refused:
        annotate("items.csv", ledger="postgresql://anna:s3cret@host/labels")
    assert "s3cret" not in str(refused.value)


def test_labels_of_a_new_ledger_come_from_a_file(place: str) -> None:
    Path("names.txt").write_text("Cat\nGuinea pig, young\n")
    Path("names.toml").write_text('Cat = "A cat."\nDog = ""\n')
    for name, labels in (("names.txt", ("Cat", "Guinea pig, young")), ("names.toml", ("Cat", "Dog"))):
        typed("ledger", "init", f"{name}.db", "--labels", name)
        assert Ledger(f"{name}.db").vocabulary().names == labels
