"""Durable saving: what was saved is read back whole, or the damage is noticed and the older checkpoint serves."""

# Long because every kind of damage and every disk error has its own case.

from __future__ import annotations

import ast
import errno
import io
import json
import os
import re
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import partly
from partly import atomic_io
from partly.engine import checkpoint
from partly.errors import CheckpointError


def save(folder: Path, number: int) -> None:
    checkpoint.save(folder, {"w": torch.full((4, 3), float(number)), "n": torch.tensor(number)}, {"step": number})


def loaded(folder: Path) -> int:
    """The number of the checkpoint that `load` gives; its tensors must be the ones saved with it."""
    found = checkpoint.load(folder)
    assert found is not None
    tensors, record, _ = found
    assert torch.equal(tensors["w"], torch.full((4, 3), float(record["step"])))
    assert tensors["n"].item() == record["step"]
    return int(record["step"])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def put(folder: Path, files: dict[str, bytes]) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, content in atomic_io.items():
        (folder / name).write_bytes(content)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A folder with checkpoints 1 and 2."""
    save(tmp_path, 1)
    save(tmp_path, 2)
    return tmp_path


# -------------------------------------------------------------------- saving and loading


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    tensors = {
        "float": torch.randn(5, 3),
        "transposed": torch.randn(4, 6).T,
        "half": torch.randn(7).to(torch.bfloat16),
        "double": torch.tensor([float("nan"), float("inf"), -0.0], dtype=torch.float64),
        "ternary": torch.tensor([[1, -1, 0]], dtype=torch.int8),
        "mask": torch.tensor([True, False]),
        "scalar": torch.tensor(2**40),
        "empty": torch.empty(0, 3),
    }
    record = {"epoch": 3, "words": "ä\n\"'", "history": [{"loss": 0.1 + 0.2, "score": None}]}
    checkpoint.save(tmp_path, tensors, record)
    found = checkpoint.load(tmp_path)
    assert found is not None
    assert found[2] == []
    assert {key: found[1][key] for key in record} == record
    assert found[0].keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[0][name].dtype == tensor.dtype
        assert found[0][name].shape == tensor.shape
        assert (
            found[0][name]
            .view(torch.uint8 if tensor.ndim else tensor.dtype)
            .equal(tensor.contiguous().view(torch.uint8 if tensor.ndim else tensor.dtype))
        )


def test_an_empty_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert checkpoint.load(tmp_path) is None
    assert checkpoint.load(tmp_path / "nowhere") is None


def test_the_newest_two_are_kept(tmp_path: Path) -> None:
    for number in range(1, 6):
        save(tmp_path, number)
        assert loaded(tmp_path) == number
    names = {f"checkpoint-00000{n}.{kind}" for n in (4, 5) for kind in ("json", "safetensors")}
    assert set(contents(tmp_path)) == names


def test_numbers_are_compared_as_numbers(tmp_path: Path) -> None:
    save(tmp_path, 7)
    for path in list(tmp_path.iterdir()):
        path.rename(path.with_name(path.name.replace("000001", "999999")))
    save(tmp_path, 8)
    save(tmp_path, 9)
    assert loaded(tmp_path) == 9
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == ["checkpoint-1000000", "checkpoint-1000001"]


def test_a_tensor_file_without_its_record_does_not_count(two: Path) -> None:
    (two / "checkpoint-000002.json").unlink()
    assert loaded(two) == 1


def test_what_is_forced_to_disk_when(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content before name, name before the next file, the oldest dropped last: true after a power cut as well."""
    trace: list[str] = []
    fsync, replace, unlink = os.fsync, os.replace, Path.unlink

    def name_of(handle: int) -> str:
        name = Path(os.readlink(f"/proc/self/fd/{handle}")).name
        return re.sub(r"[0-9a-f]{8}(?=\.partly-new)", "?", name)  # drawn by chance

    monkeypatch.setattr(os, "fsync", lambda h: (trace.append(f"sync {name_of(h)}"), fsync(h))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (trace.append(f"name {b.name}"), replace(a, b))[1])
    monkeypatch.setattr(
        Path, "unlink", lambda self, **more: (trace.append(f"drop {self.name}"), unlink(self, **more))[1]
    )
    save(two, 3)
    new, old = "checkpoint-000003", "checkpoint-000001"
    beside = atomic_io.TEMPORARY_SUFFIX
    assert trace == [
        f"sync .{new}.safetensors.?{beside}",
        f"name {new}.safetensors",
        f"sync {two.name}",
        f"sync .{new}.json.?{beside}",
        f"name {new}.json",
        f"sync {two.name}",
        f"drop {old}.json",
        f"drop {old}.safetensors",
    ]


# -------------------------------------------------------------------- damage


