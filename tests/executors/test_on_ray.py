"""The same on Ray as here: cells, features and scores, to the bit; a killed worker changes nothing. One Ray for all."""

from __future__ import annotations

import builtins
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from comparison.making import write_split
from partly import data, engine, executors
from partly.cli.predict import parquet_files, predict_files
from partly.comparison import compare, results
from partly.errors import PartlyError, SettingError
from partly.executors import on_ray
from partly.items import as_items
from partly.labels import Labels
from plans import fit_config

# Ray Data warns of what it does itself, among threads that outlive their dataset.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.*", "ignore::ResourceWarning")
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Ray as somebody runs it who has it running already."""
    pytest.importorskip("ray", reason="an extra: partly[ray]")
    found = on_ray._import()
    with on_ray._session(found, None, 2):
        yield found


def doing() -> list[int]:
    """The processes below this one in which Ray has something done."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error, IndexError):
            if "Map(_run_job)" in process.cmdline()[0]:
                found.append(process.pid)
    return found


def whole(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if name not in results.TIMING} for line in found]


def test_a_comparison_of_which_a_worker_is_killed(ray: Any, tmp_path: Path) -> None:
    file = write_split(tmp_path / "tiny.npz")
    recipe = {"epochs": 40, "start": "random"}
    asked: dict[str, Any] = {"heads": ["linear"], "seeds": 2, "recipe": recipe, "progress": False}
    killed: list[int] = []

    def kill() -> None:
        until = time.monotonic() + 300
        while not killed and time.monotonic() < until:
            for process in doing():
                time.sleep(0.2)  # in the middle of it
                os.kill(process, signal.SIGKILL)
                killed.append(process)
                return

    killer = threading.Thread(target=kill)
    killer.start()
    there = compare(file, ["cls"], ["uniform:0.5"], **asked, out=tmp_path / "ray", on="ray", workers=2)
    killer.join()
    here = compare(file, ["cls"], ["uniform:0.5"], **asked, out=tmp_path / "here", workers=2)
    assert killed
    assert whole(there) == whole(here)
    assert (
        len({results.key_of(line) for line in there}) == len(there) == len(results.read(tmp_path / "ray/compare.jsonl"))
    )


def test_features(ray: Any, tmp_path: Path) -> None:
    pictures = as_items(RNG.integers(0, 255, (300, 16, 16, 3), np.uint8))
    ids = [str(i) for i in range(300)]
    engine.make_features(pictures, ids, tmp_path / "here", "small-conv")
    engine.make_features(pictures, ids, tmp_path / "ray", "small-conv", results=executors.get_executor("ray"))
    for name in ("features.npy", "features.npy.sha256"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes()


def test_scores_of_a_folder_of_files(ray: Any, tmp_path: Path) -> None:
    x = RNG.normal(size=(90, 4)).astype(np.float32)
    fit_config(
        engine.make_config("bce", "mlp", epochs=1), as_items(x), Labels.from_full(x[:, :3] > 0), folder=tmp_path / "run"
    )
    (tmp_path / "items").mkdir()
    for number in range(3):
        rows = range(30 * number, 30 * number + 30)
        file = tmp_path / "items" / f"part-{number}.parquet"
        data.write_scores(file, x[rows], map(str, rows), ["0", "1", "2", "3"])
    files = parquet_files(str(tmp_path / "items"))
    there = executors.get_executor("ray")
    assert predict_files(tmp_path / "run", files, tmp_path / "ray", there) == 3
    expected = engine.load(tmp_path / "run").predict(as_items(x))
    found = [data.read_scores(tmp_path / "ray" / file.name) for file in files]
    assert [id for part in found for id in part.ids] == list(map(str, range(90)))
    assert (np.concatenate([part.values for part in found]) == expected).all()
    (tmp_path / "ray" / files[1].name).unlink()
    assert predict_files(tmp_path / "run", files, tmp_path / "ray", there) == 1  # those that are there are left


def test_a_job_that_dies_again_and_again(ray: Any, tmp_path: Path) -> None:
    def unlucky(job: str) -> str:
        """Dies as often as there are files for it to take away, then does it."""
        if job == "wrong":
            raise ArithmeticError("unlucky")
        if job == "folder":
            return os.getcwd()
        for file in Path(job).iterdir():
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return "done"

    for name, deaths in (("few", on_ray.RETRIES), ("many", on_ray.RETRIES + 1)):
        (tmp_path / name).mkdir()
        for number in range(deaths):
            (tmp_path / name / str(number)).touch()
    found = dict(on_ray.results([str(tmp_path / "few"), str(tmp_path / "many"), "folder"], unlucky))
    assert found[str(tmp_path / "few")] == "done"
    assert found[str(tmp_path / "many")] == executors.Died("its process ended 4 times")
    assert found["folder"] == os.getcwd()
    with pytest.raises(ArithmeticError, match="unlucky"):
        list(on_ray.results(["wrong"], unlucky))
    assert ray.is_initialized()  # the caller's own stays


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "ray":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SettingError, match=r'pip install "partly\[ray\]"'):
        list(on_ray.results([1], abs))


@pytest.mark.parametrize(
    ("on", "address", "words"),
    [("mars", None, "'here' or 'ray'"), ("here", "10.0.0.1:6379", "on='ray'")],
)
def test_what_cannot_be_meant(on: str, address: str | None, words: str) -> None:
    with pytest.raises(PartlyError, match=words):
        executors.get_executor(on, address)
