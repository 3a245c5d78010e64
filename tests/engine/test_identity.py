"""A run folder holds one run: what belongs to another one, or lies behind a link, is neither taken nor written."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from partly import Classifier, PerLabel, active, atomic_io, engine
from partly.clock import Clock
from partly.comparison import results
from partly.comparison.plan import Experiment
from partly.engine import checkpoint
from partly.errors import CheckpointError, DataError, SettingError
from partly.items import as_items
from partly.labels import Labels
from plans import fit_config

RECIPE = engine.make_config("bce", "linear", epochs=2, batch_size=8, head_settings={"solve": False})
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(24, 4)).astype(np.float32), RNG.choice([1.0, 0.0, np.nan], size=(24, 3))


def fit(folder: Path, recipe: engine.ResolvedConfig = RECIPE, **more: Any) -> engine.FittedModel:
    return fit_config(recipe, as_items(X), Labels.from_nan(Y), folder=folder, **more)


# ---------------------------------------------------------------- which run it is


def test_every_checkpoint_says_of_which_run_it_is(tmp_path: Path) -> None:
    fit(tmp_path)
    digest = atomic_io.sha256((tmp_path / "run.json").read_bytes())
    found = checkpoint.load(tmp_path)
    assert found is not None
    assert found[1]["run"] == digest == checkpoint.run_of(tmp_path)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    """Whole, of the same shapes, and not that of this folder."""
    one, other = tmp_path / "one", tmp_path / "other"
    fit(one)
    fit(other, replace(RECIPE, seed=1))
    for path in other.glob("checkpoint-*"):
        shutil.copy(path, one / path.name)
    with pytest.raises(CheckpointError, match=r"checkpoint-000002\.json belongs to another run than run\.json"):
        engine.load(one)
    before = {path.name: path.read_bytes() for path in one.iterdir()}
    with pytest.raises(CheckpointError, match="belongs to another run"):
        fit(one)
    assert {path.name: path.read_bytes() for path in one.iterdir()} == before


def test_one_foreign_checkpoint_is_passed_over(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    mine = fit(one)
    fit(other, replace(RECIPE, seed=1))
    for path in other.glob("checkpoint-000002.*"):
        shutil.copy(path, one / path.name)
    with pytest.warns(UserWarning, match="took an older copy"):
        loaded = engine.load(one)
    assert (loaded.predict(as_items(X)) == mine.predict(as_items(X))).all()


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("save_seconds", [0.0, 1000.0])
def test_a_folder_that_is_removed_under_way_gets_nothing_more(tmp_path: Path, again: bool, save_seconds: float) -> None:
    """And where another run has begun there, that one is left as it is, at every save and at the last."""
    folder, other = tmp_path / "run", replace(RECIPE, seed=1)

    def watch(clock: Clock, _: dict[str, float]) -> None:
        if clock.epoch == 1 and clock.step == 1:
            shutil.rmtree(folder)
            if again:
                fit(folder, other)

    with pytest.raises(CheckpointError, match="was removed or replaced while this run was under way"):
        fit(folder, callback=watch, save_seconds=save_seconds)
    if again:
        assert engine.load(folder).config == other
    else:
        assert not folder.exists()


def test_the_same_run_begun_anew_in_its_place_is_another_one(tmp_path: Path) -> None:
    """run.json may be the same to the byte: the lock is another file."""
    folder = tmp_path / "run"

    def watch(clock: Clock, _: dict[str, float]) -> None:
        if clock.epoch == 1 and clock.step == 1:
            text = (folder / "run.json").read_bytes()
            (tmp_path / "held").hardlink_to(folder / ".lock")  # so that its inode is not given to the next file
            shutil.rmtree(folder)
            folder.mkdir()
            (folder / "run.json").write_bytes(text)
            (folder / ".lock").touch()

    with pytest.raises(CheckpointError, match="removed or replaced"):
        fit(folder, callback=watch)
    assert sorted(os.listdir(folder)) == [".lock", "run.json"]


def test_a_loop_writes_nothing_into_a_folder_that_was_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "loop"
    model = Classifier("bce", head="linear", epochs=1, progress=False)
    loop = active.Loop(model, X, Y, folder, active.LoopConfig("random", questions=2))
    loop.ask()
    shutil.rmtree(folder)
    active.Loop(Classifier("bce", head="linear", epochs=2, progress=False), X, Y, folder, active.LoopConfig("random"))
    before = sorted(os.listdir(folder))
    with pytest.raises((CheckpointError, ValueError)):
        loop.answer([True, None])
    with pytest.raises(CheckpointError, match="removed or replaced"), loop._lock_folder():
        pass
    assert sorted(os.listdir(folder)) == before


def test_a_label_of_another_run_is_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, strength in ((one, 1.0), (other, 10.0)):
        PerLabel(LogisticRegression(C=strength), run_dir=folder, progress=False).fit(X, Y)
    for path in other.glob("label-00001.*"):
        shutil.copy(path, one / path.name)
    with pytest.raises(CheckpointError, match=r"label-00001\.skops: belongs to another run"):
        PerLabel.load(one)


def test_scores_of_another_run_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, seed in ((one, 0), (other, 1)):
        fit(folder, engine.make_config("bce", "linear", seed=seed))  # solved, with scores out of fold
    for path in other.glob("out_of_fold.*"):
        shutil.copy(path, one / path.name)
    with pytest.raises(CheckpointError, match=r"out_of_fold\.npy: belongs to another run"):
        engine.load(one).out_of_fold  # noqa: B018


# ---------------------------------------------------------------- planted links


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_bytes(b"mine")
    return path


def test_nothing_is_written_through_a_link_under_a_first_name(
    tmp_path: Path, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should somebody guess it: names are drawn by chance."""
    folder = tmp_path / "run"
    folder.mkdir()
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    (folder / f".run.json.guessed{atomic_io.TEMPORARY_SUFFIX}").symlink_to(precious)
    with pytest.raises(CheckpointError, match="cannot write"):
        atomic_io.write_json(folder / "run.json", {})
    assert precious.read_bytes() == b"mine"


