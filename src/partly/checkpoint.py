"""Durable save and load. What was saved survives a kill, a full disk and a flipped byte, or the damage is noticed.

A checkpoint is two files: tensors (safetensors) and a JSON record that holds the SHA-256 of the tensors and of itself.
Both are written beside, forced to disk and renamed; without its record a tensor file does not count. Two are kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as dump_tensors
from torch import Tensor

from partly.errors import CheckpointError

FORMAT = 1
KEEP = 2
PREFIX = "checkpoint-"
BESIDE = ".partly-new"  # ends the name of a file that is not whole yet


def save(folder: Path, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
    """Save as the newest checkpoint, then drop the oldest."""
    blob = dump_tensors({name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()})
    record = {"format": FORMAT, "tensors_sha256": _sha(blob), **record}
    number = 1 + max(map(_number, _records(folder)), default=0)
    stem = folder / f"{PREFIX}{number:06d}"
    with _disk_errors(folder):
        write_file(stem.with_suffix(".safetensors"), blob)
        write_file(stem.with_suffix(".json"), _sealed(json.dumps(record, indent=1).encode()))
        for old in _records(folder)[:-KEEP]:
            old.unlink()
            old.with_suffix(".safetensors").unlink(missing_ok=True)


def load(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any], list[str]] | None:
    """The newest checkpoint that is whole: tensors, record, what was wrong with newer ones. None where none is."""
    problems: list[str] = []
    for path in reversed(_records(folder)):
        try:
            return *_read(path), problems
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
    for path in folder.glob(f".*{BESIDE}"):
        path.unlink()
    for path in _records(folder):
        try:
            _read(path)
        except CheckpointError:
            for part in (path, path.with_suffix(".safetensors")):
                if part.exists():
                    part.rename(part.with_name(f"damaged-{part.name}"))
    whole = {path.stem for path in _records(folder)}
    for path in folder.glob(f"{PREFIX}*.safetensors"):
        if _number(path) and path.stem not in whole:
            path.unlink()


def write_file(path: Path, content: bytes) -> None:
    """Replace a file as a whole: after a crash it is the old one or the new one."""
    beside = path.with_name(f".{path.name}{BESIDE}")
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    with _disk_errors(path.parent):
        write_file(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def write_sealed(path: Path, value: dict[str, Any]) -> None:
    """JSON that carries its own checksum."""
    write_json(path, value | {"sha256": _seal(value)})


def read_sealed(path: Path) -> dict[str, Any]:
    """What `write_sealed` wrote, or an error where it is not that any more."""
    try:
        value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}). Restore it from a copy.") from None
    if not isinstance(value, dict) or value.pop("sha256", None) != _seal(value):
        raise CheckpointError(f"{path}: damaged or edited (its checksum does not match). Restore it from a copy.")
    return value


def _seal(value: dict[str, Any]) -> str:
    return _sha(json.dumps(value).encode())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run folder: a second trainer on it is refused. The lock ends with the process, however it ends."""
    with _disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / ".lock", "a")  # noqa: SIM115
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(
                f"{folder}: another process is training in this folder. Wait for it, or use another folder."
            ) from None
        yield


def _records(folder: Path) -> list[Path]:
    """The records there are, oldest first."""
    return sorted((path for path in folder.glob(f"{PREFIX}*.json") if _number(path)), key=_number)


def _number(path: Path) -> int:
    """The number of a checkpoint's file; 0 for a file that only looks like one."""
    digits = path.stem.removeprefix(PREFIX)
    return int(digits) if digits.isdecimal() else 0


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        text = path.read_bytes()
        body = text[: -len(_sealed(b""))]
        if text != _sealed(body):
            raise CheckpointError(f"{path.name} is damaged (its checksum does not match)")
        record: dict[str, Any] = json.loads(body)
        if record["format"] != FORMAT:
            raise CheckpointError(f"{path.name} has format {record['format']}; this version reads {FORMAT}")
        blob = path.with_suffix(".safetensors").read_bytes()
        if _sha(blob) != record["tensors_sha256"]:
            raise CheckpointError(f"{path.with_suffix('.safetensors').name} is damaged (its checksum does not match)")
        return load_tensors(blob), record
    except (OSError, SafetensorError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path.name} cannot be read ({error})") from None


def _sealed(body: bytes) -> bytes:
    """The body and, on the last line, its own checksum."""
    return body + b"\n" + _sha(body).encode() + b"\n"


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{folder}: cannot write ({error.strerror or error}). What was saved before is intact. "
            "Free space or choose another folder, then start again."
        ) from error
