"""Pictures in a folder and texts in a table, from files to results, with every default, through the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from typer.testing import CliRunner

from images.making import encoded, folder_of
from partly.cli.main import app
from partly.data import read_scores
from stories.weights import needs_weights

COUNT = 60
NAMES = ("cat", "dog")


def labels_of(folder: Path, ids: list[str]) -> np.ndarray:
    """Half of the entries, in a table; what is true of all."""
    rng = np.random.default_rng(0)
    truth = rng.random((COUNT, len(NAMES))) < 0.5
    known = rng.random(truth.shape) < 0.7
    rows = [
        ",".join([name, *(str(int(yes)) if told else "" for yes, told in zip(*line, strict=True))])
        for name, line in zip(ids, zip(truth, known, strict=True), strict=True)
    ]
    (folder / "labels.csv").write_text("\n".join(["item," + ",".join(NAMES), *rows]) + "\n")
    return truth


def walk(folder: Path, data: Path, first: str, backbone: str) -> None:
    """Every command that a user gives, one after the other."""

    def call(*words: object) -> str:
        done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    labels, run = ("--labels", folder / "labels.csv"), folder / "run"
    assert f"backbone {backbone}, " in call("train", data, *labels, "--run", run)
    call("predict", run, data, "--out", folder / "scores.csv")
    assert len(read_scores(folder / "scores.csv").ids) == COUNT
    assert "mAP" in call("evaluate", folder / "scores.csv", folder / "labels.csv")
    assert f"backbone {backbone}, " in call("features", data, "--out", folder / "features")
    call("train", folder / "features", *labels, "--run", folder / "run2", "--method", "bce")
    assert f"backbone {backbone}, " in call("doctor", folder / "labels.csv", data)
    call("query", run, data, *labels, "--out", folder / "questions.csv", "--count", 3, "--query", "diverse")
    assert len((folder / "questions.csv").read_text().splitlines()) == 4
    assert "Nearest items" in call("explain", run, first, NAMES[0])
    call("complete", data, *labels, "--out", folder / "filled.csv", "--force", "--no-compare")
    call("export", run, "--onnx", folder / "model.onnx")
    assert (folder / "model.onnx").stat().st_size > 1000


@needs_weights
def test_texts(tmp_path: Path) -> None:
    ids = [f"t{i}" for i in range(COUNT)]
    truth = labels_of(tmp_path, ids)
    said = [" ".join(["A", *(n for n, yes in zip(NAMES, row, strict=True) if yes), "sits."]) for row in truth]
    (tmp_path / "texts.csv").write_text(
        "item,text\n" + "".join(f"{i},{text}\n" for i, text in zip(ids, said, strict=True))
    )
    walk(tmp_path, tmp_path / "texts.csv", "t0", "tfidf-minilm")


@needs_weights
def test_pictures(tmp_path: Path) -> None:
    ids = [f"{i:02d}.png" for i in range(COUNT)]
    truth = labels_of(tmp_path, ids)
    grain = np.random.default_rng(1).integers(0, 90, (COUNT, 32, 32, 3))
    colours = [
        (noise + np.array([160 * cat, 160 * dog, 60])).astype(np.uint8)
        for noise, (cat, dog) in zip(grain, truth, strict=True)
    ]
    folder_of(
        tmp_path / "photos", {name: encoded(Image.fromarray(pixels)) for name, pixels in zip(ids, colours, strict=True)}
    )
    walk(tmp_path, tmp_path / "photos", ids[0], "efficientnet-lite0")
