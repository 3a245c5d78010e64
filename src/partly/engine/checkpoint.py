"""Durable save and load. What was saved survives a kill, a full disk and a flipped byte, or the damage is noticed.

A checkpoint is two files: tensors (safetensors) and a JSON record that holds the SHA-256 of the tensors and of itself.
Both are written beside, forced to disk and renamed; without its record a tensor file does not count. Two are kept.
The record also says of which run it is, by the digest of run.json: one of another run does not count either.

The tensors are written one after the other by a few lines of our own: safetensors' writer makes a copy of all of them
first, which for what is kept per entry is as much memory again. They are read by safetensors.
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

BELIEFS, IDS = "beliefs.npy", "items.json"  # in the folder of a finished run: what is believed, and of which items
OUT_OF_FOLD = "out_of_fold"  # there too, .npy and .json: logits of training entries by who has not seen them
RUN = "run.json"  # what is run on what
FORMAT = 3
KEEP = 2
PREFIX = "checkpoint-"
DTYPES = {float64: "F64", float32: "F32", float16: "F16", int64: "I64", int32: "I32", int8: "I8", uint8: "U8"}
DTYPES |= {bfloat16: "BF16", int16: "I16", boolean: "BOOL"}  # what safetensors calls them


def run_of(folder: Path) -> str | None:
    """Which run a folder holds: the digest of its run.json; None where there is none."""
    try:
        return sha256_of(folder / RUN)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CheckpointError(f"{folder / RUN}: cannot be read ({error.strerror or error}).") from None


@dataclass(frozen=True)
class FolderGuard:
    """A folder as a run found it when it began there. Somebody may remove it meanwhile and begin another run in its
    place, whose files are not to be mixed with those of this one."""

    folder: Path
    run: str | None
    lock: tuple[int, int] | None

    @classmethod
    def of(cls, folder: Path) -> FolderGuard:
        return cls(folder, run_of(folder), inode_of(folder / LOCK_NAME))

    def check(self) -> None:
        """Asked before anything is written."""
        if self != FolderGuard.of(self.folder):
            raise CheckpointError(
                f"{self.folder}: was removed or replaced while this run was under way, so nothing more is saved there. "
                "Start again, in a folder that stays."
            )


def save(folder: Path, tensors: Mapping[str, Tensor], record: dict[str, Any]) -> None:
    """Save as the newest checkpoint, then drop the oldest."""
    number = 1 + max(map(_number, records(folder)), default=0)
    stem = folder / f"{PREFIX}{number:06d}"
    with disk_errors(folder):
        digest = _write_tensors(stem.with_suffix(".safetensors"), tensors)
        record = {"format": FORMAT, "run": run_of(folder), "tensors_sha256": digest, **record}
        with atomic_write(stem.with_suffix(".json")) as file:
            file.write(_sealed(json.dumps(record, indent=1).encode()))
        for old in records(folder)[:-KEEP]:
            old.unlink()
            old.with_suffix(".safetensors").unlink(missing_ok=True)


def add_copies(folder: Path) -> None:
    """Copy the newest checkpoint, that of a finished run, until there are KEEP of it: a kill may have come between two
    copies, or one was damaged. Only for the holder of the lock, after `clean`."""
    run = run_of(folder)
    tensors, record = _read(records(folder)[-1], run)
    alike = [_read(path, run)[1]["tensors_sha256"] == record["tensors_sha256"] for path in records(folder)]
    said = {name: value for name, value in record.items() if name not in ("format", "run", "tensors_sha256")}
    for _ in range(KEEP - sum(alike)):
        save(folder, tensors, said)


def load(folder: Path) -> tuple[Tensors, dict[str, Any], list[str]] | None:
    """The newest checkpoint that is whole: tensors, record, what was wrong with newer ones. None where none is."""
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
    """Drop what an interrupted save left behind, and set damaged checkpoints aside so that they do not take the
    place of a whole one. Only for the holder of the lock, and only after `load` found a whole one or none at all."""
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
    """The tensors of a file by name, each read when it is asked for: who wants the model alone reads no more."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with safe_open(path, framework="pt") as file:
            opened: Any = file
            self._names = list(opened.keys())

    @property
    def nbytes(self) -> int:
        """Of all of them, about."""
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
    """A safetensors file: the length of the header, the header, then tensor after tensor. Returns its SHA-256."""
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
    """The records there are, oldest first."""
    return sorted((path for path in folder.glob(f"{PREFIX}*.json") if _number(path)), key=_number)


def check(path: Path) -> None:
    """Refuse a checkpoint that is not whole, or of another run, by its record."""
    try:
        _read(path, run_of(path.parent))
    except CheckpointError as error:
        raise CheckpointError(f"{path.parent}: {error}") from None


def _number(path: Path) -> int:
    """The number of a checkpoint's file; 0 for a file that only looks like one."""
    digits = path.stem.removeprefix(PREFIX)
    return int(digits) if digits.isdecimal() else 0


def _read(path: Path, run: str | None) -> tuple[Tensors, dict[str, Any]]:
    """run: whose checkpoint it must be."""
    try:
        with open_regular(path) as file:
            text = file.read()
        body = text[: -len(_sealed(b""))]
        if text != _sealed(body):
            raise CheckpointError(f"{path.name} is damaged (its checksum does not match)")
        record: dict[str, Any] = read_json(body)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            there = record.get("format") if isinstance(record, dict) else None
            raise CheckpointError(f"{path.name} has format {there!r}; this version reads {FORMAT}")
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


def _sealed(body: bytes) -> bytes:
    """The body and, on the last line, its own checksum."""
    return body + b"\n" + sha256(body).encode() + b"\n"


# ---------------------------------------------------------------- what is left for the training entries


def save_beliefs(
    folder: Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    blocks: Iterable[npt.NDArray[Any]],
    ids: tuple[str, ...] | None,
) -> dict[str, Any]:
    """Write what a method believes of the training entries, block after block, and whose they are; what the
    checkpoint's record says of it."""
    if ids is not None:
        write_checksummed(folder / IDS, {"ids": list(ids)})
    with disk_errors(folder), atomic_write(folder / BELIEFS) as file:
        write_npy(file, shape, dtype, blocks)
    return {"shape": list(shape), "sha256": sha256_of(folder / BELIEFS), "ids": ids is not None}


def save_out_of_fold(
    folder: Path, shape: tuple[int, ...], blocks: Iterable[npt.NDArray[Any]], name: str = OUT_OF_FOLD
) -> None:
    """Write logits of the training entries by who has not seen them, block after block, and their checksum."""
    path = folder / f"{name}.npy"
    with disk_errors(folder), atomic_write(path) as file:
        write_npy(file, shape, np.dtype(np.float32), blocks)
    record = {"shape": list(shape), "run": run_of(folder), "array_sha256": sha256_of(path)}
    write_checksummed(path.with_suffix(".json"), record)
