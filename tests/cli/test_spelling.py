"""Other spellings of options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import partly
from partly.cli import main
from partly.cli.spelling import respell
from partly.errors import SettingError

KNOWN = ["--labels", "--method", "--run", "--dtype", "--seed", "--label-columns", "--missing", "--mechanism"]


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        ("train", ["x.csv", "--methods", "em", "--label", "y"], ["x.csv", "--method", "em", "--labels", "y"]),
        ("train", ["--label-column=a", "--label_columns", "b"], ["--label-columns=a", "--label-columns", "b"]),
        ("train", ["--out", "r", "--run", "s"], ["--run", "r", "--run", "s"]),
        ("evaluate", ["--out", "r"], ["--out", "r"]),
        ("train", ["--", "--methods"], ["--", "--methods"]),
        ("train", ["--unheard-of", "-n", "3"], ["--unheard-of", "-n", "3"]),
        ("complete", ["--missing", "-", "--missing=x"], ["--missing", "-", "--missing=x"]),
    ],
)
def test_spellings_that_mean_the_same(command: str, given: list[str], expected: list[str]) -> None:
    assert respell(command, KNOWN, given) == (expected, [])


def test_old_names_work_and_warn() -> None:
    words, told = respell("train", KNOWN, ["--precision", "float32"])
    assert words == ["--dtype", "float32"]
    assert "--dtype" in told[0]
    for given in (["--missing", "at-random"], ["--missing=at-random"]):
        words, told = respell("complete", KNOWN, given)
        assert words[0].startswith("--mechanism")
        assert "--mechanism" in told[0]


def test_a_seed_is_not_a_number_of_seeds() -> None:
    with pytest.raises(SettingError, match="has no --seeds: --seed N is the seed"):
        respell("train", ["--seed"], ["--seeds", "3"])
    with pytest.raises(SettingError, match="has no --seed: --seeds N runs"):
        respell("compare", ["--seeds"], ["--seed", "3"])


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,x,cat\n" + "".join(f"i{k},{k % 7},{k % 2}\n" for k in range(20)))
    words = [
        "train",
        str(tmp_path / "a.csv"),
        "--label-column",
        "cat",
        "--methods",
        "bce",
        "--out",
        str(tmp_path / "r"),
    ]
    done = CliRunner().invoke(main.app, [*words, "--precision", "float32"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "Warning: --precision of `partly train` is now --dtype" in done.stderr
    assert (tmp_path / "r" / "run.json").exists()


def test_dtype_in_python(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    y = (x > 0).astype(float)
    model = partly.Classifier("bce", head="linear", progress=False, dtype="float32").fit(x, y)
    assert model.fitted_.config.dtype == "float32"
    model.save(tmp_path / "m")
    assert partly.Classifier.load(tmp_path / "m").dtype == "float32"
    old = partly.Classifier("bce", head="linear", progress=False, precision="float32")
    with pytest.warns(FutureWarning, match="precision is called dtype"):
        assert old.fit(x, y).fitted_.config.dtype == "float32"


def test_warnings_are_lines_without_source() -> None:
    code = (
        "import sys, warnings; sys.argv = ['partly', '--version']\n"
        "from partly.cli import main as cli\n"
        "from unittest import mock\n"
        "warned = lambda: warnings.warn('bad files: 1\\n  a.png', stacklevel=1)\n"
        "with mock.patch.object(cli, 'app', warned): cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "Warning: bad files: 1\n  a.png\n"
