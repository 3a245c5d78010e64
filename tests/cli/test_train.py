"""`partly train`: what makes a step, and how much of a backbone learns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from typer.testing import CliRunner

from partly import Classifier, data
from partly.cli import main
from partly.engine.resolution import build_method
from partly.errors import SettingError
from partly.labels import Labels
from partly.networks.backbones import Backbone


@pytest.fixture
def pictures(tmp_path: Path) -> str:
    """A folder of small pictures, and what is known of them."""
    rng, folder = np.random.default_rng(0), tmp_path / "pictures"
    folder.mkdir()
    names = [f"{number}.png" for number in range(24)]
    for name in names:
        Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(folder / name)
    labels = Labels.from_full(rng.integers(0, 2, (24, 2)), names=["a", "b"], ids=names)
    data.write_labels(labels, tmp_path / "labels.csv")
    return str(folder)


@pytest.fixture
def rows(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5)).astype(np.float32)
    y = (x[:, :2] > 0).astype(np.int8)
    parts = {"features_train": x[:40], "labels_train": y[:40], "features_test": x[40:], "labels_test": y[40:]}
    np.savez(tmp_path / "rows.npz", **parts, names=np.array(["a", "b"]))
    return str(tmp_path / "rows.npz")


def trained(where: str, folder: Path, words: str) -> tuple[dict[str, Any], str]:
    done = CliRunner().invoke(main.app, ["train", where, "--run", str(folder), *words.split()])
    if done.exception:
        raise done.exception
    recipe: dict[str, Any] = json.loads((folder / "run.json").read_text())["recipe"]
    return recipe, done.output


def test_every_option_reaches_the_recipe(rows: str, tmp_path: Path) -> None:
    words = "--method partial-bce --head linear --optimizer sgd --schedule plateau --schedule-setting patience=0"
    words += " --accumulate 2 --average 0.9 --precision bfloat16 --epochs 2 --batch-size 8"
    recipe, _ = trained(rows, tmp_path / "run", words)
    found = {name: recipe[name] for name in ("schedule", "schedule_settings", "accumulate", "average", "precision")}
    assert found == {
        "schedule": "plateau",
        "schedule_settings": {"gamma": 0.1, "patience": 0},
        "accumulate": 2,
        "average": 0.9,
        "precision": "bfloat16",
    }
    assert (recipe["optimizer"], recipe["compile"]) == ("sgd", False)


def test_thresholds_are_told_reported_and_explained_from(rows: str, tmp_path: Path) -> None:
    words = "--method bce --head linear --hold-out 0 --calibrate platt --thresholds f1 --verbose"
    _, output = trained(rows, tmp_path / "run", words)
    assert "Probabilities are calibrated (platt) on held-out entries." in output
    assert "(F1 at the model's own thresholds)" in output
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "reliability diagram" in page
    assert "Thresholds are chosen for f1" in page
    measured = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert set(measured["at_own_thresholds"]) == set(measured["scores"])
    told = CliRunner().invoke(main.app, ["explain", str(tmp_path / "run"), "3", "a", "--json"])
    assert json.loads(told.stdout)["label"] == "a"
    found = CliRunner().invoke(main.app, ["doctor", rows, "--method", "bce", "--json"])
    assert json.loads(found.stdout)["known"]["items"] == 40


def test_a_recipe_of_a_paper(rows: str, tmp_path: Path) -> None:
    recipe, said = trained(rows, tmp_path / "run", "--recipe zhou2022 --epochs 2 --no-refit --verbose")
    assert (recipe["method"], recipe["optimizer"], recipe["lr"]) == ("em-apl", "adam", 1e-5)
    assert (recipe["epochs"], recipe["batch_size"], recipe["schedule"]) == (2, 8, "constant")
    assert "Reason      recipe zhou2022" in said


def test_recipes_are_listed() -> None:
    done = CliRunner().invoke(main.app, ["methods", "--recipes"])
    assert done.exit_code == 0
    for words in ("durand2019", "epochs: 20", "lyu2025", "lr: 4e-05", "hsieh2021", "ResNet-101"):
        assert words in done.output
    listed = json.loads(CliRunner().invoke(main.app, ["methods", "--recipes", "--json"]).output)
    assert listed["huynh2020"]["values"]["optimizer"] == "rmsprop"


def test_without_a_validation_part_there_is_no_plateau(rows: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="goes by the score of validation items, and there are none"):
        trained(rows, tmp_path / "run", "--method bce --head linear --schedule plateau --hold-out 0")


@pytest.mark.parametrize(("freeze", "learning"), [("", 4), ("--backbone-setting freeze=1", 1)])
def test_a_backbone_learns_as_far_as_it_is_asked_to(pictures: str, tmp_path: Path, freeze: str, learning: int) -> None:
    """End to end, or the last of its four stages."""
    words = f"--labels {tmp_path / 'labels.csv'} --method bce --head linear --epochs 1 --batch-size 8 --hold-out 0"
    trained(pictures, tmp_path / "run", f"{words} --size 16 --backbone small-conv {freeze}")
    fitted = Classifier.load(tmp_path / "run").fitted_
    fresh = build_method(fitted.config, fitted.method.task.items, 2)
    before, after = (_stages(method.network) for method in (fresh, fitted.method))
    moved = [
        any(not torch.equal(*pair) for pair in zip(*both, strict=True)) for both in zip(before, after, strict=True)
    ]
    assert moved == [False] * (4 - learning) + [True] * learning


def _stages(network: nn.Module) -> list[list[Tensor]]:
    backbone = next(part for part in network.modules() if isinstance(part, Backbone))
    return [list(stage.parameters()) for stage in backbone.stages()]


@pytest.mark.parametrize(("method", "learned_from"), [("em", 44), ("assume-negative", 24), ("bce", 24)])
@pytest.mark.filterwarnings("ignore::partly.errors.LearnedNothingWarning")
def test_items_without_a_row_in_the_labels(tmp_path: Path, method: str, learned_from: int) -> None:
    """30 of 50 items have one, of which a fifth chooses the epoch. The others are not taken for items without a label,
    and are counted on the console and in the report."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3))
    rows = [f"i{i},{','.join(map(str, row))}" for i, row in enumerate(x)]
    (tmp_path / "features.csv").write_text("\n".join(["item,p,q,r", *rows]))
    tags = [f"i{i},{name}" for i in range(30) for name, yes in zip("abc", x[i] > 0, strict=True) if yes or name == "a"]
    (tmp_path / "tags.csv").write_text("\n".join(["item,label", *tags]))
    words = f"--labels {tmp_path / 'tags.csv'} --method {method} --head linear --epochs 1"
    _, said = trained(str(tmp_path / "features.csv"), tmp_path / "run", words)
    told = "20 items have no row in the label file, so all their labels are unknown; "
    told += f"{method} learns from them, too" if learned_from == 44 else f"{method} does not learn from them"
    assert told in said
    page = (tmp_path / "run" / "report.html").read_text()
    assert told in page
    low = "trained without a known no"  # and no threshold was chosen: why CF1 may be 0
    assert low in said
    assert low in page
    description = json.loads((tmp_path / "run" / "held-out" / "run.json").read_text())["data"]
    assert description["shape"] == [learned_from, 3]
    assert description["known"]["items_with_nothing_known"] == learned_from - 24
    assert json.loads((tmp_path / "run" / "run.json").read_text())["data"]["shape"] == [learned_from + 6, 3]
