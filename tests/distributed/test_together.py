"""Several processes train one model as one process would, for real: with gloo, on this machine."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from distributed.conftest import Launch
from images.making import some_pictures

Made = dict[str, npt.NDArray[Any]]
MLP: dict[str, Any] = {"head": "mlp", "head_settings": {"hidden": 16}}  # with its dropout of one half
PIXELS: dict[str, Any] = {"pixels": True, "recipe": {"backbone": "small-conv", "optimizer": "sgd"}}

JOBS: dict[str, dict[str, Any]] = {
    # Loss only; `bce` with a solved path beside the network, `em` without.
    "bce": {"recipe": {"method": "bce", **MLP}},
    "em": {"recipe": {"method": "em", **MLP}},
    "steps": {"recipe": {"method": "bce", "head": "linear", "head_settings": {"solve": False}}},
    "gnn": {"recipe": {"method": "em", "head": "gnn", "optimizer": "sgd"}},
    # State for each entry.
    "em-apl": {"recipe": {"method": "em-apl", **MLP}},
    "role": {"recipe": {"method": "role", **MLP}},
    "refine": {"recipe": {"method": "refine", **MLP}},
    "curriculum": {"recipe": {"method": "curriculum", **MLP, "settings": {"strategy": "proportion"}}},
    "bayesian": {"recipe": {"method": "curriculum", **MLP}},
    # A choice within the batch; two networks; weights that are outside of networks.
    "large-loss": {"recipe": {"method": "large-loss", **MLP, "settings": {"scheme": "correct-permanently"}}},
    "cls": {"recipe": {"method": "cls", **MLP}},
    "imcl": {"recipe": {"method": "imcl", **MLP}},
    "cnn-rnn": {"recipe": {"method": "cnn-rnn", **MLP, "optimizer": "sgd"}},
    # Batch normalization over all processes.
    "pixels": {**PIXELS, "recipe": {**PIXELS["recipe"], "method": "em", "head": "linear"}},
    "pixels-mlp": {**PIXELS, "recipe": {**PIXELS["recipe"], "method": "em-apl", **MLP}},
}
BY_THREE = ("bce", "em-apl", "large-loss", "cls", "pixels")  # the last batch then leaves two of them without an item


def read(path: Path) -> Made:
    with np.load(path) as file:
        return dict(file)


def assert_close(one: Made, other: Made, tolerance: float) -> None:
    """Each array, as a share of its largest number."""
    assert one.keys() == other.keys()
    for name, expected in one.items():
        apart = float(np.abs(expected.astype(float) - other[name]).max(initial=0.0))
        assert apart <= tolerance * max(1e-3, float(np.abs(expected).max(initial=0.0))), (name, apart)


@pytest.fixture(scope="module")
def made(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Made]:
    """What 1 and 2 processes make of each job, and 3 of some."""
    folder, found = tmp_path_factory.mktemp("made"), {}
    for count in (1, 2, 3):
        names = JOBS if count < 3 else BY_THREE
        jobs = [{**JOBS[name], "out": str(folder / f"{name}-{count}.npz")} for name in names]
        ended = launch(count, *jobs)
        assert [one["code"] for one in ended] == [0] * count, ended
        assert all(one["said"] == ended[0]["said"] for one in ended), "the processes do not say the same"
        found |= {(name, count): read(folder / f"{name}-{count}.npz") for name in names}
    return found


@pytest.mark.parametrize(("name", "count"), [*((name, 2) for name in JOBS), *((name, 3) for name in BY_THREE)])
def test_the_result_is_that_of_one_process(made: dict[tuple[str, int], Made], name: str, count: int) -> None:
    assert_close(made[name, 1], made[name, count], 1e-4 if name.startswith("pixels") else 1e-5)


def test_the_jobs_differ(made: dict[tuple[str, int], Made]) -> None:
    """So that what is the same above is so for a reason."""
    with pytest.raises(AssertionError):
        assert_close(made["bce", 1], made["em", 1], 1e-2)


# -------------------------------------------------------------------- stop and go on


LONG: dict[str, Any] = {"recipe": {"method": "em-apl", **MLP, "epochs": 4}}


def test_a_checkpoint_of_some_goes_on_with_others(launch: Launch, tmp_path: Path) -> None:
    """Asked to stop, one process alone, in the 6th step, all stop there; then 3 go on, then 1, each from the last."""
    whole, parts = str(tmp_path / "whole.npz"), str(tmp_path / "parts.npz")
    assert launch(1, {**LONG, "out": whole})[0]["code"] == 0
    job = {**LONG, "folder": str(tmp_path / "run"), "out": parts}
    first = launch(2, {**job, "signals": [(signal.SIGTERM, 1, 6)]})
    assert [(one["said"][0]["error"], one["said"][0]["steps"]) for one in first] == [("Stopped", 6)] * 2
    second = launch(3, {**job, "signals": [(signal.SIGINT, 0, 11)]})
    assert [(one["said"][0]["error"], one["said"][0]["steps"]) for one in second] == [("Stopped", 11)] * 3
    assert [one["code"] for one in launch(1, job)] == [0]
    assert_close(read(Path(whole)), read(Path(parts)), 1e-5)
    # What is finished is finished, for any number of processes.
    assert [one["said"][0]["steps"] for one in launch(2, job)] == [0, 0]


@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_the_run(launch: Launch, tmp_path: Path, killed: int) -> None:
    """The others notice at once, say so and fail; from what was saved the run goes on to the same end."""
    whole, parts = str(tmp_path / "whole.npz"), str(tmp_path / "parts.npz")
    assert launch(1, {**LONG, "out": whole})[0]["code"] == 0
    job = {**LONG, "folder": str(tmp_path / "run"), "out": parts, "save_seconds": 0.0}
    ended = launch(3, {**job, "signals": [(signal.SIGKILL, killed, 10)]})
    assert ended.pop(killed)["code"] == -signal.SIGKILL
    for one in ended:
        assert (one["code"], one["said"][0]["error"]) == (1, "Lost")
        assert "another process of this run has ended" in one["said"][0]["words"]
        assert "start the run again" in one["said"][0]["words"]
    again = launch(2, job)
    assert [one["code"] for one in again] == [0, 0]
    assert again[0]["said"][0]["steps"] <= 4 * 8 - 9  # at least nine were saved
    assert_close(read(Path(whole)), read(Path(parts)), 1e-5)


# -------------------------------------------------------------------- pictures in files


def test_pictures_in_files(launch: Launch, tmp_path: Path) -> None:
    """Decoded and augmented in processes of each process's own."""
    some_pictures(tmp_path / "pictures", 24)
    rows = [f"p{i}.{'jpg' if i % 2 else 'png'},{i % 2},{'' if i % 3 else (i + 1) % 2}" for i in range(24)]
    (tmp_path / "labels.csv").write_text("\n".join(["item,a,b", *rows]))
    recipe = {"method": "em", "head": "linear", "backbone": "small-conv", "optimizer": "sgd", "epochs": 2}
    augment = {"crop": 0.5, "flip": 0.5, "colour": 0.2}
    job = {"pictures": str(tmp_path), "recipe": {**recipe, "augment": augment}}
    for count in (1, 2):
        ended = launch(count, {**job, "out": str(tmp_path / f"{count}.npz")})
        assert [one["code"] for one in ended] == [0] * count, ended
    assert_close(read(tmp_path / "1.npz"), read(tmp_path / "2.npz"), 1e-4)


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"recipe": {"method": "auto", "head": "kernel"}}, "auto with the head kernel is solved at once"),
        ({"recipe": {"method": "bce", "head": "linear"}}, "bce with the head linear is solved at once"),
        ({"recipe": {"method": "em"}, "seeds": True}, "recipe.seed"),
    ],
    ids=["auto", "solved", "seeds"],
)
def test_what_cannot_be_done_is_refused_in_all(launch: Launch, job: dict[str, Any], words: str) -> None:
    for one in launch(2, job):
        assert one["code"] == 1
        assert words in one["said"][0]["words"]
