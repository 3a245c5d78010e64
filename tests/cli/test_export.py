"""`partly export`, called as a user calls it; what it wrote is used without this package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from partly import read
from partly.cli.main import app
from partly.data import read_scores
from partly.errors import DataError, SettingError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "export.md"


def partly(*words: str) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    partly("train", "digits", "--scenario", "uniform:0.3", "--method", "bce", "--head", "linear", "--run", "run")
    return "run"


def test_both_files_and_the_example_of_the_page(run: str) -> None:
    pytest.importorskip("onnxruntime")
    told = partly("export", run, "--onnx", "model.onnx", "--model-card", "card.md")
    assert "differs from torch by at most" in told
    card = Path("card.md").read_text()
    assert "the test set" in card
    assert 'InferenceSession("model.onnx")' in card
    partly("predict", run, "digits", "--out", "scores.csv")
    wanted = read_scores("scores.csv").values
    np.save("features.npy", read("digits").test.items.take(slice(None)).numpy())
    (example,) = re.findall(r"```python\n(import json\n.*?)```", PAGE.read_text("utf-8"), re.S)
    example += "np.save('found.npy', probabilities)\nimport sys\nassert not {'torch', 'partly'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", example], check=True)
    assert np.abs(np.load("found.npy") - wanted).max() < 1e-4


def test_what_is_refused(run: str) -> None:
    with pytest.raises(SettingError, match=r"--onnx model\.onnx, --model-card card\.md, or both"):
        partly("export", run)
    Path("card.md").write_text("mine")
    with pytest.raises(DataError, match=r"card\.md: exists already"):
        partly("export", run, "--onnx", "model.onnx", "--model-card", "card.md")
    assert not Path("model.onnx").exists()  # asked before anything is done
    partly("export", run, "--model-card", "card.md", "--overwrite")
    assert Path("card.md").read_text() != "mine"