def damages(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Every length but the whole, and a flipped bit in every byte (in the last ones, every bit)."""
    rng = np.random.default_rng(0)
    for length in range(len(content)):
        yield f"cut at {length}", content[:length]
    for place in range(len(content)):
        for bit in range(8) if place >= len(content) - 70 else [int(rng.integers(8))]:
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            yield f"bit {bit} of byte {place}", bytes(changed)
    yield "longer", content + b"\n"


@pytest.mark.parametrize("kind", ["json", "safetensors"])
def test_every_damage_is_noticed_and_the_older_one_serves(two: Path, kind: str) -> None:
    path = two / f"checkpoint-000002.{kind}"
    whole = path.read_bytes()
    count = 0
    for what, damaged in damages(whole):
        path.unlink()  # a new file is written much faster than an old one is cut
        path.write_bytes(damaged)
        found = checkpoint.load(two)
        assert found is not None
        assert found[1]["step"] == 1, what
        assert len(found[2]) == 1, what
        assert "checkpoint-000002" in found[2][0], what
        count += 1
    assert count > 2 * len(whole)
    path.write_bytes(whole)
    assert loaded(two) == 2


def test_tensors_of_another_checkpoint_are_noticed(two: Path) -> None:
    (two / "checkpoint-000002.safetensors").write_bytes((two / "checkpoint-000001.safetensors").read_bytes())
    assert loaded(two) == 1


def test_a_missing_tensor_file_is_noticed(two: Path) -> None:
    (two / "checkpoint-000002.safetensors").unlink()
    assert loaded(two) == 1


def test_a_record_of_another_format_is_not_read(two: Path) -> None:
    path = two / "checkpoint-000002.json"
    body = path.read_bytes()[: -len(checkpoint._seal(b""))].replace(b'"format": 3', b'"format": 99')
    path.write_bytes(checkpoint._seal(body))
    found = checkpoint.load(two)
    assert found is not None
    assert found[1]["step"] == 1
    assert "has format 99; this version reads 3" in found[2][0]


def test_both_damaged_is_an_error_and_changes_nothing(two: Path) -> None:
    for path in two.glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    before = contents(two)
    with pytest.raises(CheckpointError) as caught:
        checkpoint.load(two)
    assert str(two) in str(caught.value)
    for number in (1, 2):
        assert f"checkpoint-00000{number}.safetensors is damaged" in str(caught.value)
    assert contents(two) == before


# -------------------------------------------------------------------- after a crash


def test_clean_drops_leftovers_sets_damage_aside_and_leaves_the_rest(two: Path) -> None:
    mine = {"notes.txt": b"n", "checkpoint-best.safetensors": b"b", "checkpoint-list.json": b"{}", ".keep": b""}
    leftovers = [
        f".checkpoint-000003.safetensors{atomic_io.TEMPORARY_SUFFIX}",
        f".run.json{atomic_io.TEMPORARY_SUFFIX}",
    ]
    for name, content in (mine | dict.fromkeys([*leftovers, "checkpoint-000003.safetensors"], b"half")).items():
        (two / name).write_bytes(content)
    damaged = two / "checkpoint-000002.json"
    damaged.write_bytes(damaged.read_bytes()[:50])
    checkpoint.clean(two)
    after = contents(two)
    assert set(after) == {
        *mine,
        "checkpoint-000001.json",
        "checkpoint-000001.safetensors",
        "damaged-checkpoint-000002.json",
        "damaged-checkpoint-000002.safetensors",
    }
    assert {name: after[name] for name in mine} == mine


def test_the_write_after_a_crash_works_and_never_costs_the_whole_one(two: Path) -> None:
    """A damaged checkpoint must not count as one of the two that are kept."""
    for path in two.glob("checkpoint-000002.*"):
        path.write_bytes(b"torn")
    assert loaded(two) == 1
    checkpoint.clean(two)
    save(two, 3)
    assert loaded(two) == 3
    (two / "checkpoint-000002.json").unlink()  # the new one took the number of the damaged one
    assert loaded(two) == 1


# -------------------------------------------------------------------- disks that refuse


class Disk:
    """Stands between `files` and the disk, counts the calls and fails at one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: int, error: int) -> None:
        self.calls, self.fail_at, self.error = 0, fail_at, error
        for name in ("fsync", "replace"):
            monkeypatch.setattr(atomic_io.os, name, self.counted(getattr(os, name)))
        monkeypatch.setattr(atomic_io, "open", self.opened, raising=False)

    def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any) -> Any:
            self.count()
            return call(*arguments)

        return counting

    def count(self) -> None:
        self.calls += 1
        if self.calls == self.fail_at:
            raise OSError(self.error, os.strerror(self.error))

    def opened(self, path: Path, mode: str, **how: Any) -> io.FileIO:
        if mode == "rb":
            return io.FileIO(path, mode, **how)
        self.count()
        count = self.count

        class Halfway(io.FileIO):
            def write(self, content: Any) -> int:
                super().write(content[: len(content) // 2])
                count()
                return super().write(content[len(content) // 2 :])

        return Halfway(path, mode)


CALLS_OF_A_SAVE = 13  # open, write (of tensors four times), sync, rename, sync the folder; twice


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("fail_at", range(1, CALLS_OF_A_SAVE + 1))
def test_a_disk_that_refuses_costs_no_earlier_checkpoint(
    two: Path, monkeypatch: pytest.MonkeyPatch, fail_at: int, error: int
) -> None:
    earlier = contents(two)
    with monkeypatch.context() as patch:
        disk = Disk(patch, fail_at, error)
        with pytest.raises(CheckpointError) as caught:
            save(two, 3)
    assert disk.calls == fail_at
    assert str(two) in str(caught.value)
    assert os.strerror(error) in str(caught.value)
    after = contents(two)
    assert {name: after[name] for name in earlier} == earlier
    assert not list(two.glob(f".*{atomic_io.TEMPORARY_SUFFIX}"))
    # Only where the very last call failed, the folder's own sync, is the new one there already.
    assert loaded(two) == (3 if fail_at == CALLS_OF_A_SAVE else 2)
    save(two, 4)
    assert loaded(two) == 4


def test_a_save_makes_as_many_disk_calls_as_are_tested(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch, fail_at=0, error=0)
    save(two, 3)
    assert disk.calls == CALLS_OF_A_SAVE


def test_a_file_system_that_takes_only_a_part(two: Path) -> None:
    """For real: the kernel writes up to the limit and refuses the rest."""
    earlier = contents(two)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(CheckpointError, match="cannot write") as caught:
            checkpoint.save(two, {"w": torch.zeros(10_000)}, {"step": 3})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(two) in str(caught.value)
    assert contents(two) == earlier


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path / "file" / "run", tmp_path / "file"):
        with pytest.raises(CheckpointError, match="cannot write") as caught, atomic_io.locked(folder):
            pass
        assert str(folder) in str(caught.value)


def test_write_json_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    atomic_io.write_json(path, {"a": "ü"})
    for fail_at in range(1, 5):
        with monkeypatch.context() as patch:
            Disk(patch, fail_at, errno.ENOSPC)
            with pytest.raises(CheckpointError, match="No space left"):
                atomic_io.write_json(path, {"a": "other"})
        assert json.loads(path.read_text("utf-8")) == {"a": "ü"}
        assert set(contents(tmp_path)) == {"run.json"}


# -------------------------------------------------------------------- one at a time


def test_a_folder_has_one_trainer_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    with atomic_io.locked(folder):
        with pytest.raises(CheckpointError, match="another process is training") as caught, atomic_io.locked(folder):
            pass
        assert str(folder) in str(caught.value)
    with atomic_io.locked(folder):
        pass  # free again


def test_the_lock_ends_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="inside"), atomic_io.locked(tmp_path):
        raise RuntimeError("inside")
    with atomic_io.locked(tmp_path):
        pass


# -------------------------------------------------------------------- nothing that runs code


EXECUTING = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}


def executing(source: str) -> list[str]:
    """Where a source file reads something that could run code: modules, eval and exec, torch.load, allow_pickle.
    torch's own reader of plain weights, which knows tensors and nothing else, is no such thing."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            found += [f"{node.lineno}: import {m}" for m in modules if EXECUTING & set(m.split("."))]
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called == "torch.load" and any(ast.unparse(k) == "weights_only=True" for k in node.keywords):
                continue
            if called in ("eval", "exec", "compile", "__import__") or called.startswith(("torch.load", "torch.save")):
                found.append(f"{node.lineno}: {called}")
            allowed = [k.value for k in node.keywords if k.arg == "allow_pickle"]
            if any(not (isinstance(v, ast.Constant) and v.value is False) for v in allowed):
                found.append(f"{node.lineno}: allow_pickle")
    return found


def test_no_pickle_and_nothing_like_it_anywhere() -> None:
    root = Path(partly.__file__).parent
    atomic_io = sorted(root.rglob("*.py"))
    assert len(atomic_io) > 20
    found = [f"{path.relative_to(root)}:{place}" for path in atomic_io for place in executing(path.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    "bad",
    [
        "import pickle",
        "from joblib import load",
        "from sklearn.externals import joblib",
        "x = eval('1')",
        "def f():\n    exec(text)",
        "torch.load('x.pt')",
        "torch.load('x.pt', weights_only=False)",
        "torch.save(model, 'x.pt')",
        "numpy.load('x.npy', allow_pickle=True)",
        "numpy.load('x.npy', allow_pickle=flag)",
    ],
)
def test_the_search_finds_what_it_looks_for(bad: str) -> None:
    assert executing(bad)


def test_the_search_lets_the_rest_pass() -> None:
    assert not executing("model.eval()\nnumpy.load('x.npy', allow_pickle=False)\nimport json\nre.compile('x')")


def test_every_test_that_the_promises_name_is_there() -> None:
    root = Path(__file__).parents[2]
    text = (root / "docs/guarantees.md").read_text("utf-8")
    promised, tested = (re.findall(r"^- \*\*(\d+)\.\*\* ", part, re.M) for part in text.split("## Tests"))
    assert promised == tested
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) > 40
    lost = [f"{path}::{name}" for path, name in named if f"def {name}(" not in (root / path).read_text("utf-8")]
    assert lost == []
