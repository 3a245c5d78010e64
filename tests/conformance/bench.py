"""The bench on which a method is tested: small pools, short runs, and eyes that see what a method holds on to."""

from __future__ import annotations

import atexit
import copy
import importlib.util
import inspect
import random
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from partly import methods
from partly.clock import Clock
from partly.engine import training
from partly.images.augmentation import Augmentation
from partly.images.worker import ImageLocation
from partly.items import ImageFiles, ImageSource, Items, Statistics, as_items
from partly.labels import Labels
from partly.method import Method, Task
from partly.methods import MethodInfo
from partly.pool import Batch, Pool
from plans import task_of

ITEMS, LABELS, FEATURES, BATCH, EPOCHS = 22, 5, 6, 8, 2  # three steps an epoch, the last one smaller


def info_of(path: Path) -> MethodInfo:
    """A method file that lies anywhere."""
    name = f"{path.parent.name}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return methods.read(module)


# -------------------------------------------------------------------- data


def truth(items: int = ITEMS, labels: int = LABELS) -> np.ndarray:
    """+1 and -1; every label has both where there are two items."""
    z = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), (items, labels))
    z[:2] = np.array([[1], [-1]], np.int8)[:items]
    return z


def observed(items: int = ITEMS, labels: int = LABELS, share: float = 0.6) -> np.ndarray:
    """The truth with holes; the first two items stay wholly known."""
    z = truth(items, labels)
    z[2:][np.random.default_rng(2).random((max(items - 2, 0), labels)) > share] = 0
    return z


def features(items: int = ITEMS, labels: int = LABELS, width: int = FEATURES) -> Tensor:
    """Features from which the truth can be learned."""
    rng = np.random.default_rng(3)
    x = truth(items, labels) @ rng.normal(size=(labels, width)) + 0.1 * rng.normal(size=(items, width))
    return torch.from_numpy(x.astype(np.float32))


def make_pool(z: np.ndarray | None = None, items: Items | None = None, batch_size: int = BATCH) -> Pool:
    z = observed() if z is None else z
    return Pool(as_items(features(*z.shape)) if items is None else items, Labels.from_ternary(z), batch_size)


def x_of(items: Items) -> Tensor:
    """All of them at once, as nobody but a test may ask for them; a copy. [N, ...]"""
    return items.take(torch.arange(len(items)))


@dataclass(frozen=True)
class WatchedPool(Pool):
    """A pool that remembers every batch it gave away, and what was in it."""

    given: list[tuple[Batch, Batch]] = field(default_factory=list)

    def _batch(self, *parts: Tensor) -> Batch:
        batch = super()._batch(*parts)
        self.given.append((batch, Batch(batch.x.clone(), batch.z.clone(), batch.index.clone())))
        return batch


@dataclass(frozen=True, eq=False)
class OnDisk:
    """Items that are never in memory together: each is read from a file, and at most a batch of them at a time."""

    path: Path
    shape: tuple[int, ...]
    statistics: Statistics
    known_digest: str
    rows: np.ndarray
    kind: str = "features"
    names: None = None

    @classmethod
    def written(cls, items: Items, path: Path) -> OnDisk:
        """The same items, in a file."""
        path.write_bytes(x_of(items).numpy().tobytes())
        return cls(path, items.shape, items.statistics, items.digest(), np.arange(len(items)))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: slice | np.ndarray) -> OnDisk:
        return replace(self, rows=self.rows[index], known_digest=f"{self.known_digest} {self.rows[index].tolist()}")

    def take(self, index: Tensor | slice) -> Tensor:
        rows = self.rows[index if isinstance(index, slice) else index.numpy()]
        if len(rows) > BATCH:
            raise MemoryError(f"{len(rows)} items are asked for at once, but {BATCH} are a batch")
        x = np.empty((len(rows), *self.shape), np.float32)
        with self.path.open("rb") as file:
            for place, row in enumerate(rows.tolist()):
                file.seek(row * x[0].nbytes)
                x[place] = np.frombuffer(file.read(x[0].nbytes), np.float32).reshape(self.shape)
        return torch.from_numpy(x)

    def digest(self) -> str:
        return self.known_digest


@cache
def picture_files() -> ImageFiles:
    """Small pictures in files, augmented wherever there is a draw: they come from processes of their own."""
    folder = Path(tempfile.mkdtemp(prefix="conformance"))
    atexit.register(shutil.rmtree, folder)
    rng = np.random.default_rng(5)
    paths = [str(folder / f"{i}.png") for i in range(ITEMS)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (20, 18, 3), dtype=np.uint8)).save(path)
    items = ImageFiles(ImageSource(list(map(ImageLocation, paths)), list(map(str, range(ITEMS))), str(folder)))
    return items.resize(16).augment(Augmentation())


