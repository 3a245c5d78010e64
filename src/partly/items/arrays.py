"""Items that lie in one array, in memory or mapped from a file: features [N, D], or pictures [N, H, W, C] of uint8."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.errors import DataError, listing
from partly.items.conditioning import UNCONDITIONED, Conditioning, choose_conditioning, warn_of_conditioning
from partly.items.contract import Index, Kind, Positions, Statistics, narrowed
from partly.items.encoding import Encoding
from partly.labels.names import Names

BLOCK = 1 << 22  # numbers worked on at a time: sums are in float64
MAX_SAMPLE_ITEMS = 1 << 12  # looked at to tell extreme items from others
LARGEST = 1e37  # so that float32 also holds how far two features are apart, and one over that
REFUSED = f"are missing (NaN), infinite or too large (beyond {LARGEST:.0e})"
INFINITE = f"are infinite or too large (beyond {LARGEST:.0e})"
WAY_OUT = "Fill them in (sklearn.impute) or leave these items out."
Place = Callable[[int, int], str]


@dataclass(frozen=True, eq=False)
class Arrays:
    """Rows of an array, all or some. What `features` and `pictures` below make is checked; so is, while its statistics
    are measured, what is mapped from a file."""

    array: npt.NDArray[Any]
    kind: Kind = "features"
    names: Names | None = None
    rows: Positions | None = None  # None: all
    file_digest: str | None = None  # where the array is that of a file that carries its own
    where: str = "X"  # what to call them where something is wrong
    conditioning: Conditioning | None = None  # applied before numbers become float32; None: not yet chosen
    encoding: Encoding | None = None  # how these features were made of the columns of a table
    in_memory: bool = False  # may be copied as a whole, and its digest is that of its numbers in float32

    def __len__(self) -> int:
        return len(self.array) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        rest = self.array.shape[1:]
        return (rest[2], *rest[:2]) if self.kind == "pictures" else rest

    def __getitem__(self, index: Index) -> Arrays:
        rows = narrowed(self.rows, index, len(self))
        return replace(self, rows=rows)

    def take(self, index: Tensor | slice) -> Tensor:
        return self._tensor(self._part(index if isinstance(index, slice) else index.numpy()))

    def _part(self, index: Index) -> npt.NDArray[Any]:
        rows = index if self.rows is None else self.rows[index]
        if isinstance(rows, slice) or not self.array.flags.c_contiguous:  # of those, `take` would copy the whole first
            return self.array[rows]
        return self.array.take(rows, axis=0)

    def _tensor(self, part: npt.NDArray[Any]) -> Tensor:
        if self.kind == "pictures":
            return torch.from_numpy(part).permute(0, 3, 1, 2)
        return torch.from_numpy(self.conditioning.apply(part) if self.conditioning else _as_float32(part))

    # ---------------------------------------------------------------- numbers that float32 cannot hold as they are

    @cached_property
    def conditioned(self) -> Arrays:
        """The same features as a model is trained on them: conditioned where float32 needs that, else cast once where
        they are in memory."""
        if self.kind != "features" or self.conditioning is not None or not len(self):
            return self
        exact = self._exact_statistics
        mean, scale = exact.mean.numpy(), exact.scale.numpy()
        rounding = np.finfo(self.array.dtype if self.array.dtype.kind == "f" else np.float64).eps
        found = choose_conditioning(mean, scale, self._sample(), float(rounding))
        if found is not None:
            rounded = np.can_cast(self.array.dtype, np.float32)
            warn_of_conditioning(found, mean, scale, self.names, self.where, rounded)
            return replace(self, conditioning=found)
        if not self.in_memory or self.array.dtype == np.float32:
            return self
        return replace(self, array=_as_float32(self._part(slice(None))), rows=None)

    def conditioned_as(self, conditioning: Conditioning | None) -> Arrays:
        """The same features as a model takes that was trained on others."""
        return replace(self, conditioning=conditioning or UNCONDITIONED)

    @property
    def exact(self) -> npt.NDArray[Any]:
        """All of them in memory, as they were given: float32, or float64 where that may not hold them."""
        part = self._part(slice(None))
        return _as_float32(part) if np.can_cast(part.dtype, np.float32) else part.astype(np.float64)

    @cached_property
    def _exact_statistics(self) -> Statistics:
        """Mean and scale of the numbers as they were given."""
        if np.can_cast(self.array.dtype, np.float32):
            return self.statistics
        sums = Sums()
        for start, part in self._blocks():
            self._check(start, part)
            sums.add(torch.from_numpy(part.astype(np.float64)))
        return sums.statistics()

    def _sample(self) -> npt.NDArray[np.float64]:
        count = min(len(self), MAX_SAMPLE_ITEMS, max(1, BLOCK // max(1, self.shape[0])))
        return self._part(np.linspace(0, len(self) - 1, count).astype(np.int64)).astype(np.float64)

    # ---------------------------------------------------------------- one pass over all of them

    @cached_property
    def statistics(self) -> Statistics:
        sha = None if "_content_digest" in vars(self) or self.file_digest else self._sha()
        sums = Sums()
        for start, part in self._blocks():
            self._check(start, part)
            sums.add(self._tensor(part))
            if sha is not None:
                sha.update(_bytes(self._identity(part)))
        if sha is not None:
            vars(self)["_content_digest"] = sha.hexdigest()
        return sums.statistics()

    def _check(self, start: int, part: npt.NDArray[Any]) -> None:
        if not usable(part):
            _refuse(part, self.where, self.names, items=self._positions(start, len(part)))

    def _identity(self, part: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The numbers that decide what is learned: of features in memory those in float32, unless conditioned."""
        return _as_float32(part) if self._is_cast else part

    @property
    def _is_cast(self) -> bool:
        return self.in_memory and self.kind == "features" and not self.conditioning

    def _positions(self, start: int, count: int) -> npt.NDArray[Any]:
        """Of some items among all that the array holds."""
        return np.arange(start, start + count) if self.rows is None else self.rows[start : start + count]

    def digest(self) -> str:
        if self.encoding is not None:
            return hashlib.sha256(f"{self.encoding.digest()}{self._content_digest}".encode()).hexdigest()
        if self.file_digest is None:
            return self._content_digest
        if self.rows is None or np.array_equal(self.rows, np.arange(len(self.array))):
            return self.file_digest
        return hashlib.sha256(self.file_digest.encode() + self.rows.tobytes()).hexdigest()

    @cached_property
    def _content_digest(self) -> str:
        sha = self._sha()
        for _, part in self._blocks():
            sha.update(_bytes(self._identity(part)))
        return str(sha.hexdigest())

    def _sha(self) -> Any:
        dtype = np.dtype(np.float32) if self._is_cast else self.array.dtype
        return hashlib.sha256(f"{(len(self), *self.array.shape[1:])}{dtype.newbyteorder('<').str}".encode())

    def _blocks(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        step = max(1, BLOCK // max(1, int(np.prod(self.array.shape[1:]))))
        for start in range(0, len(self), step):
            yield start, self._part(slice(start, start + step))


def _as_float32(part: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """As float32, in rows that torch may write to; the same array where it is that already."""
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and is refused as such
        return np.require(part, np.float32, ["C", "W"])


def _bytes(part: npt.NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(part, part.dtype.newbyteorder("<")).data


class Sums:
    """Mean and scale of block after block: each block about its own mean, and then all about their common one."""

    def __init__(self) -> None:
        self.count = 0.0
        self.mean: Tensor | float = 0.0
        self.squares: Tensor | float = 0.0  # sum of squared distances from the mean

    def add(self, x: Tensor) -> None:
        """x: [B, D], or [B, C, H, W]."""
        x = x.contiguous()
        dims = [d for d in range(x.ndim) if d != 1]
        count = x.numel() / x.shape[1]
        mean = x.sum(dim=dims, dtype=torch.float64) / count
        shaped = mean.view(-1, *[1] * (x.ndim - 2))
        self.merge(count, mean, ((x.double() - shaped) ** 2).sum(dim=dims))

    def merge(self, count: float, mean: Tensor, squares: Tensor) -> None:
        if not self.count:
            self.count, self.mean, self.squares = count, mean, squares
            return
        total, apart = self.count + count, mean - self.mean
        self.squares = self.squares + squares + apart**2 * (self.count * count / total)
        self.mean = self.mean + apart * (count / total)
        self.count = total

    def statistics(self) -> Statistics:
        mean, squares = torch.as_tensor(self.mean), torch.as_tensor(self.squares)
        return Statistics(mean, (squares / self.count).sqrt())


# ---------------------------------------------------------------- the door


def features(x: Any, where: str = "X", names: Names | None = None, place: Place | None = None) -> Arrays:
    """A matrix of numbers as items. Nothing is copied that float32 cannot hold exactly: `Arrays.conditioned` decides
    what becomes of it. `place(i, j)` says where a number stands."""
    x = np.asarray(x)
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise DataError(f"{where}: features must be a matrix of numbers, items x features; got {x.dtype} {x.shape}.")
    if not usable(x):
        _refuse(x, where, names, place)
    exact = _as_float32(x) if np.can_cast(x.dtype, np.float32) else x
    return Arrays(exact, "features", names, where=where, in_memory=True)


def usable(x: npt.NDArray[Any]) -> bool:
    """Whether all of these are numbers, and none beyond `LARGEST`; without a mask of all."""
    return not x.size or (float(x.min()) >= -LARGEST and float(x.max()) <= LARGEST)  # a NaN is both, and neither


def refuse_infinite(x: npt.NDArray[Any], where: str, names: Names | None = None, place: Place | None = None) -> None:
    """Refuse numbers that are infinite or too large; those that are missing may be."""
    if x.size and not (np.fmin.reduce(x, axis=None) >= -LARGEST and np.fmax.reduce(x, axis=None) <= LARGEST):
        present = np.where(np.isnan(x), 0.0, x)
        if not usable(present):
            _refuse(present, where, names, place, what=INFINITE)


def unusable(x: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which are not."""
    with np.errstate(over="ignore"):
        return ~(np.abs(x.astype(np.float64)) <= LARGEST)


def pictures(x: npt.NDArray[Any], where: str = "X") -> Arrays:
    """Pictures of one size."""
    if x.ndim != 4 or x.dtype != np.uint8 or x.shape[3] not in (1, 3) or min(x.shape[1:3]) < 16 or not len(x):
        raise DataError(
            f"{where}: pictures must be uint8 [N, H, W, 1 or 3], at least 16 x 16; got {x.dtype} {list(x.shape)}."
        )
    return Arrays(np.require(x, requirements=["C", "W"]), "pictures")


def _refuse(
    x: npt.NDArray[Any],
    where: str,
    names: Names | None,
    place: Place | None = None,
    items: npt.NDArray[Any] | None = None,
    what: str = REFUSED,
) -> None:
    """items: the positions of these among all."""
    bad = np.argwhere(unusable(x))
    at = range(len(x)) if items is None else items
    place = place or (lambda i, j: f"item {at[i]}, feature {names[j] if names else j}")
    raise DataError(
        f"{where}: {len(bad)} of {x.size} features {what}"
        + listing((f"{place(i, j)}: {x[i, j]:g}" for i, j in bad.tolist()), len(bad))
        + f"\n{WAY_OUT}"
    )
