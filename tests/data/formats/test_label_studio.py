"""Label Studio's tasks: answers of people in, predictions out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from partly import Labels
from partly.data import Scores, read_labels
from partly.data.formats.label_studio import write_tasks
from partly.errors import DataError


def choices(*words, name="tags", kind="choices"):
    return {"from_name": name, "to_name": "image", "type": kind, "value": {kind: list(words)}}


def task(*annotations, **data):
    return {"id": 7, "data": {"image": "a.jpg"} | data, "annotations": list(annotations)}


def written(path, *tasks):
    path.write_text(json.dumps(tasks))
    return path


def z(path, **said):
    return read_labels(path, **said).rows(slice(None)).tolist()


def test_what_was_cancelled_is_no_answer(tmp_path):
    answered = task({"result": [choices("cat"), {"type": "rating", "value": {"rating": 3}}]})
    empty = task({"result": []}, image="b.jpg")
    cancelled = task({"result": [choices("dog")], "was_cancelled": True}, image="c.jpg")
    path = written(tmp_path / "a.json", answered, empty, cancelled, task(image="d.jpg"))
    with pytest.raises(DataError, match=r"choices list positives.*--absent"):
        read_labels(path)
    assert read_labels(path, absent="no").ids == ("a.jpg", "b.jpg", "c.jpg", "d.jpg")
    assert z(path, absent="unknown") == [[1], [0], [0], [0]]
    assert z(path, absent="no") == [[1], [-1], [0], [0]]  # nobody has looked at the last two


def test_where_people_disagree_the_caller_says(tmp_path):
    path = written(tmp_path / "a.json", task({"result": [choices("cat", "dog")]}, {"result": [choices("cat")]}))
    assert z(path, absent="unknown") == [[1, 1]]
    with pytest.raises(DataError, match=r"people disagree: 1\n.*task 1: 'dog'\n.*--uncertain"):
        read_labels(path, absent="no")
    assert z(path, absent="no", uncertain="unknown") == [[1, 0]]


def test_other_controls(tmp_path):
    paths = choices(["animal", "cat"], name="tree", kind="taxonomy")
    boxes = choices("dog", name="box", kind="rectanglelabels")
    labels = read_labels(written(tmp_path / "a.json", task({"result": [paths, boxes]})), absent="unknown")
    assert dict(zip(labels.names, z(tmp_path / "a.json", absent="unknown")[0], strict=True)) == {
        "animal": 1,
        "cat": 1,
        "dog": 1,
    }


def test_yes_and_no_leave_nothing_open(tmp_path):
    said = [choices("cat", name="yes"), choices("dog", name="no")]
    assert z(written(tmp_path / "a.json", task({"result": said}))) == [[1, -1]]
    (tmp_path / "a.json").write_text(json.dumps([{"data": "x"}]))
    with pytest.raises(DataError, match="task 1: has no 'data'"):
        read_labels(tmp_path / "a.json")


def test_predictions(tmp_path):
    labels = Labels.from_ternary([[1, 0], [0, 0]], names=["cat", "dog"], ids=["a", "b"])
    scores = Scores(np.array([[0.9, 0.2], [0.4, 0.7]], np.float32), ("b", "a"), ("dog", "cat"))
    write_tasks(labels, tmp_path / "a.json", scores)
    first, second = json.loads((tmp_path / "a.json").read_text())
    assert first["predictions"] == [
        {
            "model_version": "partly",
            "score": 0.6,
            "result": [
                {"from_name": "yes", "to_name": "item", "type": "choices", "value": {"choices": ["cat"]}},
                {"from_name": "no", "to_name": "item", "type": "choices", "value": {"choices": ["dog"]}},
            ],
        }
    ]
    assert second["annotations"] == []
    assert read_labels(tmp_path / "a.json", names=labels.names) == labels  # a prediction is no answer
