"""Open Images' table: verified yes and no, and what machines guessed."""

from __future__ import annotations

import pytest

from partly import Labels
from partly.data import read_labels, write_labels
from partly.errors import DataError

HEADER = "ImageID,Source,LabelName,Confidence\n"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "labels.csv"


def test_verified_rows(file):
    file.write_text(HEADER + "a1,verification,/m/01,1\na1,crowdsource-verification,/m/02,0\n")
    labels = read_labels(file)
    assert (labels.ids, labels.names, labels.ternary().tolist()) == (("a1",), ("/m/01", "/m/02"), [[1, -1]])
    file.write_text("LabelName,Confidence,ImageID,XMin\n/m/01,1.0,a1,0.5\n")
    assert read_labels(file).ternary().tolist() == [[1]]


def test_rows_that_a_machine_made_must_be_named(file):
    file.write_text(HEADER + "a1,machine,/m/01,0.7\na1,verification,/m/02,1\nb,machine,/m/02,0.1\n")
    with pytest.raises(DataError) as told:
        read_labels(file)
    assert f"{file}: values that are neither yes nor no: 2\n  {file}:2: '0.7'" in str(told.value)
    assert "--uncertain unknown" in str(told.value)
    assert read_labels(file, uncertain="unknown").rows(slice(None)).tolist() == [[0, 1], [0, 0]]
    assert read_labels(file, uncertain="yes").rows(slice(None)).tolist() == [[1, 1], [0, 1]]
    assert read_labels(file, uncertain="unknown", absent="no").rows(slice(None)).tolist() == [[0, 1], [-1, 0]]
    file.write_text(HEADER + "a1,machine,/m/01,1.7\n")
    with pytest.raises(DataError, match="values that are not 1"):
        read_labels(file, uncertain="unknown")


def test_what_is_written(file):
    labels = Labels.from_ternary([[0, 1, 0], [0, 0, 0]], names=["a", "b", "c"], ids=["x", "y"])
    with pytest.warns(UserWarning, match="cannot hold") as told:
        write_labels(labels, file, form="open-images")
    assert len(told) == 2  # of an item and of two labels nothing is known
    assert file.read_text().splitlines()[1:] == ['"x","verification","b",1']
