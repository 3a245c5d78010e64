"""A method in a folder of the user: its results and runs are those of its source, and its mistakes are named."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    (tmp_path / "compare.toml").write_text(EXPERIMENT)
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
    return done.stdout + (done.stderr if "--json" not in words else "")


TRAIN = "train features.csv --labels labels.csv --run run --method mine --head linear --epochs 2"
COMPARE = "compare compare.toml --workers 1"
EXPERIMENT = """
data = ["features.csv"]
labels = "labels.csv"
methods = ["mine", "partial-bce"]
scenarios = ["uniform:0.5"]
heads = ["label-transformer"]
seeds = 2
recipe = { start = "random" }  # a solved start would hide what the method learns
"""


def test_a_run_goes_on_only_with_the_same_source(desk: Path) -> None:
    partly(desk, TRAIN)
    first = json.loads((desk / "run" / "run.json").read_text())
    partly(desk, TRAIN)
    (desk / "own" / "mine.py").write_text(METHOD.format(weight=1.0) + "# a remark\n")
    assert "sources.method mine" in partly(desk, TRAIN, code=2)
    partly(desk, TRAIN.replace("run run", "run other").replace("mine", "bce"))
    assert len(first["sources"]["method mine"]) == 64
    assert "sources" not in json.loads((desk / "other" / "run.json").read_text())


def test_page_tables_and_json_name_one_leader_and_follow_the_source(desk: Path) -> None:
    """From files to a page and tables; then the method is changed."""
    digests, leaders = [], []
    for weight in (1.0, -1.0):  # the second learns the opposite
        text = METHOD.format(weight=1.0).replace("bce(logits, z) *", f"{weight} * bce(logits, z) *")
        (desk / "own" / "mine.py").write_text(text.replace("1 + (weight - 1)", "0.01 + 0"))
        found = json.loads(partly(desk, f"{COMPARE} --table t.tex --table t.csv --table t.md --json --quiet"))
        digests.append(_predictions(desk))
        leaders.append(_leader_everywhere(desk, found))
    first, second = digests
    assert first.items() <= second.items()  # nothing else was run again, and what was there is kept
    assert {(method, seed) for method, seed, _ in second.keys() - first.keys()} == {("mine", 0), ("mine", 1)}
    assert {second[key] for key in second.keys() - first.keys()}.isdisjoint(first.values())
    with (desk / "t.csv").open() as file:
        scores = {row["method"]: float(row["mAP"]) for row in csv.DictReader(file)}
    assert scores["mine"] == min(scores.values())
    assert leaders[1] != "mine"


def _predictions(desk: Path) -> dict[tuple[str, int, str], str]:
    lines = map(json.loads, (desk / "results" / "compare.jsonl").read_text().splitlines())
    return {(line["method"], line["seed"], line.get("method_sha256", "")): line["predictions_sha256"] for line in lines}


def _leader_everywhere(desk: Path, found: dict[str, Any]) -> str:
    """The leader of the only race, if JSON, page and tables agree on it and on those that are level."""
    (said,) = found["leaders"]
    with (desk / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows if row["leader"] == "True"] == [said["leader"]]
    assert {row["method"] for row in rows if row["level"] == "True"} == set(said["level"])
    assert f"\\textbf{{{said['leader']}}} &" in (desk / "t.tex").read_text()
    assert f"| **{said['leader']}**" in (desk / "t.md").read_text().replace(" *(naive)*", "")
    page = (desk / "results" / "compare.html").read_text()
    assert f"<b><bdi>{said['leader']}</bdi></b>" in page[page.index('class="lead"') :].partition("</p>")[0]
    top = page[page.index('<tr class="top') :].partition("</th>")[0]
    assert f"<bdi>{said['leader']}</bdi>" in top
    return str(said["leader"])


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
