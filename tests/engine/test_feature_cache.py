"""Features made once: those of the backbone by hand, the same after a kill, and never those of something else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from images.making import encoded, noise, some_pictures
from partly import atomic_io, networks
from partly.clock import seed_for
from partly.data import read
from partly.engine import feature_cache, make_features
from partly.errors import CheckpointError, DataError, SettingError
from partly.items import features, texts
from partly.networks.backbones import Backbone
from partly.networks.lazy_features import LazyFeatures

SETTINGS = {"widths": [4, 6]}


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return some_pictures(tmp_path / "pictures", 7)


def made(pictures: Path, out: Path, **how: object) -> np.ndarray:
    data = read(pictures, size=16)
    make_features(data.items, data.labels.ids, out, "small-conv", SETTINGS, **how)  # type: ignore[arg-type]
    return np.load(out / "features.npy")


def test_they_are_what_the_backbone_makes(pictures: Path, tmp_path: Path) -> None:
    items = read(pictures, size=16).items
    torch.manual_seed(seed_for("features", "small-conv"))
    body, width = networks.build_body(items, "small-conv", SETTINGS)
    expected = body.eval()(items.take(slice(None))).detach().numpy()
    found = made(pictures, tmp_path / "out")
    np.testing.assert_array_equal(found, expected)
    data = read(tmp_path / "out")
    assert data.labels.ids == read(pictures).labels.ids
    assert data.items.kind == "features"
    assert data.items.shape == (width,) == (12,)
    np.testing.assert_array_equal(data.items.take(slice(None)).numpy(), expected)
    assert data.items.digest() == atomic_io.sha256_of(tmp_path / "out" / "features.npy")


def test_the_callers_random_numbers_are_left_alone(pictures: Path, tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    made(pictures, tmp_path / "out")
    assert torch.equal(torch.rand(3), expected)


def test_what_is_done_is_not_done_again(pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = made(pictures, tmp_path / "out")
    monkeypatch.setattr(feature_cache, "_compute", None)
    np.testing.assert_array_equal(made(pictures, tmp_path / "out"), expected)


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_it_goes_on_where_it_was_stopped(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(Backbone, "chunk_size", 2)
    expected = made(pictures, tmp_path / "whole")
    saves, save = [], feature_cache._save

    def stopped(folder: Path, array: np.ndarray, count: int) -> None:
        if len(saves) == after:
            raise KeyboardInterrupt
        saves.append(count)
        save(folder, array, count)

    monkeypatch.setattr(feature_cache, "_save", stopped)
    with pytest.raises(KeyboardInterrupt):
        made(pictures, tmp_path / "out", save_seconds=0)
    with pytest.raises(DataError, match=f"only {2 * after} of 7 items have features. Run the same"):
        read(tmp_path / "out")
    monkeypatch.setattr(feature_cache, "_save", save)
    asked = []
    stream = LazyFeatures.stream
    monkeypatch.setattr(LazyFeatures, "stream", lambda self, parts: asked.extend(parts) or stream(self, parts))
    np.testing.assert_array_equal(made(pictures, tmp_path / "out"), expected)
    assert asked[0].start == 2 * after


def test_a_kill_loses_nothing_that_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = some_pictures(tmp_path / "pictures", 60)
    program = f"""
from pathlib import Path
import time
from partly.data import read
from partly.networks.backbones import Backbone
from partly.engine import feature_cache
Backbone.chunk_size = 4
save, saved = feature_cache._save, []
def waiting(*what):
    save(*what)
    saved.append(what)
    if len(saved) > 3:
        time.sleep(600)  # until it is killed, however busy the machine is
feature_cache._save = waiting
data = read({str(folder)!r}, size=16)
feature_cache.make_features(data.items, data.labels.ids, Path({str(tmp_path / "out")!r}), save_seconds=0)
"""
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", program])
        before = _done(tmp_path / "out")
        while process.poll() is None and _done(tmp_path / "out") < before + 12:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert 24 <= _done(tmp_path / "out") < 60
    monkeypatch.setattr(Backbone, "chunk_size", 4)
    data = read(folder, size=16)
    for name in ("out", "whole"):
        make_features(data.items, data.labels.ids, tmp_path / name)
    assert (tmp_path / "out" / "features.npy").read_bytes() == (tmp_path / "whole" / "features.npy").read_bytes()


def _done(folder: Path) -> int:
    path = folder / "done.json"
    return json.loads(path.read_text())["done"] if path.exists() else 0


def test_other_pictures_backbones_and_sizes_are_refused(pictures: Path, tmp_path: Path) -> None:
    made(pictures, tmp_path / "out")
    data = read(pictures, size=16)
    with pytest.raises(CheckpointError, match=r"settings: .*\[4, 6\].* there"):
        make_features(data.items, data.labels.ids, tmp_path / "out", "small-conv")
    with pytest.raises(CheckpointError, match=r"shape: \[3, 16, 16\] there, \[3, 20, 20\] now"):
        make_features(data.items.resize(20), data.labels.ids, tmp_path / "out", "small-conv", SETTINGS)
    (pictures / "p0.png").write_bytes(encoded(noise(40, 50, 99)))
    os.utime(pictures / "p0.png", ns=(10**18, 10**18))
    with pytest.raises(CheckpointError, match=r"(?s)weights: .*data_sha256: "):
        made(pictures, tmp_path / "out")


def test_other_folders_are_left_alone(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(CheckpointError, match=r"not empty \(thesis.txt\)"):
        made(pictures, tmp_path / "mine")


def test_features_are_features_already(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="features already"):
        make_features(features(np.eye(3)), ["a", "b", "c"], tmp_path / "out")


def test_texts_have_features_too(tmp_path: Path) -> None:
    assert make_features(texts(["a b", "c"]), ["x", "y"], tmp_path / "out", "hashed-words", {"width": 5}) == (2, 5)
    found = read(tmp_path / "out").items.take(slice(None))
    again = make_features(texts(["c", "a b"]), ["x", "y"], tmp_path / "other", "hashed-words", {"width": 5})
    assert again == (2, 5)
    assert torch.equal(found, read(tmp_path / "other").items.take(torch.tensor([1, 0])))


def test_a_kill_before_anything_is_made_is_in_nobodys_way(pictures: Path, tmp_path: Path) -> None:
    """Half a file, then what is made here without whose it is."""
    made(pictures, tmp_path / "unharmed")
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / f".features.json.1{atomic_io.TEMPORARY_SUFFIX}").write_text("{")
    made(pictures, begun)
    assert not list(atomic_io.leftovers(begun))
    for name in ("ids.json", "features.npy", "features.npy.sha256", "done.json"):
        (begun / name).unlink(missing_ok=True)
    made(pictures, begun)
    assert (begun / "ids.json").read_bytes() == (tmp_path / "unharmed" / "ids.json").read_bytes()
