"""A network on pictures that was stopped goes on to the bits of one that was not: its weights lie channels last."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from partly import Labels, run
from partly.clock import Clock
from partly.items import as_items

RECIPE = run.Recipe("bce", "linear", epochs=2, batch_size=8, backbone="small-conv")


class Stopping(Exception):
    pass


@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_stopped_run_on_pictures_ends_with_the_same_bits(tmp_path: Path, at: int) -> None:
    rng = np.random.default_rng(0)
    pictures = as_items(rng.integers(0, 256, (24, 16, 16, 3), dtype=np.uint8))
    labels = Labels.from_full(rng.integers(0, 2, (24, 3)))
    whole = run.fit(RECIPE, pictures, labels)

    def watch(clock: Clock, logs: object) -> None:
        if clock.epoch * 3 + clock.step == at:
            raise Stopping

    with pytest.raises(Stopping):
        run.fit(RECIPE, pictures, labels, folder=tmp_path, save_seconds=0, watch=watch)
    again = run.fit(RECIPE, pictures, labels, folder=tmp_path, save_seconds=0)
    weights = whole.method.weights()
    assert all(torch.equal(weights[name], value) for name, value in again.method.weights().items())
