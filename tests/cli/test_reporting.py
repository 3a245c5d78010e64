"""The report of what a command trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from partly import Classifier, Dataset, Labels, engine
from partly.cli._reporting import build_report, list_scores
from partly.cli.options import DataOptions
from partly.cli.train import train
from partly.config import TrainConfig
from partly.data import write_labels
from partly.errors import SettingError
from partly.items import Items, as_items


def data(test: bool) -> Dataset:
    x = np.random.default_rng(0).normal(size=(30, 3))
    whole = Dataset(as_items(x), Labels.from_full((x > 0).astype(int)))
    return Dataset(whole.items, whole.labels, test=whole[20:] if test else None)


@pytest.fixture
def model() -> engine.FittedModel:
    one = data(test=False)
    return Classifier("bce", head="linear", epochs=1, progress=False).fit(one.items, one.labels).fitted_


@pytest.mark.parametrize("test", [False, True])
def test_items_are_predicted_and_scored_once(
    model: engine.FittedModel, monkeypatch: pytest.MonkeyPatch, test: bool
) -> None:
    predicted: list[int] = []
    original = engine.FittedModel.prepare_items

    def seen(self: engine.FittedModel, items: Items) -> Items:
        predicted.append(len(items))
        return original(self, items)

    monkeypatch.setattr(engine.FittedModel, "prepare_items", seen)
    made = build_report("title", {"mine": model}, data(test), np.arange(18), np.arange(18, 30))
    assert predicted == ([10, 12] if test else [12])  # the test part and the examples, or both at once
    assert made.run_scores is made.run_scores
    assert made.examples is not None
    assert made.examples.given is not None
    assert made.examples.given.ids == tuple(map(str, range(18, 30)))  # where they stand among all
    assert list_scores(made)["mine"] is made.run_scores[0].scores


def test_who_saw_more_is_named(model: engine.FittedModel) -> None:
    for truth, upper, privilege in ((False, "", ""), (True, "", "the truth"), (False, "mine", "all labels")):
        model.method.needs_truth = truth
        made = build_report("title", {"mine": model}, data(test=True), np.arange(18), np.arange(18, 30), upper)
        assert made.runs[0].privilege == privilege


def test_evidence_is_shown_where_there_are_maps(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    x = np.random.default_rng(0).integers(0, 255, (20, 20, 20, 3), np.uint8)
    for i, one in enumerate(x):
        Image.fromarray(one).save(tmp_path / "pictures" / f"{i}.png")
    labels = tmp_path / "labels.csv"
    write_labels(Labels.from_full(x[:, 0, 0] > 99, ids=[f"{i}.png" for i in range(20)]), labels)
    config = TrainConfig("bce", "linear", epochs=1, progress=False)
    for wanted in (False, True):
        reading = DataOptions(labels, size=16)
        train(str(tmp_path / "pictures"), tmp_path / "run", config, reading, evidence=wanted, say=lambda _: None)
        page = (tmp_path / "run" / "report.html").read_text("utf-8")
        assert ("speaks for" in page or "evidence for" in page) == wanted
        assert page.count("data:image/jpeg") >= 3


def test_evidence_of_what_is_no_picture_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="the items of digits are features"):
        train("digits", tmp_path / "run", TrainConfig(), evidence=True, say=lambda _: None)
    assert not (tmp_path / "run").exists()
