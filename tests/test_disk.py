"""A disk that refuses, at every call of everything that writes: a message, nothing half there, and it goes on."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import killing
import writers
from partly import atomic_io
from partly.cli.export import export
from partly.cli.main import app
from partly.cli.options import DataOptions
from partly.cli.simulate import simulate
from partly.cli.train import train
from partly.comparison import results, runner
from partly.config import TrainConfig
from partly.errors import CheckpointError, DataError

MOST, SLOW = 12, 4  # calls of one job that are tried, of more some; and of one that draws a report
NAMES = ("train:bce", "train:role", "compare", "refine", "features", "query", "predict", "simulate", "card", "report")


class Disk:
    """Counts what is opened to be written, written, forced to disk and renamed, and fails at one of these calls."""

    def __init__(self, patch: pytest.MonkeyPatch, fail_at: int = 0) -> None:
        self.calls, self.fail_at = 0, fail_at
        for name in ("fsync", "replace"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        for module in (atomic_io, results):
            patch.setattr(module, "open", self._opened, raising=False)

    def count(self) -> None:
        self.calls += 1
        if self.calls == self.fail_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any) -> Any:
            self.count()
            return call(*given)

        return counting

    def _opened(self, path: Path, mode: str, **how: Any) -> Any:
        if mode != "xb":
            if mode != "rb":
                self.count()
            return open(path, mode, **how)
        self.count()
        count = self.count

        class Halfway(io.FileIO):
            def write(self, content: Any) -> int:
                super().write(content[: len(content) // 2])
                count()
                return super().write(content[len(content) // 2 :])

        return Halfway(path, mode)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, killing.Job]:
    where = tmp_path_factory.mktemp("given")
    every = {job.name: job for job in killing.jobs(where)}

    def one_file(name: str, work: Callable[[Path], Any]) -> None:
        def left(folder: Path) -> str:
            return (folder / "out").with_suffix(".csv").read_text() if (folder / "out.csv").exists() else ""

        every[name] = killing.Job(name, lambda folder: (folder.mkdir(exist_ok=True), work(folder / "out.csv")), left)

    one_file("simulate", lambda out: simulate(str(where / "truth.csv"), "uniform:0.5", out))
    one_file("card", lambda out: export(where / "model", None, out, overwrite=True))
    config = TrainConfig("bce", "linear", epochs=1, device="cpu", progress=False)
    reading = DataOptions(where / "known.csv")

    def reported(folder: Path) -> None:
        train(str(where / "x.csv"), folder, config, reading, hold_out=0.2, say=lambda _: None)

    def left(folder: Path) -> str:
        return killing.model_left(folder) + str((folder / "report.html").exists())

    return every | {"report": killing.Job("report", reported, left)}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in this process."""

    def finished(todo: list[Any], experiment: Any, execute: Any) -> Iterator[results.Record]:
        return (runner._work(cell, runner._how(experiment)) for cell in todo)

    monkeypatch.setattr(runner, "_run_cells", finished)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", NAMES)
def test_a_disk_that_refuses_at_any_call(
    jobs: dict[str, killing.Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    job = jobs[name]
    with monkeypatch.context() as patch:
        disk = Disk(patch)
        job.work(tmp_path / "unharmed")
    unharmed = job.left(tmp_path / "unharmed")
    assert unharmed
    assert disk.calls >= 4
    most = SLOW if name == "report" else MOST
    places = sorted({round(1 + i * (disk.calls - 1) / (most - 1)) for i in range(most)})
    for place in places:
        folder = tmp_path / f"call {place}"
        with monkeypatch.context() as patch:
            Disk(patch, place)
            with pytest.raises((CheckpointError, DataError), match="No space left on device") as caught:
                job.work(folder)
        assert str(folder) in str(caught.value)
        assert not list(folder.rglob(f".*{atomic_io.TEMPORARY_SUFFIX}")), place
        assert job.left(folder) is not None  # readable
        job.work(folder)
        assert job.left(folder) == unharmed, place


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_disk_that_refuses_below_python() -> None:
    """Some of what `refusing.py` does at every call: of databases, which write by themselves, Parquet and a folder."""
    names = "ledger init,ledger import,vocabulary merge,annotate,complete:ledger,predict:parquet,convert:voc"
    script = Path(__file__).with_name("refusing.py")
    command = [sys.executable, script, "--only", names, "--every", "9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["faults"] >= 60  # after the tables that commands print


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[killing.Job]]:
    """Data, models and a ledger, and all that can be done with them."""
    where = tmp_path_factory.mktemp("all")
    return where, writers.jobs(where)


def commands(group: Any, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} ")
        elif not command.hidden:
            yield before + name


def test_no_command_is_forgotten(given: tuple[Path, list[killing.Job]]) -> None:
    """Every command that there is either only reads, or is refused the disk by `refusing.py`."""
    where, jobs = given
    writing = {job.name.partition(":")[0] for job in jobs}
    reading = set(writers.reading(where))
    assert not writing & reading
    reading.add("teach")  # it writes as `predict` does, and its encoder takes too long for hundreds of faults
    assert writing | reading == set(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", sorted(writers.reading(Path())))
def test_commands_that_only_read(
    given: tuple[Path, list[killing.Job]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    where, _ = given
    monkeypatch.chdir(tmp_path)
    before = writers.all_files(where)
    done = CliRunner().invoke(app, [*name.split(), *writers.reading(where)[name]], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert writers.all_files(where) == before
    assert not list(tmp_path.iterdir())