# -------------------------------------------------------------------- runs


def make_task(pool: Pool, **changes: Any) -> Task:
    """A task with small networks unless another head is asked for; with dropout, as the real ones.

    It has items of its own, so that nothing but the pool leads to the pool's.
    """
    small = {} if "head" in changes else {"head_settings": {"hidden": 16}}
    return task_of(copy.deepcopy(pool.items), pool.labels.shape[1], **{"observed": pool.labels, **small, **changes})


def built(info: MethodInfo, task: Task) -> Method:
    """The method, untrained, with its default settings."""
    return info.build(task, info.complete({}))


def make_clock(pool: Pool, seed: int = 0, epochs: int = EPOCHS) -> Clock:
    return Clock(seed, epochs, pool.steps)


@contextmanager
def in_case(info: MethodInfo, case: str) -> Iterator[None]:
    """Whatever a method throws becomes a rejection that says in which case."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{info.name}, {case}: {type(error).__name__}: {error}") from error


def trained(
    info: MethodInfo,
    pool: Pool | None = None,
    case: str = "training",
    *,
    seed: int = 0,
    epochs: int = EPOCHS,
    callback: training.StepCallback | None = None,
    **task: Any,
) -> Method:
    """The method after a short run on the real loop."""
    pool = make_pool() if pool is None else pool
    with in_case(info, case):
        method = built(info, make_task(pool, seed=seed, **task))
        training.train(method, pool, Clock(seed, epochs, method.steps(pool)), callback=callback)
    return method


@contextmanager
def global_randomness(seed: int) -> Iterator[None]:
    """Run with the global generators at some other place, and put them back."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        torch.set_rng_state(before[2])


def randomness() -> dict[str, object]:
    """Where the global generators are."""
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return {
        "random": random.getstate(),
        "numpy": (kind, keys.tobytes(), *rest),
        "torch": torch.get_rng_state().numpy().tobytes(),
    }


# -------------------------------------------------------------------- looking


def bits(tensor: Tensor) -> tuple[str, tuple[int, ...], bytes]:
    tensor = tensor.detach().cpu().contiguous()
    return str(tensor.dtype), tuple(tensor.shape), tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


def copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def differing(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> list[str]:
    """Names under which the two do not hold the same bits."""
    return [name for name in sorted({*a, *b}) if name not in a or name not in b or bits(a[name]) != bits(b[name])]


def not_finite(tensors: Mapping[str, Tensor]) -> list[str]:
    return [name for name, t in tensors.items() if t.is_floating_point() and not t.isfinite().all()]


def logits_of(method: Method, x: Tensor) -> Tensor:
    method.eval()
    with torch.no_grad():
        return method(x)


def leaves(root: object, skip: Collection[int] = ()) -> Iterator[tuple[str, Any]]:
    """(path, value) of every tensor, array, number, text, ... that can be reached from an object.

    Follows attributes, containers, closures and default arguments; not classes and modules. `skip`: ids of objects
    to leave out.
    """
    seen = set(skip)
    stack = [("", root)]
    while stack:
        path, value = stack.pop()
        if id(value) in seen:
            continue
        parts = _parts(value)
        if parts is None:
            yield path, value
        else:
            seen.add(id(value))
            stack += [(f"{path}.{name}", part) for name, part in parts]


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    """What something consists of; None for a leaf."""
    if isinstance(value, Tensor | np.ndarray | np.generic | type) or inspect.ismodule(value):
        return None
    if isinstance(value, Mapping):
        return [*((f"key{i}", key) for i, key in enumerate(value)), *((str(k), part) for k, part in value.items())]
    if isinstance(value, list | tuple | set | frozenset) or type(value).__name__ == "deque":
        return [(str(i), part) for i, part in enumerate(value)]
    if inspect.isroutine(value):
        cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        kept = [getattr(value, name, None) for name in ("__self__", "__defaults__", "__kwdefaults__", "__dict__")]
        return [(str(i), part) for i, part in enumerate([*kept, *cells])]
    if hasattr(value, "__dict__"):
        return list(vars(value).items())
    slots = [name for name in getattr(type(value), "__slots__", ()) if hasattr(value, name)]
    return [(name, getattr(value, name)) for name in slots] or None


def plain(value: Any) -> object:
    """A leaf as something that can be kept and compared."""
    if isinstance(value, Tensor):
        return bits(value)
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, torch.Generator):
        return bits(value.get_state())
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, random.Random):
        return value.getstate()
    return value if isinstance(value, int | float | str | bytes) else repr(value)


def size(value: Any) -> int:
    """Bytes of a leaf."""
    if isinstance(value, Tensor | np.ndarray):
        return value.nbytes
    return 8 if isinstance(value, int | float | np.generic) else 0
