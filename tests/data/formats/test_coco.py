"""COCO and LVIS: what an annotation says, what silence says, and files of the real tool."""

from __future__ import annotations

import json

import pytest

from partly import Labels
from partly.data import read_labels, write_labels
from partly.data.formats import coco
from partly.errors import DataError

CATEGORIES = [{"id": 3, "name": "cat"}, {"id": 1, "name": "dog"}]
IMAGES = [{"id": 10, "file_name": "a.jpg"}, {"id": 11, "file_name": "b.jpg"}]


def written(path, **parts):
    whole = {"info": {"year": 2017}, "licenses": []}
    whole |= {"images": IMAGES, "categories": CATEGORIES, "annotations": [{"image_id": 10, "category_id": 3}] * 2}
    path.write_text(json.dumps(whole | parts))
    return path


def test_in_plain_coco_the_caller_says_what_silence_means(tmp_path):
    path = written(tmp_path / "instances.json")
    with pytest.raises(DataError, match=r"instances.json: a COCO file without neg.*--absent unknown or --absent no"):
        read_labels(path)
    labels = read_labels(path, absent="unknown")
    assert (labels.ids, labels.names) == (("a.jpg", "b.jpg"), ("cat", "dog"))
    assert labels.rows(slice(None)).tolist() == [[1, 0], [0, 0]]
    assert read_labels(path, absent="no").rows(slice(None)).tolist() == [[1, -1], [-1, -1]]


def test_lvis_says_itself_what_is_unknown(tmp_path):
    images = [
        {"id": 10, "coco_url": "http://x/train2017/a.jpg", "neg_category_ids": [1], "not_exhaustive_category_ids": []},
        {"id": 11, "coco_url": "http://x/val2017/b.jpg", "neg_category_ids": [], "not_exhaustive_category_ids": [1]},
    ]
    labels = read_labels(written(tmp_path / "lvis.json", images=images))
    assert labels.ids == ("a.jpg", "b.jpg")
    assert labels.rows(slice(None)).tolist() == [[1, -1], [0, 1]]


def test_what_does_not_fit_is_told_at_once(tmp_path):
    wrong = [{"image_id": 12, "category_id": 3}, {"image_id": 10, "category_id": 9}]
    with pytest.raises(DataError) as told:
        read_labels(written(tmp_path / "a.json", annotations=wrong), absent="no")
    assert "do not match: 2\n  annotations[0]: there is no image 12\n  annotations[1]: there is no category 9" in str(
        told.value
    )
    with pytest.raises(DataError, match=r"annotations\[0\] must have image_id, category_id"):
        read_labels(written(tmp_path / "a.json", annotations=[{"image_id": 10}]), absent="no")
    with pytest.raises(DataError, match="no categories"):
        read_labels(written(tmp_path / "a.json", categories=[]), absent="no")
    images = [{"id": 10, "file_name": "a.jpg", "neg_category_ids": [3]}]
    with pytest.raises(DataError, match="both"):
        read_labels(written(tmp_path / "a.json", images=images))


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    path = written(tmp_path / "a.json")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="not well-formed JSON, or truncated"):
        read_labels(path, absent="no")
    (tmp_path / "b.json").write_text("[1, 2]")
    with pytest.raises(DataError, match="no format recognizes labels"):
        read_labels(tmp_path / "b.json")


def test_only_its_beginning_is_read_to_know_it(tmp_path):
    (tmp_path / "a.json").write_text('{"info": {}, "images": [' + "never closed")
    assert coco.recognizes(tmp_path / "a.json")


def test_the_real_tool_reads_what_is_written(tmp_path, capsys):
    from pycocotools.coco import COCO

    labels = Labels.from_ternary([[1, -1, 0], [0, 1, 1]], names=["cat", "dog", "cow"], ids=["a.jpg", "b.jpg"])
    write_labels(labels, tmp_path / "a.json", form="coco")
    found = COCO(str(tmp_path / "a.json"))
    names = {one["id"]: one["name"] for one in found.loadCats(found.getCatIds())}
    seen = {}
    for image in found.loadImgs(found.getImgIds()):
        there = {names[one["category_id"]] for one in found.loadAnns(found.getAnnIds(imgIds=[image["id"]]))}
        seen[image["file_name"]] = (there, {names[key] for key in image["neg_category_ids"]})
    assert seen == {"a.jpg": ({"cat"}, {"dog"}), "b.jpg": ({"dog", "cow"}, set())}
    assert capsys.readouterr().out  # it says what it does
