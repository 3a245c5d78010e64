"""Files and folders: written whole or not at all, held by one process at a time, and told apart by their digests."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from partly.errors import CheckpointError, DataError

PathLike = str | os.PathLike[str]
BESIDE = ".partly-new"  # ends the name of a file that is not whole yet
LOCK = ".lock"


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes its name only when it is whole and on the disk: after a crash it is the old or the new
    one. Its first name is drawn by chance and must be free (mode x), so that a link that somebody has put there is
    never written through; a link under its last name is replaced, and not what it points to."""
    beside = _beside(path)
    try:
        with open(beside, "xb") as file, _held(beside):
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_file(path: Path, content: bytes) -> None:
    """Replace a file that a user asked for."""
    with writing(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """`replacing`, where what goes wrong with the disk is told as an error of the data."""
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error}).") from error


@contextmanager
def making(path: Path) -> Iterator[Path]:
    """A new folder to write to, which takes its name when all is in it. What is there already is not touched."""
    if path.is_dir() and any(path.iterdir()):
        raise DataError(f"{path}: this folder is not empty. Name another one.")
    beside = _beside(path)
    try:
        beside.mkdir(parents=True)
        with _held(beside):
            yield beside
            os.replace(beside, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _beside(path: Path) -> Path:
    """A name for what is to become this file or folder, drawn by chance. What killed processes left of writing it is
    dropped: that which nobody holds any more."""
    for left in leftovers(path.parent, path.name):
        with suppress(OSError), _held(left) as alone:
            if alone:
                _remove(left)
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{BESIDE}")


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    """While it lasts, nobody else takes this for abandoned. Whether that is so: not where somebody holds it already, or
    where there are no locks, so that nothing is dropped there."""
    handle, alone = no_link(path, os.O_RDONLY), False
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        yield alone
    finally:
        os.close(handle)


def leftovers(folder: Path, name: str = "") -> Iterator[Path]:
    """What interrupted writing left behind in a folder, of one file or of all."""
    return folder.glob(f".{glob.escape(name)}*{BESIDE}")


def sweep(folder: Path) -> None:
    """Remove what interrupted writing left behind in a run folder. Only for who holds it."""
    with disk_errors(folder):
        for left in leftovers(folder):
            _remove(left)


def _remove(left: Path) -> None:
    if left.is_dir() and not left.is_symlink():
        shutil.rmtree(left)
    else:
        left.unlink(missing_ok=True)


def drop(path: Path) -> None:
    """Remove a file of a run folder, where it is there."""
    with disk_errors(path.parent):
        path.unlink(missing_ok=True)


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """What goes wrong with the disk in a run folder, told so that nobody fears for what was saved."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{folder}: cannot write ({error.strerror or error}). What was saved before is intact. "
            "Free space or choose another folder, then start again."
        ) from error


def no_link(path: PathLike, flags: int) -> int:
    """An opener for files that are written where they lie: a link in their place is refused, and nothing is waited
    for."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder: a second process that wants it is refused. The lock ends with the process, however it ends."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / LOCK, "a", opener=no_link)  # noqa: SIM115
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(
                f"{folder}: another process is training in this folder. Wait for it, or use another folder."
            ) from None
        yield


def which(path: Path) -> tuple[int, int] | None:
    """Which file lies there (device and inode), whatever its name; None where there is none."""
    with suppress(OSError):
        found = os.lstat(path)
        return found.st_dev, found.st_ino
    return None


@contextmanager
def plain(path: Path) -> Iterator[BufferedReader]:
    """A plain file to read: a pipe or a device in its place is refused, and not waited for."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is no plain file")
        yield file


# ---------------------------------------------------------------- JSON


def write_json(path: Path, value: Any) -> None:
    """JSON in a run folder."""
    with disk_errors(path.parent), replacing(path) as file:
        file.write((json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def write_sealed(path: Path, value: dict[str, Any]) -> None:
    """JSON that carries its own checksum."""
    write_json(path, value | {"sha256": _seal(value)})


def read_sealed(path: Path) -> dict[str, Any]:
    """What `write_sealed` wrote, or an error where it is not that any more."""
    try:
        with plain(path) as file:
            value: dict[str, Any] = read_json(file.read())
        whole = isinstance(value, dict) and value.pop("sha256", None) == _seal(value)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}). Restore it from a copy.") from None
    if not whole:
        raise CheckpointError(f"{path}: damaged or edited (its checksum does not match). Restore it from a copy.")
    return value


def read_json(text: bytes) -> Any:
    """JSON of anybody's making; what is wrong with it is a ValueError, however it is wrong."""
    try:
        return json.loads(text.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _seal(value: dict[str, Any]) -> str:
    return sha256(json.dumps(value).encode())


# ---------------------------------------------------------------- digests


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sha256_of(path: Path) -> str:
    """Of a whole file, a piece at a time."""
    with plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---------------------------------------------------------------- arrays


def write_npy(file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[npt.NDArray[Any]]) -> None:
    """Blocks of rows as one array in a `.npy` file."""
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for block in blocks:
        file.write(np.ascontiguousarray(block, dtype).data)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
