"""A network on pictures that was stopped goes on to the bits of one that was not: its weights lie channels last. So
does one that was killed over pictures in files, while other processes were decoding for it.

Run as a program, this file is a parent that imports once and forks trainers, as `test_kill.py` is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from images.making import encoded, folder_of, noise
from partly import Labels, engine, read
from partly.clock import Clock
from partly.images.augmentation import Augmentation
from partly.items import as_items
from plans import fit_config

RECIPE = engine.make_config("bce", "linear", epochs=2, batch_size=8, backbone="small-conv")


class Stopping(Exception):
    pass


@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_stopped_run_on_pictures_ends_with_the_same_bits(tmp_path: Path, at: int) -> None:
    rng = np.random.default_rng(0)
    pictures = as_items(rng.integers(0, 256, (24, 16, 16, 3), dtype=np.uint8))
    labels = Labels.from_full(rng.integers(0, 2, (24, 3)))
    whole = fit_config(RECIPE, pictures, labels)

    def watch(clock: Clock, logs: object) -> None:
        if clock.epoch * 3 + clock.step == at:
            raise Stopping

    with pytest.raises(Stopping):
        fit_config(RECIPE, pictures, labels, folder=tmp_path, save_seconds=0, callback=watch)
    again = fit_config(RECIPE, pictures, labels, folder=tmp_path, save_seconds=0)
    weights = whole.method.weights()
    assert all(torch.equal(weights[name], value) for name, value in again.method.weights().items())


def test_a_run_killed_while_others_decode_ends_with_the_same_bits(tmp_path: Path) -> None:
    folder_of(tmp_path / "pictures", {f"{i}.png": encoded(noise(20 + i, 30, i)) for i in range(24)})
    own = os.environ | {"PARTLY_WORKERS": "2"}
    done = subprocess.run([sys.executable, __file__, str(tmp_path)], capture_output=True, text=True, env=own)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["kills"] == len(KILLS)
    assert seen["killed"] == seen["unbroken"]


# -------------------------------------------------------------------- the parent

KILLS = ((1, 0.0), (3, 0.004), (5, 0.01))  # after a step, and seconds later: between steps and within


def forked(folder: Path, run_name: str, kill: tuple[int, float] | None = None) -> int:
    """Exit code of a trainer that saves at every step, and perhaps kills itself."""
    child = os.fork()
    if not child:
        try:
            train(folder, run_name, kill)
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def train(folder: Path, run_name: str, kill: tuple[int, float] | None) -> None:
    rng = np.random.default_rng(0)
    items = read(folder / "pictures", size=16).items
    labels = Labels.from_full(rng.integers(0, 2, (24, 3)))

    def watch(clock: Clock, logs: object) -> None:
        if kill is not None and clock.epoch * 3 + clock.step == kill[0]:
            threading.Timer(kill[1], os.kill, (os.getpid(), signal.SIGKILL)).start()

    recipe = replace(RECIPE, augment=asdict(Augmentation()))
    fit_config(recipe, items, labels, folder=folder / run_name, save_seconds=0, callback=watch)


def result(folder: Path) -> str:
    digests = {name: engine.digest(tensor) for name, tensor in engine.load(folder).method.weights().items()}
    return json.dumps(digests, sort_keys=True)


if __name__ == "__main__":
    torch.set_num_threads(1)  # threads do not survive a fork
    where = Path(sys.argv[1])
    kills = [forked(where, "killed", kill) for kill in KILLS].count(-signal.SIGKILL)
    codes = forked(where, "killed"), forked(where, "unbroken")
    assert codes == (0, 0), codes
    print(json.dumps({"kills": kills, "killed": result(where / "killed"), "unbroken": result(where / "unbroken")}))
