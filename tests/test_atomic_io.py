"""Files: whole or not at all, one holder at a time, and no byte changes unnoticed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from partly import atomic_io
from partly.errors import CheckpointError, DataError

FULL = OSError(28, "No space left on device")


def failing(error: BaseException) -> Callable[..., None]:
    def call(*_: object, **__: object) -> None:
        raise error

    return call


def test_a_file_that_cannot_be_removed_is_told_as_one_of_the_run(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "a").touch()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", failing(OSError(5, "Input/output error")))
        with pytest.raises(CheckpointError, match="Input/output error"):
            atomic_io.remove_file(tmp_path / "a")
    atomic_io.remove_file(tmp_path / "a")
    atomic_io.remove_file(tmp_path / "a")  # where it is not there any more, all is well
    assert os.listdir(tmp_path) == []


# ---------------------------------------------------------------- atomic_write


def interrupted(path: Path, error: BaseException) -> None:
    with atomic_io.atomic_write(path) as file:
        file.write(b"new")
        raise error


def test_a_file_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with atomic_io.atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
        assert len(list(atomic_io.leftovers(tmp_path))) == 1
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [FULL, ValueError("x"), KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
@pytest.mark.parametrize("there", [True, False])
def test_what_fails_while_it_is_written_leaves_the_old_file(tmp_path: Path, error: BaseException, there: bool) -> None:
    path = tmp_path / "a"
    if there:
        path.write_bytes(b"old")
    with pytest.raises(type(error)):
        interrupted(path, error)
    assert os.listdir(tmp_path) == ["a"] * there
    assert not there or path.read_bytes() == b"old"


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
def test_what_fails_at_the_end_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(error))
        with pytest.raises(type(error)), atomic_io.atomic_write(path) as file:
            file.write(b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="directory"), atomic_io.atomic_write(tmp_path / "a"):
        pass
    with pytest.raises(FileNotFoundError), atomic_io.atomic_write(tmp_path / "none" / "a"):
        pass
    assert os.listdir(tmp_path) == ["a"]


KILLED = """
import os, sys
from pathlib import Path
from partly import atomic_io
with atomic_io.atomic_write(Path(sys.argv[1])) as file:
    file.write(b"half of it")
    file.flush()
    os._exit(9)
"""


def test_after_a_crash_the_old_file_is_there_and_what_was_left_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    (tmp_path / ".other").write_bytes(b"not ours")
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60, check=False).returncode == 9
    assert path.read_bytes() == b"old"
    (left,) = atomic_io.leftovers(tmp_path)
    assert left.read_bytes() == b"half of it"
    assert sorted(os.listdir(tmp_path)) == sorted([".other", "a", left.name])
    with atomic_io.atomic_write(path) as file:  # of one that is alive nothing is dropped, of the other all
        (mine,) = set(atomic_io.leftovers(tmp_path)) - {left}
        atomic_io.write_file(path, b"new")
        assert list(atomic_io.leftovers(tmp_path)) == [mine]
        file.write(b"newer")
    assert path.read_bytes() == b"newer"
    assert sorted(os.listdir(tmp_path)) == [".other", "a"]


KILLED_IN_A_FOLDER = KILLED.replace("atomic_write", "atomic_directory").replace(
    "as file:", "as folder:\n    file = open(folder / 'b', 'wb')"
)


def test_after_a_crash_what_was_left_of_a_folder_goes_when_it_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert (
        subprocess.run([sys.executable, "-c", KILLED_IN_A_FOLDER, str(path)], timeout=60, check=False).returncode == 9
    )
    (left,) = atomic_io.leftovers(tmp_path)
    assert (left / "b").read_bytes() == b"half of it"
    (tmp_path / f".a.{'0' * 8}{atomic_io.TEMPORARY_SUFFIX}").symlink_to(tmp_path)  # never followed
    with atomic_io.atomic_directory(path) as folder:
        assert not left.exists()
        with atomic_io.atomic_directory(path) as other:  # of one that is alive nothing is dropped
            (other / "b").write_bytes(b"first")
        (folder / "b").write_bytes(b"new")
        (path / "b").unlink()
    assert (path / "b").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == [f".a.{'0' * 8}{atomic_io.TEMPORARY_SUFFIX}", "a"]


def test_what_a_user_asked_for_fails_as_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    atomic_io.write_file(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(FULL))
        with pytest.raises(DataError, match=r"a: cannot be written \(No space left on device\)"):
            atomic_io.write_file(path, b"new")
        with pytest.raises(DataError, match=r"a: cannot be written"), atomic_io.atomic_output(path) as file:
            file.write(b"new")
    with pytest.raises(ValueError, match="mine"), atomic_io.atomic_output(path):
        raise ValueError("mine")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_what_a_run_writes_fails_as_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    atomic_io.write_json(tmp_path / "a.json", [1])
    monkeypatch.setattr(os, "fsync", failing(FULL))
    with pytest.raises(CheckpointError, match=r"cannot write \(No space left on device\)\. What was saved before is"):
        atomic_io.write_json(tmp_path / "a.json", [2])
    assert json.loads((tmp_path / "a.json").read_text()) == [1]
    assert os.listdir(tmp_path) == ["a.json"]


# ---------------------------------------------------------------- locked

HOLD = """
import sys
from pathlib import Path
from partly import files
with files.locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_holder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "1"
    with atomic_io.locked(folder):
        assert folder.is_dir()
        with (
            pytest.raises(CheckpointError, match="another process is training in this folder"),
            atomic_io.locked(folder),
        ):
            raise AssertionError("both hold it")
        with atomic_io.locked(tmp_path / "run" / "2"):
            pass
    with atomic_io.locked(folder):
        pass
    with pytest.raises(KeyError), atomic_io.locked(folder):
        raise KeyError
    with atomic_io.locked(folder):
        pass


