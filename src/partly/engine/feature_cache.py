"""Features that a backbone makes of items, computed once into a folder that every command takes as data.

The folder says in `features.json` of which items, by which backbone and with which weights they are: with anything else
the same folder is refused. The matrix is written a block at a time, and how far it has come is written after it is on
the disk, so that after a kill the same call goes on.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.torch import save
from torch import Tensor

from partly import atomic_io
from partly.config import TrainConfig
from partly.data.formats.feature_folder import ARRAY, DIGEST, DONE, FITTED, FORMAT_VERSION, IDS, KEY, count_done
from partly.distributed.progress import step
from partly.engine.resolution import with_default_backbone
from partly.errors import CheckpointError, DataError, SettingError, listing
from partly.executors import Died, Results
from partly.images.progress import track_progress
from partly.images.scan import cache_folder
from partly.items import Items, Origin, PrecomputedFeatures, map_npy
from partly.networks import backbones, takes_maps
from partly.networks.custom_modules import NONE
from partly.networks.lazy_features import LazyFeatures, lazy_features, rebuild_body, resize_like_training

SAVE_SECONDS = 10.0
BATCHES_PER_JOB = 8  # where others make features


def make_features(
    items: Items,
    ids: Sequence[str],
    folder: Path,
    backbone: str | None = None,
    settings: dict[str, Any] | None = None,
    device: str = "cpu",
    save_seconds: float = SAVE_SECONDS,
    results: Results | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[int, int]:
    """Compute what is not there yet, in this process or where `results` has jobs run; how many items and how many
    features there are. `say` is told which backbone makes them."""
    made = lazy_features(items, _named(items, backbone), settings or {}, device)
    say(describe_backbone(made.origin))
    _make(made, ids, folder, save_seconds, results)
    return len(made), made.width


def describe_backbone(origin: Origin) -> str:
    """Which backbone makes features, and where its weights come from."""
    weights = backbones.weights_of(origin.backbone, origin.settings)
    words = f"Features of {origin.kind}: backbone {origin.backbone}, {weights}."
    return f"Warning: {words} They know nothing of {origin.kind}." if weights == backbones.RANDOM else words


def _named(items: Items, backbone: str | None) -> str:
    """The backbone that makes features of these items, the default one where none is named."""
    if items.kind == "features":
        raise SettingError("These items are features already: no backbone is needed to learn from them.")
    name = backbone or backbones.default(items)
    if name is None:
        untrained = backbones.UNTRAINED[items.kind]
        raise SettingError(
            "No backbone is named, and pictures of an array have no pretrained one. Name one: backbone="
            f"'efficientnet-lite0', or '{untrained}' for features of random weights."
        )
    return name


def precompute_features(items: Items, config: TrainConfig, device: str = "cpu", like: Items | None = None) -> Items:
    """Return the features that a frozen backbone computes of items; other items as they are.

    A backbone is frozen unless images are augmented, a head takes its maps, or it is the caller's own module.
    like: training items, whose backbone computes the features of these too.
    """
    origin = None if like is None else like.origin
    if like is not None and origin is not None and items.kind != "features":
        resized, body = resize_like_training(items, origin), rebuild_body(origin, device)
        return load_or_compute(LazyFeatures(resized, body, origin, like.shape[0]))
    given = with_default_backbone(config, items)
    backbone, head = given.get("backbone"), config.head
    takes_items = isinstance(head, str) and head != "auto" and (head == NONE or takes_maps(head))
    if not isinstance(backbone, str) or items.kind == "features" or takes_items or given.get("augment"):
        return items
    settings = backbones.find(backbone).complete(given.get("backbone_settings", {}))
    return load_or_compute(lazy_features(items, backbone, settings, device)) if settings["freeze"] == "all" else items


def load_or_compute(made: LazyFeatures) -> PrecomputedFeatures:
    """Return the features from a folder of the cache; compute them into it the first time."""
    folder = cache_folder() / "features" / made.digest()[:32]
    folder.parent.mkdir(parents=True, exist_ok=True)
    _make(made, [], folder, SAVE_SECONDS)
    return PrecomputedFeatures(map_npy(folder / ARRAY), made.origin, made.source)


def cached_features(items: Items) -> Items:
    """Return items; features that would be computed again for every batch come from the cache."""
    return load_or_compute(items) if isinstance(items, LazyFeatures) else items


def _make(
    made: LazyFeatures,
    ids: Sequence[str],
    folder: Path,
    save_seconds: float,
    results: Results | None = None,
) -> None:
    key = {
        "format": FORMAT_VERSION,
        **made.origin.plain(),
        "items": len(made),
        "data_sha256": made.source.digest(),
        "width": made.width,
    }
    fitted = save(dict(made.origin.fitted)) if made.origin.fitted else b""
    key |= {"fitted_sha256": hashlib.sha256(fitted).hexdigest()} if fitted else {}
    with atomic_io.locked(folder):
        _claim(folder, key, ids)
        if fitted and not (folder / FITTED).exists():
            atomic_io.write_file(folder / FITTED, fitted)
        if not (folder / DIGEST).exists():
            with step(f"Computing features of {len(made):,} items"):
                _compute(made, folder, save_seconds, results)


def _compute(made: LazyFeatures, folder: Path, save_seconds: float, results: Results | None) -> None:
    whole, array = count_done(folder), _mapped(folder, (len(made), made.width))
    count = made.chunk_size * (1 if results is None else BATCHES_PER_JOB)
    parts = [slice(i, min(i + count, len(made))) for i in range(whole, len(made), count)]
    early: dict[int, int] = {}  # of blocks that came before those in front of them: where each begins and ends
    saved = time.monotonic()
    title = f"Features by {made.origin.backbone}"
    blocks = _blocks(made, parts, results)
    for rows, x in track_progress(blocks, len(made) - whole, title, weight=lambda block: len(block[1])):
        array[rows] = x.numpy()
        _refuse_undefined(array[rows], rows.start)
        early[rows.start] = rows.stop
        while whole in early:
            whole = early.pop(whole)
        if time.monotonic() - saved >= save_seconds:
            _save(folder, array, whole)
            saved = time.monotonic()
    _save(folder, array, len(made))
    del array
    words = f"{atomic_io.sha256_of(folder / ARRAY)}  {ARRAY}\n"
    atomic_io.write_file(folder / DIGEST, words.encode())  # last: where it is, the features are whole


def _blocks(made: LazyFeatures, parts: list[slice], results: Results | None) -> Iterator[tuple[slice, Tensor]]:
    """The features of each part, made by the same batches wherever they are made; in any order by others."""
    if results is None:
        yield from zip(parts, made.stream(parts), strict=True)
        return
    for rows, x in results(parts, made.take):
        if isinstance(x, Died):
            raise CheckpointError(f"Items {rows.start} to {rows.stop - 1}: {x.words}. Start again to go on.")
        yield rows, x


def _mapped(folder: Path, shape: tuple[int, int]) -> npt.NDArray[Any]:
    """The matrix in its file: the one that was begun, where it is of this shape, else a new one."""
    path = folder / ARRAY
    if path.is_symlink():
        raise CheckpointError(f"{path}: is a link, through which nothing is written. Remove it and start again.")
    with atomic_io.disk_errors(folder):
        begun = path.exists() and count_done(folder) > 0
        kind: Any = {"mode": "r+"} if begun else {"mode": "w+", "dtype": np.dtype(np.float32), "shape": shape}
        try:
            array: npt.NDArray[Any] = np.lib.format.open_memmap(path, **kind)
        except ValueError as error:
            raise CheckpointError(f"{path}: damaged ({error}). Remove {folder} and start again.") from error
    if array.shape != shape:
        raise CheckpointError(f"{path}: is {list(array.shape)}, not {list(shape)}. Remove {folder} and start again.")
    return array


def _save(folder: Path, array: Any, count: int) -> None:
    with atomic_io.disk_errors(folder):
        array.flush()
    atomic_io.write_json(folder / DONE, {"done": count})


def _claim(folder: Path, key: dict[str, Any], ids: Sequence[str]) -> None:
    """Say in a new folder what is made here; in a used one, make sure that it is the same."""
    atomic_io.remove_leftovers(folder)  # after a kill
    if not (folder / KEY).exists():
        others = [path.name for path in folder.iterdir() if path.name != atomic_io.LOCK_NAME]
        if others:
            raise CheckpointError(f"{folder}: is not empty ({', '.join(sorted(others)[:3])}). Choose another folder.")
        atomic_io.write_checksummed(
            folder / KEY, key
        )  # first: what else there is may then be taken for what was begun here
    there, here = atomic_io.read_checksummed(folder / KEY), json.loads(json.dumps(key))
    differ = [name for name in there | here if there.get(name) != here.get(name)]
    if differ:
        told = (f"{name}: {there.get(name)!r} there, {here.get(name)!r} now" for name in differ)
        raise CheckpointError(
            f"{folder} holds other features; these differ" + listing(told, len(differ), 20) + "\nUse another folder."
        )
    if not (folder / IDS).exists():
        atomic_io.write_checksummed(folder / IDS, {"ids": list(ids)})


def _refuse_undefined(block: npt.NDArray[Any], start: int) -> None:
    lost = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(lost):
        told = (f"item {start + i}" for i in lost.tolist())
        raise DataError("The backbone makes features that are not finite" + listing(told, len(lost)))
