"""Durable checkpoints: they survive a kill, a full disk and a flipped byte, or the damage is detected.

A checkpoint is two files: tensors (safetensors) and a JSON record with the SHA-256 of the tensors and of itself. Both
are written to temporary files, forced to disk and renamed; a tensor file without its record is ignored. Two checkpoints
are kept. The record holds the digest of run.json, and a record of another run is ignored.

Tensors are written one by one: safetensors' own writer first copies all of them, which doubles the memory of per-entry
state. safetensors reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from torch import Tensor, bfloat16, float16, float32, float64, int8, int16, int32, int64, uint8
from torch import bool as boolean

from partly.atomic_io import (
    LOCK_NAME,
    atomic_write,
    disk_errors,
    inode_of,
    open_regular,
    read_json,
    remove_leftovers,
    sha256,
    sha256_of,
    write_checksummed,
    write_npy,
)
from partly.errors import CheckpointError

BELIEFS, IDS = "beliefs.npy", "items.json"  # in the folder of a finished run: beliefs, and the ids of their items
OUT_OF_FOLD = "out_of_fold"  # in the same folder, .npy and .json: out-of-fold logits of training entries
RUN = "run.json"  # configuration, data and results of the run
FORMAT = 3
KEPT_CHECKPOINTS = 2
PREFIX = "checkpoint-"
DTYPES = {float64: "F64", float32: "F32", float16: "F16", int64: "I64", int32: "I32", int8: "I8", uint8: "U8"}
DTYPES |= {bfloat16: "BF16", int16: "I16", boolean: "BOOL"}  # names in safetensors


def run_of(folder: Path) -> str | None:
    """Return the digest of run.json, which identifies the run of a folder; None without one."""
    try:
        return sha256_of(folder / RUN)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CheckpointError(f"{folder / RUN}: cannot be read ({error.strerror or error}).") from None


@dataclass(frozen=True)
class FolderGuard:
    """A folder as a run found it. If it is replaced meanwhile, the run must not write into the new one."""

    folder: Path
    run: str | None
    lock: tuple[int, int] | None

    @classmethod
    def of(cls, folder: Path) -> FolderGuard:
        return cls(folder, run_of(folder), inode_of(folder / LOCK_NAME))

    def check(self) -> None:
        """Refuse if the folder was replaced; call before anything is written."""
        if self != FolderGuard.of(self.folder):
            raise CheckpointError(
                f"{self.folder}: was removed or replaced while this run was under way, so nothing more is saved there. "
                "Start again, in a folder that stays."
            )


def save(folder: Path, tensors: Mapping[str, Tensor], record: dict[str, Any]) -> None:
    """Save as the newest checkpoint, then remove the oldest."""
    number = 1 + max(map(_number, records(folder)), default=0)
    stem = folder / f"{PREFIX}{number:06d}"
    with disk_errors(folder):
        digest = _write_tensors(stem.with_suffix(".safetensors"), tensors)
        record = {"format": FORMAT, "run": run_of(folder), "tensors_sha256": digest, **record}
        with atomic_write(stem.with_suffix(".json")) as file:
            file.write(_seal(json.dumps(record, indent=1).encode()))
        for old in records(folder)[:-KEPT_CHECKPOINTS]:
            old.unlink()
            old.with_suffix(".safetensors").unlink(missing_ok=True)


def add_copies(folder: Path) -> None:
    """Copy the newest checkpoint of a finished run until there are KEEP: a kill or damage may have left fewer. Needs
    the lock; call after `clean`."""
    run = run_of(folder)
    tensors, record = _read(records(folder)[-1], run)
    alike = [_read(path, run)[1]["tensors_sha256"] == record["tensors_sha256"] for path in records(folder)]
    content = {name: value for name, value in record.items() if name not in ("format", "run", "tensors_sha256")}
    for _ in range(KEPT_CHECKPOINTS - sum(alike)):
        save(folder, tensors, content)


def load(folder: Path) -> tuple[Tensors, dict[str, Any], list[str]] | None:
    """Return the newest intact checkpoint: tensors, record, and the problems of newer ones. None if there is none."""
    problems: list[str] = []
    run = run_of(folder)
    for path in reversed(records(folder)):
        try:
            return *_read(path, run), problems
        except CheckpointError as error:
            problems.append(str(error))
    if problems:
        raise CheckpointError(
            f"{folder}: no checkpoint can be read.\n  " + "\n  ".join(problems) + "\nNothing was changed. Restore the "
            "folder from a copy, or train into another folder."
        )
    return None


def clean(folder: Path) -> None:
    """Remove leftovers of an interrupted save, and set damaged checkpoints aside so that they do not replace an intact
    one. Needs the lock; call only after `load` found an intact one or none at all."""
    remove_leftovers(folder)
    with disk_errors(folder):
        run = run_of(folder)
        for path in records(folder):
            try:
                _read(path, run)
            except CheckpointError:
                for part in (path, path.with_suffix(".safetensors")):
                    if part.exists():
                        part.rename(part.with_name(f"damaged-{part.name}"))
        whole = {path.stem for path in records(folder)}
        for path in folder.glob(f"{PREFIX}*.safetensors"):
            if _number(path) and path.stem not in whole:
                path.unlink()


class Tensors(Mapping[str, Tensor]):
    """Tensors of a file by name, read lazily: loading the model reads nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with safe_open(path, framework="pt") as file:
            opened: Any = file
            self._names = list(opened.keys())

    @property
    def nbytes(self) -> int:
        """Return the approximate size of all tensors."""
        return self._path.stat().st_size

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        with safe_open(self._path, framework="pt") as file:  # anew, so that what was read before is let go of
            opened: Any = file
            tensor: Tensor = opened.get_tensor(name)
            return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write a safetensors file: length of the header, header, tensors. Return its SHA-256."""
    header, end = {}, 0
    # Large types first, as safetensors does, so that every tensor begins at a multiple of its type's size.
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    for name in order:
        if tensors[name].dtype not in DTYPES:
            raise CheckpointError(f"{name}: {tensors[name].dtype} cannot be saved. Keep it in another type.")
        start, end = end, end + tensors[name].nbytes
        shape = list(tensors[name].shape)
        header[name] = {"dtype": DTYPES[tensors[name].dtype], "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    sha = hashlib.sha256()
    with atomic_write(path) as file:
        for part in (len(text).to_bytes(8, "little"), text):
            sha.update(part)
            file.write(part)
        for name in order:
            content = tensors[name].detach().cpu().contiguous().reshape(-1).view(uint8).numpy().data
            sha.update(content)
            file.write(content)
    return sha.hexdigest()


def records(folder: Path) -> list[Path]:
    """Return the records in a folder, oldest first."""
    return sorted((path for path in folder.glob(f"{PREFIX}*.json") if _number(path)), key=_number)


def check(path: Path) -> None:
    """Refuse a checkpoint that is damaged or of another run, by its record."""
    try:
        _read(path, run_of(path.parent))
    except CheckpointError as error:
        raise CheckpointError(f"{path.parent}: {error}") from None


def _number(path: Path) -> int:
    """Return the number of a checkpoint file; 0 for other files."""
    digits = path.stem.removeprefix(PREFIX)
    return int(digits) if digits.isdecimal() else 0


def _read(path: Path, run: str | None) -> tuple[Tensors, dict[str, Any]]:
    """Read a checkpoint; run: the run that it must belong to."""
    try:
        with open_regular(path) as file:
            text = file.read()
        body = text[: -len(_seal(b""))]
        if text != _seal(body):
            raise CheckpointError(f"{path.name} is damaged (its checksum does not match)")
        record: dict[str, Any] = read_json(body)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            version = record.get("format") if isinstance(record, dict) else None
            raise CheckpointError(f"{path.name} has format {version!r}; this version reads {FORMAT}")
        if record.get("run") != run:
            raise CheckpointError(f"{path.name} belongs to another run than run.json")
        tensors = path.with_suffix(".safetensors")
        if sha256_of(tensors) != record.get("tensors_sha256"):
            raise CheckpointError(f"{tensors.name} is damaged (its checksum does not match)")
        return Tensors(tensors), record
    except CheckpointError:
        raise
    except (OSError, SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path.name} cannot be read ({error})") from None


def _seal(body: bytes) -> bytes:
    """Return the body with its own checksum on the last line."""
    return body + b"\n" + sha256(body).encode() + b"\n"


# ---------------------------------------------------------------- what is left for the training entries


def save_beliefs(
    folder: Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    blocks: Iterable[npt.NDArray[Any]],
    ids: tuple[str, ...] | None,
) -> dict[str, Any]:
    """Write the beliefs about training entries and the ids of their items; return the entry for the record."""
    if ids is not None:
        write_checksummed(folder / IDS, {"ids": list(ids)})
    with disk_errors(folder), atomic_write(folder / BELIEFS) as file:
        write_npy(file, shape, dtype, blocks)
    return {"shape": list(shape), "sha256": sha256_of(folder / BELIEFS), "ids": ids is not None}


def save_out_of_fold(
    folder: Path, shape: tuple[int, ...], blocks: Iterable[npt.NDArray[Any]], name: str = OUT_OF_FOLD
) -> None:
    """Write out-of-fold logits of the training entries and their checksum."""
    path = folder / f"{name}.npy"
    with disk_errors(folder), atomic_write(path) as file:
        write_npy(file, shape, np.dtype(np.float32), blocks)
    record = {"shape": list(shape), "run": run_of(folder), "array_sha256": sha256_of(path)}
    write_checksummed(path.with_suffix(".json"), record)