@pytest.mark.parametrize("killed", [True, False])
def test_the_lock_ends_with_its_process(tmp_path: Path, killed: bool) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(CheckpointError, match="another process"), atomic_io.locked(tmp_path):
            pass
        if killed:
            holder.kill()
        holder.communicate(timeout=60)
    with atomic_io.locked(tmp_path):
        pass


def test_a_folder_that_cannot_be_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    with pytest.raises(CheckpointError, match="cannot write"), atomic_io.locked(tmp_path / "a" / "b"):
        pass


# ---------------------------------------------------------------- sealed

RECORD = {"name": "é 🐈", "epoch": 12, "scores": [0.25, None, -3], "done": True, "nested": {"a": {"b": []}}}
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text("abc"), values, max_size=4))
def test_what_is_sealed_comes_back(tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("sealed") / "a.json"
    atomic_io.write_checksummed(path, value)
    assert atomic_io.read_checksummed(path) == value


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    atomic_io.write_checksummed(path, RECORD)
    whole = path.read_bytes()
    assert atomic_io.read_checksummed(path) == RECORD
    for place in range(len(whole)):
        for flip in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
            with pytest.raises(CheckpointError, match=r"a\.json: .*Restore it from a copy"):
                atomic_io.read_checksummed(path)


def test_no_cut_goes_unnoticed_but_that_of_the_last_line_break(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    atomic_io.write_checksummed(path, RECORD)
    whole = path.read_bytes()
    for end in range(len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(CheckpointError):
            atomic_io.read_checksummed(path)
    path.unlink()
    with pytest.raises(CheckpointError, match="cannot be read"):
        atomic_io.read_checksummed(path)


@pytest.mark.parametrize("text", ["[]", "1", "null", '"sha256"', "{}", '{"sha256": null}', '{"a": 1}'])
def test_what_was_never_sealed_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(CheckpointError, match="damaged or edited"):
        atomic_io.read_checksummed(tmp_path / "a.json")


# ---------------------------------------------------------------- digests and arrays


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_digests(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "a").write_bytes(content)
    assert atomic_io.sha256(content) == atomic_io.sha256_of(tmp_path / "a") == hashlib.sha256(content).hexdigest()


@given(
    hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.int8, np.dtype(">f8"), np.bool_]),
        st.tuples(st.integers(0, 7), st.integers(0, 3)) | st.tuples(st.integers(1, 5), st.just(2), st.just(3)),
    ),
    st.integers(1, 4),
    st.booleans(),
)
def test_blocks_are_read_back_as_numpy_saves_them(x: np.ndarray, size: int, fortran: bool) -> None:
    stream, saved = io.BytesIO(), io.BytesIO()
    source = np.asfortranarray(x) if fortran else x
    atomic_io.write_npy(stream, x.shape, x.dtype, (source[i : i + size] for i in range(0, len(x), size)))
    np.save(saved, x)
    found, expected = (np.load(io.BytesIO(one.getvalue()), allow_pickle=False) for one in (stream, saved))
    assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def test_blocks_of_another_type_are_converted(tmp_path: Path) -> None:
    with (tmp_path / "a.npy").open("wb") as file:
        atomic_io.write_npy(file, (2, 2), np.dtype(np.float16), [np.array([[1, 2]]), np.array([[0.1, 4]])])
    found = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert found.dtype == np.float16
    assert found.tolist() == [[1, 2], [np.float16(0.1), 4]]
