"""A folder of images with a COCO or an LVIS file: from annotations on disk to scores and a completed table."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner

from annotate.kinds import NAMES, ids_of, truth_of, write_kind
from partly.cli.main import app
from stories.weights import needs_weights

COUNT = 40


def call(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def coco(known: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return a COCO file with the boxes of known colors; no absent label is listed."""
    boxes = [
        {
            "id": 10 * i + j,
            "image_id": i,
            "category_id": j + 1,
            "bbox": [0, 16 * j, 48, 16],
            "area": 768,
            "iscrowd": 0,
        }
        for i, j in np.argwhere(truth_of(COUNT) & known).tolist()
    ]
    return {
        "images": [{"id": i, "file_name": name, "width": 48, "height": 48} for i, name in enumerate(ids_of(COUNT))],
        "categories": [{"id": j + 1, "name": name} for j, name in enumerate(NAMES)],
        "annotations": boxes,
    }


def lvis(known: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return the same boxes, with the known absent colors of each image listed."""
    content = coco(known)
    for image, absent in zip(content["images"], known & ~truth_of(COUNT), strict=True):
        image["neg_category_ids"] = (np.flatnonzero(absent) + 1).tolist()
        image["not_exhaustive_category_ids"] = []
    return content


@pytest.fixture
def known() -> npt.NDArray[np.bool_]:
    """Which entries are known, at random, [items, labels]."""
    return np.random.default_rng(2).random((COUNT, len(NAMES))) < 0.6


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_kind(tmp_path, "pictures", COUNT)[0]


@needs_weights
def test_coco_needs_the_meaning_of_absence_and_trains(
    tmp_path: Path, photos: Path, known: npt.NDArray[np.bool_]
) -> None:
    labels, run = tmp_path / "instances.json", tmp_path / "run"
    labels.write_text(json.dumps(coco(known)))
    undecided = CliRunner().invoke(app, ["train", str(photos), "--labels", str(labels), "--run", str(run)])
    assert undecided.exit_code != 0
    assert "--absent" in str(undecided.exception)
    call("convert", labels, tmp_path / "labels.csv", "--absent", "unknown")
    with open(tmp_path / "labels.csv", newline="") as file:
        values = {row[name] for row in csv.DictReader(file) for name in NAMES}
    assert values == {"1", ""}
    call("train", photos, "--labels", labels, "--absent", "unknown", "--run", run)
    call("predict", run, photos, "--out", tmp_path / "scores.csv")
    report = json.loads(call("evaluate", tmp_path / "scores.csv", labels, "--absent", "unknown", "--json"))
    assert report["AUROC"] is None or report["AUROC"] > 0.5


@needs_weights
def test_lvis_leaves_nothing_open(tmp_path: Path, photos: Path, known: npt.NDArray[np.bool_]) -> None:
    labels, run = tmp_path / "lvis.json", tmp_path / "run"
    labels.write_text(json.dumps(lvis(known)))
    call("train", photos, "--labels", labels, "--run", run)
    call("predict", run, photos, "--out", tmp_path / "scores.csv")
    assert json.loads(call("evaluate", tmp_path / "scores.csv", labels, "--json"))["mAP"] > 0.8
    call("complete", photos, "--labels", labels, "--out", tmp_path / "completed.csv", "--force", "--no-compare")
    assert (tmp_path / "completed.csv").read_text().startswith('"item"')
