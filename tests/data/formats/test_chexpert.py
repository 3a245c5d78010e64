"""CheXpert's table: four values, of which the caller explains one."""

from __future__ import annotations

import pytest

from partly import Labels
from partly.data import read_labels, write_labels
from partly.errors import DataError

TABLE = (
    "Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Edema\nv/p1.jpg,Female,68,Frontal,AP,1.0,\nv/p2.jpg,Male,7,,,,-1.0\n"
)


def test_what_describes_the_patient_is_no_label(tmp_path):
    (tmp_path / "train.csv").write_text(TABLE)
    with pytest.raises(DataError, match=r"cells that are -1(.|\n)*label 'Edema'(.|\n)*--uncertain"):
        read_labels(tmp_path / "train.csv")
    labels = read_labels(tmp_path / "train.csv", uncertain="unknown")
    assert (labels.ids, labels.names) == (("v/p1.jpg", "v/p2.jpg"), ("No Finding", "Edema"))
    assert labels.ternary().tolist() == [[1, 0], [0, 0]]
    assert read_labels(tmp_path / "train.csv", uncertain="yes", absent="no").ternary().tolist() == [[1, -1], [-1, 1]]
    assert read_labels(tmp_path / "train.csv", uncertain="unknown", absent="no").ternary().tolist() == [
        [1, -1],
        [-1, 0],
    ]


def test_ids_of_mimic(tmp_path):
    (tmp_path / "a.csv").write_text("subject_id,study_id,Edema\n7,50,1.0\n7,51,0.0\n")
    labels = read_labels(tmp_path / "a.csv")
    assert (labels.ids, labels.names, labels.ternary().tolist()) == (("50", "51"), ("Edema",), [[1], [-1]])


def test_a_label_that_would_be_left_alone_is_not_written(tmp_path):
    with pytest.raises(DataError, match="does not read Age as labels"):
        write_labels(Labels.from_full([[1]], names=["Age"]), tmp_path / "a.csv", form="chexpert")
