"""Features that a backbone makes of items, computed once into a folder that every command takes as data.

The folder says in `features.json` of which items, by which backbone and with which weights they are: with anything else
the same folder is refused. The matrix is written a block at a time, and how far it has come is written after it is on
the disk, so that after a kill the same call goes on.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from partly import files, networks
from partly.clock import seed_for
from partly.data.feature_folder import ARRAY, DIGEST, DONE, FORMAT, IDS, KEY, done
from partly.errors import CheckpointError, DataError, SettingError, listing
from partly.items import Items, streamed
from partly.networks import backbones, predicting
from partly.pictures.showing import counted
from partly.run.folder import digest

BATCH = 32  # items at a time, always from the first on: so that going on gives the same bits
SAVE_SECONDS = 10.0


def make_features(
    items: Items,
    ids: Sequence[str],
    folder: Path,
    backbone: str | None = None,
    settings: dict[str, Any] | None = None,
    device: str = "cpu",
    save_seconds: float = SAVE_SECONDS,
) -> tuple[int, int]:
    """Compute what is not there yet; how many items and how many features there are."""
    name = backbone or backbones.DEFAULT[items.kind]
    if name is None or items.kind == "features":
        raise SettingError("These items are features already: no backbone is needed to learn from them.")
    settings = backbones.find(name).complete(settings or {})
    items = networks.fitting(items, name, settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for("features", name))  # of a backbone that brings no weights
        body, width = networks.build_body(items, name, settings)
    key = {
        "format": FORMAT,
        "backbone": name,
        "settings": settings,
        "weights": _weights(body),
        "kind": items.kind,
        "shape": [len(items), *items.shape],
        "data_sha256": items.digest(),
        "width": width,
    }
    with files.locked(folder):
        _claim(folder, key, ids)
        if not (folder / DIGEST).exists():
            _compute(body.to(device), items, folder, (len(items), width), save_seconds)
    return len(items), width


def _compute(body: nn.Module, items: Items, folder: Path, shape: tuple[int, int], save_seconds: float) -> None:
    start, array = done(folder), _mapped(folder, shape)
    parts = [slice(i, i + BATCH) for i in range(start, len(items), BATCH)]
    saved = time.monotonic()
    device = next(body.buffers()).device
    with predicting(body), torch.inference_mode():
        batches = streamed(items, parts)
        for rows, x in zip(parts, counted(batches, len(parts), str(folder)), strict=True):
            array[rows] = body(x.to(device)).float().cpu().numpy()
            _refuse_undefined(array[rows], rows.start)
            if time.monotonic() - saved >= save_seconds:
                _save(folder, array, rows.stop)
                saved = time.monotonic()
    _save(folder, array, len(items))
    del array
    words = f"{files.sha256_of(folder / ARRAY)}  {ARRAY}\n"
    files.write_file(folder / DIGEST, words.encode())  # last: where it is, the features are whole


def _mapped(folder: Path, shape: tuple[int, int]) -> npt.NDArray[Any]:
    """The matrix in its file: the one that was begun, where it is of this shape, else a new one."""
    path = folder / ARRAY
    with files.disk_errors(folder):
        begun = path.exists() and done(folder) > 0
        kind: Any = {"mode": "r+"} if begun else {"mode": "w+", "dtype": np.dtype(np.float32), "shape": shape}
        try:
            array: npt.NDArray[Any] = np.lib.format.open_memmap(path, **kind)
        except ValueError as error:
            raise CheckpointError(f"{path}: damaged ({error}). Remove {folder} and start again.") from error
    if array.shape != shape:
        raise CheckpointError(f"{path}: is {list(array.shape)}, not {list(shape)}. Remove {folder} and start again.")
    return array


def _save(folder: Path, array: Any, count: int) -> None:
    with files.disk_errors(folder):
        array.flush()
    files.write_json(folder / DONE, {"done": count})


def _claim(folder: Path, key: dict[str, Any], ids: Sequence[str]) -> None:
    """Say in a new folder what is made here; in a used one, make sure that it is the same."""
    if not (folder / KEY).exists():
        others = [path.name for path in folder.iterdir() if path.name != ".lock"]
        if others:
            raise CheckpointError(f"{folder}: is not empty ({', '.join(sorted(others)[:3])}). Choose another folder.")
        files.write_sealed(folder / IDS, {"ids": list(ids)})
        files.write_sealed(folder / KEY, key)
        return
    there, here = files.read_sealed(folder / KEY), json.loads(json.dumps(key))
    differ = [name for name in there | here if there.get(name) != here.get(name)]
    if differ:
        told = (f"{name}: {there.get(name)!r} there, {here.get(name)!r} now" for name in differ)
        raise CheckpointError(
            f"{folder} holds other features; these differ" + listing(told, len(differ), 20) + "\nUse another folder."
        )


def _weights(body: nn.Module) -> str:
    """SHA-256 of all that decides what is made, the mean and scale of the first layer included."""
    sha = hashlib.sha256()
    for name, tensor in body.state_dict().items():
        sha.update(f"{name} {digest(tensor)}\n".encode())
    return sha.hexdigest()


def _refuse_undefined(block: npt.NDArray[Any], start: int) -> None:
    lost = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(lost):
        told = (f"item {start + i}" for i in lost.tolist())
        raise DataError("The backbone makes features that are not finite" + listing(told, len(lost)))
