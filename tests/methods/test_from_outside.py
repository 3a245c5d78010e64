"""A method in a folder of the user: its results and runs are those of its source, and its mistakes are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

METHOD = '''"""Cross-entropy of the known entries, a yes counts more.

Paper: none.
"""

from partly.losses import bce


def loss(logits, z, *, weight: float = {weight}):
    return bce(logits, z) * (1 + (weight - 1) * (z > 0))
'''


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Features and labels of 90 items as files, and a folder `own` for methods."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 5))
    z = (x[:, :3] + 0.7 * rng.normal(size=(90, 3)) > 0).astype(int)
    for name, columns, values in (("features", "abcde", x), ("labels", "pqr", z)):
        lines = [",".join(map(str, [f"i{row}", *cells])) for row, cells in enumerate(values.tolist())]
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join(["item", *columns]), *lines, ""]))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.py").write_text(METHOD.format(weight=1.0))
    return tmp_path


def partly(desk: Path, words: str, code: int = 0) -> str:
    """Run a command as a user does; returns what it printed on both ways out."""
    done = subprocess.run(
        [sys.executable, "-m", "partly", *words.split()],
        cwd=desk,
        env=os.environ | {"PARTLY_METHODS": str(desk / "own")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


TRAIN = "train features.csv --labels labels.csv --run run --method mine --head linear --epochs 2"
COMPARE = "compare features.csv --labels labels.csv --scenarios uniform:0.5 --heads linear --seeds 2 --workers 1"
COMPARE += " --methods mine,partial-bce"


def test_a_run_goes_on_only_with_the_same_source(desk: Path) -> None:
    partly(desk, TRAIN)
    first = json.loads((desk / "run" / "run.json").read_text())
    partly(desk, TRAIN)
    (desk / "own" / "mine.py").write_text(METHOD.format(weight=1.0) + "# a remark\n")
    assert "sources.method mine" in partly(desk, TRAIN, code=2)
    partly(desk, TRAIN.replace("run run", "run other").replace("mine", "bce"))
    assert len(first["sources"]["method mine"]) == 64
    assert "sources" not in json.loads((desk / "other" / "run.json").read_text())


def test_results_follow_the_source(desk: Path) -> None:
    def scores() -> dict[tuple[str, int], float]:
        partly(desk, COMPARE)
        lines = map(json.loads, (desk / "results" / "compare.jsonl").read_text().splitlines())
        return {
            (line["method"], line["seed"], line.get("method_sha256", "")): line["predictions_sha256"] for line in lines
        }

    before = scores()
    assert scores() == before
    (desk / "own" / "mine.py").write_text(METHOD.format(weight=1.0).replace("1 + (weight - 1)", "1 + 8"))
    after = scores()
    assert before.items() <= after.items()  # nothing else was run again, and what was there is kept
    new = after.keys() - before.keys()
    assert {(method, seed) for method, seed, _ in new} == {("mine", 0), ("mine", 1)}
    assert {after[key] for key in new}.isdisjoint(before.values())


def test_a_loss_that_returns_nan_is_named(desk: Path) -> None:
    (desk / "own" / "mine.py").write_text("def loss(logits, z):\n    return 0 * logits / (z - z)\n")
    said = partly(desk, TRAIN, code=2)
    assert f"The loss of mine ({desk / 'own' / 'mine.py'}:1) is nan in epoch 1, step 1, though the logits are" in said
    (desk / "own" / "mine.py").write_text("def loss(logits, z):\n    return 0 * (logits - logits).sqrt()\n")
    said = partly(desk, TRAIN.replace("run run", "run other"), code=2)
    assert f"The gradient of the loss of mine ({desk / 'own' / 'mine.py'}:1) is not finite in epoch 1, step 1" in said


def test_a_method_that_fails_is_a_failed_cell_and_the_others_are_compared(desk: Path) -> None:
    (desk / "own" / "mine.py").write_text("def loss(logits, z):\n    return 0 * logits / (z - z)\n")
    said = partly(desk, COMPARE, code=2)
    assert "The loss of mine" in said
    lines = list(map(json.loads, (desk / "results" / "compare.jsonl").read_text().splitlines()))
    assert {line["method"] for line in lines if "failed" in line} == {"mine"}
    assert {line["method"] for line in lines if "failed" not in line} == {"assume-negative", "bce", "partial-bce"}


def test_a_broken_file_stops_no_command_but_those_that_need_it(desk: Path) -> None:
    (desk / "own" / "broken.py").write_text("import no_such_module\n")
    place = f"{desk / 'own' / 'broken.py'}:1: cannot be used as a method. ModuleNotFoundError"
    said = partly(desk, TRAIN)
    assert said.count(place) == 1
    assert place in partly(desk, TRAIN.replace("mine", "broken"), code=2)
    assert place in partly(desk, "methods")