def test_first_names_are_drawn_by_chance(tmp_path: Path) -> None:
    found = set()
    for _ in range(5):
        with atomic_io.atomic_write(tmp_path / "a"):
            found.update(path.name for path in atomic_io.leftovers(tmp_path))
    assert len(found) == 5


def test_a_link_under_the_last_name_is_replaced(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "run.json").symlink_to(precious)
    atomic_io.write_json(tmp_path / "run.json", {})
    assert precious.read_bytes() == b"mine"
    assert not (tmp_path / "run.json").is_symlink()


@pytest.mark.parametrize("there", [True, False])
def test_a_lock_that_is_a_link_is_refused(tmp_path: Path, there: bool) -> None:
    folder, target = tmp_path / "run", tmp_path / "target"
    folder.mkdir()
    if there:
        target.write_bytes(b"mine")
    (folder / ".lock").symlink_to(target)
    with pytest.raises(CheckpointError, match="cannot write"), atomic_io.locked(folder):
        pass
    assert target.exists() == there


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    for name in (".lock", "a.jsonl"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(CheckpointError, match="cannot write"):
        results.append(tmp_path / "a.jsonl", {})
    with pytest.raises(DataError, match="no plain file"):
        results.read(tmp_path / "a.jsonl")
    with pytest.raises(CheckpointError, match="cannot write"), atomic_io.locked(tmp_path):
        pass


def test_result_lines_are_not_written_through_a_link(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to(precious)
    with pytest.raises(CheckpointError, match="cannot write"):
        results.append(tmp_path / "a.jsonl", {"a": 1})
    assert precious.read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["../elsewhere", "/tmp/elsewhere", "a/b", "", ".", "a\0b", 3])
def test_the_name_of_an_experiment_leads_nowhere_else(name: Any) -> None:
    with pytest.raises(SettingError, match=r"must be a plain name, not empty and without /"):
        Experiment("digits", "bce", "full", name=name)
