"""Features of images and texts by a frozen backbone, computed once into a folder that every command accepts as data.

`features.json` identifies items, backbone and weights; a folder of other features is refused. The matrix is written
block by block, and progress is recorded after each block is on disk, so that an interrupted computation resumes.
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
    """Compute missing features, here or with the executor `results`; return the number of items and of features. `say`
    prints which backbone is used."""
    features = lazy_features(items, _choose_backbone(items, backbone), settings or {}, device)
    say(describe_backbone(features.origin))
    _make(features, ids, folder, save_seconds, results)
    return len(features), features.width


def describe_backbone(origin: Origin) -> str:
    """Return a sentence about the backbone of features and the origin of its weights."""
    weights = backbones.weights_of(origin.backbone, origin.settings)
    text = f"Features of {origin.kind}: backbone {origin.backbone}, {weights}."
    return f"Warning: {text} They know nothing of {origin.kind}." if weights == backbones.RANDOM else text


def _choose_backbone(items: Items, backbone: str | None) -> str:
    """Return the backbone for these items, by default the pretrained one."""
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
    """Return the features that a frozen backbone computes of items; other items unchanged.

    A backbone is frozen unless images are augmented, a head takes its maps, or it is the caller's own module.
    like: training items, whose backbone computes the features of these too.
    """
    origin = None if like is None else like.origin
    if like is not None and origin is not None and items.kind != "features":
        resized, body = resize_like_training(items, origin), rebuild_body(origin, device)
        return load_or_compute(LazyFeatures(resized, body, origin, like.shape[0]))
    explicit = with_default_backbone(config, items)
    backbone, head = explicit.get("backbone"), config.head
    takes_items = isinstance(head, str) and head != "auto" and (head == NONE or takes_maps(head))
    if not isinstance(backbone, str) or items.kind == "features" or takes_items or explicit.get("augment"):
        return items
    settings = backbones.find(backbone).complete(explicit.get("backbone_settings", {}))
    return load_or_compute(lazy_features(items, backbone, settings, device)) if settings["freeze"] == "all" else items


def load_or_compute(features: LazyFeatures) -> PrecomputedFeatures:
    """Return the features from a folder of the cache; compute them into it the first time."""
    folder = cache_folder() / "features" / features.digest()[:32]
    folder.parent.mkdir(parents=True, exist_ok=True)
    _make(features, [], folder, SAVE_SECONDS)
    return PrecomputedFeatures(map_npy(folder / ARRAY), features.origin, features.source)


def cached_features(items: Items) -> Items:
    """Return items; features that would be computed again for every batch come from the cache."""
    return load_or_compute(items) if isinstance(items, LazyFeatures) else items


def _make(
    features: LazyFeatures,
    ids: Sequence[str],
    folder: Path,
    save_seconds: float,
    results: Results | None = None,
) -> None:
    key = {
        "format": FORMAT_VERSION,
        **features.origin.plain(),
        "items": len(features),
        "data_sha256": features.source.digest(),
        "width": features.width,
    }
    fitted = save(dict(features.origin.fitted)) if features.origin.fitted else b""
    key |= {"fitted_sha256": hashlib.sha256(fitted).hexdigest()} if fitted else {}
    with atomic_io.locked(folder):
        _claim(folder, key, ids)
        if fitted and not (folder / FITTED).exists():
            atomic_io.write_file(folder / FITTED, fitted)
        if not (folder / DIGEST).exists():
            with step(f"Computing features of {len(features):,} items"):
                _compute(features, folder, save_seconds, results)


def _compute(features: LazyFeatures, folder: Path, save_seconds: float, results: Results | None) -> None:
    done, array = count_done(folder), _map_matrix(folder, (len(features), features.width))
    count = features.chunk_size * (1 if results is None else BATCHES_PER_JOB)
    slices = [slice(i, min(i + count, len(features))) for i in range(done, len(features), count)]
    finished_ahead: dict[int, int] = {}  # of blocks that came before those in front of them: where each begins and ends
    saved = time.monotonic()
    title = f"Features by {features.origin.backbone}"
    blocks = _blocks(features, slices, results)
    for rows, x in track_progress(blocks, len(features) - done, title, weight=lambda block: len(block[1])):
        array[rows] = x.numpy()
        _refuse_undefined(array[rows], rows.start)
        finished_ahead[rows.start] = rows.stop
        while done in finished_ahead:
            done = finished_ahead.pop(done)
        if time.monotonic() - saved >= save_seconds:
            _save(folder, array, done)
            saved = time.monotonic()
    _save(folder, array, len(features))
    del array
    checksum_line = f"{atomic_io.sha256_of(folder / ARRAY)}  {ARRAY}\n"
    atomic_io.write_file(folder / DIGEST, checksum_line.encode())  # last: where it is, the features are whole


def _blocks(features: LazyFeatures, slices: list[slice], results: Results | None) -> Iterator[tuple[slice, Tensor]]:
    """Yield the features of each part. Batches are the same wherever they are computed; executors return them in any
    order."""
    if results is None:
        yield from zip(slices, features.stream(slices), strict=True)
        return
    for rows, x in results(slices, features.take):
        if isinstance(x, Died):
            raise CheckpointError(f"Items {rows.start} to {rows.stop - 1}: {x.words}. Start again to go on.")
        yield rows, x


def _map_matrix(folder: Path, shape: tuple[int, int]) -> npt.NDArray[Any]:
    """Memory-map the matrix: that of an interrupted computation if it has this shape, otherwise a new one."""
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
    """Describe the features in a new folder; refuse a folder of other features."""
    atomic_io.remove_leftovers(folder)  # after a kill
    if not (folder / KEY).exists():
        others = [path.name for path in folder.iterdir() if path.name != atomic_io.LOCK_NAME]
        if others:
            raise CheckpointError(f"{folder}: is not empty ({', '.join(sorted(others)[:3])}). Choose another folder.")
        atomic_io.write_checksummed(
            folder / KEY, key
        )  # first: what else there is may then be taken for what was begun here
    stored, current = atomic_io.read_checksummed(folder / KEY), json.loads(json.dumps(key))
    differ = [name for name in stored | current if stored.get(name) != current.get(name)]
    if differ:
        differences = (f"{name}: {stored.get(name)!r} there, {current.get(name)!r} now" for name in differ)
        raise CheckpointError(
            f"{folder} holds other features; these differ"
            + listing(differences, len(differ), 20)
            + "\nUse another folder."
        )
    if not (folder / IDS).exists():
        atomic_io.write_checksummed(folder / IDS, {"ids": list(ids)})


def _refuse_undefined(block: npt.NDArray[Any], start: int) -> None:
    lost = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(lost):
        places = (f"item {start + i}" for i in lost.tolist())
        raise DataError("The backbone makes features that are not finite" + listing(places, len(lost)))
