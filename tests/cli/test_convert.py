"""`partly convert`, and `--absent` and `--uncertain` in the commands that take labels."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import partly
from partly import Labels
from partly.cli.convert import convert
from partly.cli.main import app
from partly.cli.options import DataOptions
from partly.data import LabelSemantics, read_labels, write_labels, write_scores
from partly.errors import DataError, PartlyError, SettingError

LABELS = Labels.from_ternary([[1, -1, 0], [0, 1, 1]], names=["cat", "cow", "dog"], ids=["a.jpg", "b.jpg"])
FORMS = {"wide": "a.csv", "long": "b.jsonl.gz", "coco": "c.json", "label-studio": "d.json", "chexpert": "e.tsv"}
FORMS |= {"open-images": "f.csv", "voc-sets": "train.txt", "labels-npz": "g.npz"}


def call(*words):
    found = CliRunner().invoke(app, [str(word) for word in words])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize("first", FORMS)
def test_between_any_two_that_hold_all_three(tmp_path, first):
    write_labels(LABELS, tmp_path / FORMS[first], form=first)
    for second, name in FORMS.items():
        (tmp_path / second).mkdir()
        convert(str(tmp_path / FORMS[first]), tmp_path / second / name, second)
        assert read_labels(tmp_path / second / name, names=LABELS.names) == LABELS


def test_the_command(tmp_path):
    write_labels(LABELS, tmp_path / "a.csv")
    call("convert", tmp_path / "a.csv", tmp_path / "b.json", "--form", "coco")
    assert read_labels(tmp_path / "b.json") == LABELS
    with pytest.raises(DataError, match="Choose one: coco or label-studio"):
        call("convert", tmp_path / "a.csv", tmp_path / "c.json")
    with pytest.raises(DataError, match="could not be told apart"):
        call("convert", tmp_path / "a.csv", tmp_path / "c.csv", "--form", "tags")
    call("convert", tmp_path / "a.csv", tmp_path / "c.csv", "--form", "tags", "--absent", "unknown")
    assert read_labels(tmp_path / "c.csv").summary()["yes"] == 3
    with pytest.raises(SettingError, match="absent = 'maybe': must be 'unknown' or 'no'"):
        call("convert", tmp_path / "a.csv", tmp_path / "d.csv", "--absent", "maybe")


def test_items_go_along_where_there_is_a_place_for_them(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("item,p,q\na.jpg,1,2\nb.jpg,3,0\n")
    write_labels(LABELS, tmp_path / "y.csv")
    with pytest.warns(UserWarning, match="cannot hold the ids"):
        convert(str(tmp_path / "x.csv"), tmp_path / "z.arff", reading=DataOptions(labels=tmp_path / "y.csv"))
    data = partly.read(tmp_path / "z.arff")
    assert data.items.take(slice(None)).tolist() == [[1, 2], [3, 0]]
    assert data.labels.rows(slice(None)).tolist() == LABELS.rows(slice(None)).tolist()
    convert(str(tmp_path / "z.arff"), tmp_path / "w.csv")
    assert capsys.readouterr().err.splitlines()[-2].startswith("Only the labels are written")
    with pytest.raises(SettingError, match="holds items, but the source has labels only"):
        convert(str(tmp_path / "y.csv"), tmp_path / "v.arff", "mulan")


def test_parts_and_scores(tmp_path):
    with pytest.raises(SettingError, match="--part train or --part test"):
        convert("digits", tmp_path / "a.csv")
    convert("digits", tmp_path / "a.csv", part="test")
    assert len(read_labels(tmp_path / "a.csv")) == len(partly.read("digits").test.labels)
    write_labels(LABELS, tmp_path / "b.csv")
    write_scores(tmp_path / "s.csv", np.full((2, 3), 0.75, np.float32), LABELS.ids, LABELS.names)
    convert(str(tmp_path / "b.csv"), tmp_path / "t.json", "label-studio", scores=tmp_path / "s.csv")
    assert [one["predictions"][0]["score"] for one in json.loads((tmp_path / "t.json").read_text())] == [0.75, 0.75]
    with pytest.raises(SettingError, match="add --format label-studio"):
        convert(str(tmp_path / "b.csv"), tmp_path / "t.csv", scores=tmp_path / "s.csv")


def test_every_command_is_told_what_a_file_leaves_open(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("".join(f"{i % 2} 0:{i} 1:{-i % 7}\n" for i in range(40)))
    for words in (("simulate", path, "--scenario", "uniform:0.5", "--out", tmp_path / "b.csv"),):
        with pytest.raises(PartlyError, match="--absent unknown or --absent no"):
            call(*words)
        call(*words, "--absent", "no")
    run = tmp_path / "run"
    call("train", path, "--absent", "no", "--run", run, "--method", "bce", "--head", "linear", "--epochs", "1")
    call("predict", run, path, "--out", tmp_path / "s.csv")
    call("evaluate", tmp_path / "s.csv", path, "--absent", "no")
    call("query", run, path, "--absent", "unknown", "--out", tmp_path / "q.csv", "--query", "random", "-n", "3")
    assert len((tmp_path / "q.csv").read_text().splitlines()) == 4


def test_ids_without_folder_or_ending_are_matched(tmp_path):
    (tmp_path / "x.csv").write_text("item,p\nval/a.jpg,1\nval/b.jpg,3\nval/c.jpg,4\n")
    for ids in (["a", "c"], ["a.jpg", "c.jpg"], ["train/a.jpg", "train/c.jpg"]):
        write_labels(Labels.from_full([[1], [0]], names=["cat"], ids=ids), tmp_path / "y.csv")
        data = partly.read(tmp_path / "x.csv", tmp_path / "y.csv")
        assert data.labels.ids == ("val/a.jpg", "val/c.jpg")
        assert data.items.take(slice(None)).tolist() == [[1], [4]]
    (tmp_path / "x.csv").write_text("item,p\nval/a.jpg,1\ntrain/a.jpg,3\nval/c.jpg,4\n")
    write_labels(Labels.from_full([[1], [0]], names=["cat"], ids=["a", "c"]), tmp_path / "y.csv")
    with pytest.raises(DataError, match="2 of the 2 items are not in it"):
        partly.read(tmp_path / "x.csv", tmp_path / "y.csv")


def test_what_may_be_said():
    assert LabelSemantics().absent is None
    for words in ({"absent": "yes"}, {"uncertain": "maybe"}):
        with pytest.raises(SettingError, match="must be 'unknown' or"):
            LabelSemantics(**words)
