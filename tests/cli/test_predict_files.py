"""Scores of a folder of Parquet files: one for each, of one model; what is there stays. Jobs run in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partly import data, engine
from partly.cli.predict import parquet_files, predict_files
from partly.errors import CheckpointError, DataError
from partly.executors import Died
from partly.items import as_items
from partly.labels import Labels
from plans import fit_config

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)


def here(jobs: Any, work: Callable[[Any], Any]) -> Iterator[tuple[Any, Any]]:
    return ((job, work(job)) for job in jobs)


@pytest.fixture
def where(tmp_path: Path) -> Path:
    for name, epochs in (("run", 1), ("other", 2)):
        fit_config(
            engine.make_config("em", "linear", epochs=epochs),
            as_items(X),
            Labels.from_full(X > 0),
            folder=tmp_path / name,
        )
    (tmp_path / "items").mkdir()
    for number in range(2):
        part = slice(10 * number, 10 * number + 10)
        ids = [str(i) for i in range(20)[part]]
        data.write_scores(tmp_path / "items" / f"{number}.parquet", X[part], ids, list("xyz"))
    return tmp_path


def files(where: Path) -> list[Path]:
    return parquet_files(str(where / "items"))


def test_only_folders_of_nothing_else(where: Path) -> None:
    assert [path.name for path in files(where)] == ["0.parquet", "1.parquet"]
    assert parquet_files(str(where / "items" / "0.parquet")) == []
    assert parquet_files("scenes") == []
    (where / "items" / "labels.csv").touch()
    assert files(where) == []


def test_scores_are_those_of_the_model(where: Path) -> None:
    assert predict_files(where / "run", files(where), where / "out", here) == 2
    found = [data.read_scores(where / "out" / f"{i}.parquet") for i in range(2)]
    expected = engine.load(where / "run").predict(as_items(X))
    assert (np.concatenate([part.values for part in found]) == expected).all()
    assert [id for part in found for id in part.ids] == [str(i) for i in range(20)]


def test_what_is_there_is_left_unless_its_items_are_newer(where: Path) -> None:
    predict_files(where / "run", files(where), where / "out", here)
    assert predict_files(where / "run", files(where), where / "out", here) == 0
    os.utime(where / "items" / "1.parquet", ns=(2**62, 2**62))
    assert predict_files(where / "run", files(where), where / "out", here) == 1


def test_another_model_or_another_folder_is_refused(where: Path) -> None:
    predict_files(where / "run", files(where), where / "out", here, {"calls": False})
    for model, calls in (("other", False), ("run", True)):
        with pytest.raises(CheckpointError, match="another run, or of another kind"):
            predict_files(where / model, files(where), where / "out", here, {"calls": calls})
    (where / "mine").mkdir()
    (where / "mine" / "thesis.tex").touch()
    with pytest.raises(CheckpointError, match="is not empty"):
        predict_files(where / "run", files(where), where / "mine", here)


def test_files_that_cannot_be_scored_are_named_and_the_others_are_there(where: Path) -> None:
    (where / "items" / "2.parquet").write_bytes(b"PAR1 no")

    def one_dies(jobs: Any, work: Callable[[Any], Any]) -> Iterator[tuple[Any, Any]]:
        return ((job, Died("its process ended") if job.name == "0.parquet" else work(job)) for job in jobs)

    with pytest.raises(DataError, match="2 of 3 files could not be predicted") as caught:
        predict_files(where / "run", files(where), where / "out", one_dies)
    assert "0.parquet: its process ended" in str(caught.value)
    assert "2.parquet" in str(caught.value)
    assert (where / "out" / "1.parquet").exists()
