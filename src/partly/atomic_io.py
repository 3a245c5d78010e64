"""Atomic files and folders, locks of one process, checksums and digests."""

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
TEMPORARY_SUFFIX = ".partly-new"  # of incomplete files
LOCK_NAME = ".lock"


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Write a file that takes its name only when it is complete and on the disk: a crash leaves the old or the new one.

    The temporary name is random and must be free (mode x), so that no planted link is written through. A link under
    the final name is replaced; its target is not touched.
    """
    temporary = _temporary_path(path)
    try:
        with open(temporary, "xb") as file, _hold(temporary):
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_file(path: Path, content: bytes) -> None:
    """Replace an output file of the user."""
    with atomic_output(path) as file:
        file.write(content)


@contextmanager
def atomic_output(path: Path) -> Iterator[BinaryIO]:
    """Write an output file of the user by `atomic_write`; disk errors become a `DataError`."""
    try:
        with atomic_write(path) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error}).") from error


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Write a new folder that takes its name when it is complete. Existing files are not touched."""
    if path.is_dir() and any(path.iterdir()):
        raise DataError(f"{path}: this folder is not empty. Name another one.")
    temporary = _temporary_path(path)
    try:
        temporary.mkdir(parents=True)
        with _hold(temporary):
            yield temporary
            os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _temporary_path(path: Path) -> Path:
    """Return a random temporary name, after removing leftovers of this path that no living process holds."""
    for left in leftovers(path.parent, path.name):
        with suppress(OSError), _hold(left) as alone:
            if alone:
                _remove(left)
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")


@contextmanager
def _hold(path: Path) -> Iterator[bool]:
    """Lock a temporary file or folder, so that no other process removes it as a leftover.

    Yields False where another process holds it or the file system has no locks: then nothing may be removed.
    """
    handle, alone = no_link(path, os.O_RDONLY), False
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        yield alone
    finally:
        os.close(handle)


def leftovers(folder: Path, name: str = "") -> Iterator[Path]:
    """List the temporary files that interrupted writes left in a folder, of one file or of all."""
    return folder.glob(f".{glob.escape(name)}*{TEMPORARY_SUFFIX}")


def remove_leftovers(folder: Path) -> None:
    """Remove all leftovers of a run folder that the caller has locked."""
    with disk_errors(folder):
        for left in leftovers(folder):
            _remove(left)


def _remove(left: Path) -> None:
    if left.is_dir() and not left.is_symlink():
        shutil.rmtree(left)
    else:
        left.unlink(missing_ok=True)


def remove_file(path: Path) -> None:
    """Remove a file of a run folder if it exists."""
    with disk_errors(path.parent):
        path.unlink(missing_ok=True)


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn disk errors in a run folder into a `CheckpointError`; saved state is intact."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{folder}: cannot write ({error.strerror or error}). What was saved before is intact. "
            "Free space or choose another folder, then start again."
        ) from error


def no_link(path: PathLike, flags: int) -> int:
    """Open a file that is written in place: refuse a link, and never block on a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


@contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[None]:
    """Lock a folder against a second process, or wait for that one. The lock ends with the process."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / LOCK_NAME, "a", opener=no_link)  # noqa: SIM115
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise CheckpointError(
                f"{folder}: another process is training in this folder. Wait for it, or use another folder."
            ) from None
        yield


def inode_of(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file at a path; None if there is none."""
    with suppress(OSError):
        status = os.lstat(path)
        return status.st_dev, status.st_ino
    return None


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file to read; a pipe or a device is refused without blocking."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is no plain file")
        yield file


# ---------------------------------------------------------------- JSON


def write_json(path: Path, value: Any) -> None:
    """Write JSON into a run folder."""
    with disk_errors(path.parent), atomic_write(path) as file:
        file.write((json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def write_checksummed(path: Path, value: dict[str, Any]) -> None:
    """Write JSON with its own checksum."""
    write_json(path, value | {"sha256": _checksum(value)})


def read_checksummed(path: Path) -> dict[str, Any]:
    """Read a file of `write_checksummed`; refuse one that was damaged or edited."""
    try:
        with open_regular(path) as file:
            value: dict[str, Any] = read_json(file.read())
        intact = isinstance(value, dict) and value.pop("sha256", None) == _checksum(value)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}). Restore it from a copy.") from None
    if not intact:
        raise CheckpointError(f"{path}: damaged or edited (its checksum does not match). Restore it from a copy.")
    return value


def read_json(text: bytes) -> Any:
    """Parse untrusted JSON; every problem becomes a `ValueError`."""
    try:
        return json.loads(text.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _checksum(value: dict[str, Any]) -> str:
    return sha256(json.dumps(value).encode())


# ---------------------------------------------------------------- digests


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the digest of a file without loading it whole."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---------------------------------------------------------------- arrays


def write_npy(file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[npt.NDArray[Any]]) -> None:
    """Write blocks of rows as one array in `.npy` format."""
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
