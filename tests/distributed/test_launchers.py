"""The launchers that people use, for real."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from partly import engine

TRAIN = ("train", "digits", "--scenario", "uniform:0.3", "--method", "em", "--head", "linear", "--epochs", "1")


def started(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=300)


def test_torchrun(tmp_path: Path) -> None:
    """`--` before partly, or torchrun takes --run for an option of its own."""
    launcher = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--")
    ended = started(*launcher, "partly", *TRAIN, "--run", str(tmp_path / "run"))
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("Report: ") == ended.stdout.count("mAP") == 1  # one of them speaks
    assert (tmp_path / "run" / "report.html").exists()
    assert engine.load(tmp_path / "run").config.method == "em"


def test_accelerate_and_what_is_refused() -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    launcher = ("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0", "-m")
    ended = started(*launcher, "partly", "methods")
    assert ended.returncode != 0
    assert "Only `partly train` supports several processes" in ended.stderr
