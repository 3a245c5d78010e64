"""A ledger as labels, wherever labels are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partly import Hierarchy, Labels, Ledger, data
from partly.errors import DataError, SettingError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    ledger = Ledger.create(tmp_path / "labels.db", names=["cat", "Animal"])
    ledger.append(["a", "b"], ["cat", "Animal"], [1, 0], author="anna")
    ledger.split("Animal", ["Bird"])
    ledger.append(["a"], ["Animal"], [0], kind="model", run="runs/1")
    ledger.append(["b", "b", "b"], ["cat"] * 3, [1, 1, 1], author="ben")
    return tmp_path / "labels.db"


def test_what_is_observed(place: Path) -> None:
    assert data.read_labels(place) == Ledger(place).labels()
    assert data.read_labels(str(place)).names == ("cat", "Animal", "Bird")


def test_a_state_of_it(place: Path) -> None:
    ledger = Ledger(place)
    assert data.read_labels(f"{place}?at=2") == ledger.labels(2)
    assert data.read_labels(f"{place}?at={ledger.log()[1].time.isoformat().replace('+', '%2B')}") == ledger.labels(2)
    assert data.read_labels(f"{place}?models=yes&policy=majority") == ledger.labels(models=True, policy="majority")
    for wrong, words in (
        ("at=99", "at = 99"),
        ("models=1", "yes or no"),
        ("policy=mine", "policy = 'mine'"),
        ("x=1", "x"),
    ):
        with pytest.raises((SettingError, DataError), match=words):
            data.read_labels(f"{place}?{wrong}")


def test_names_and_silence(place: Path) -> None:
    names = ["Bird", "cat", "Animal", "more"]
    assert data.read_labels(place, names=names).names == tuple(names)
    assert data.read_labels(place, absent="no").summary()["unknown"] == 0
    with pytest.raises(DataError, match="label 'Animal' is not among"):
        data.read_labels(place, names=["cat", "Bird"])


def test_items_of_a_file_with_labels_of_a_ledger(place: Path, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,x\na,1\nb,2\nc,3\n")
    found = data.read(tmp_path / "items.csv", place)
    assert found.labels.ids == ("a", "b")
    assert found.hierarchy == Hierarchy({"Bird": "Animal"})
    assert len(found.unlabelled_rows) == 1


def test_a_strange_database_is_refused(tmp_path: Path) -> None:
    import sqlite3

    sqlite3.connect(tmp_path / "x.db").execute("CREATE TABLE a (b)").connection.close()
    with pytest.raises(DataError, match="is a database without a ledger"):
        data.read_labels(tmp_path / "x.db")


def test_labels_become_a_new_ledger(place: Path, tmp_path: Path) -> None:
    labels = Labels.from_nan([[1, np.nan], [np.nan, np.nan]], names=["b", "a"], ids=["y", "x"])
    data.write_labels(labels, tmp_path / "new.db")
    assert data.read_labels(tmp_path / "new.db") == labels
    assert Ledger(tmp_path / "new.db").log()[-1].kind == "import"
    before = Ledger(place).log()
    with pytest.raises(DataError, match="it is not empty"):
        data.write_labels(labels, place)
    assert Ledger(place).log() == before
