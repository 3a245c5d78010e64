"""Items in one array, in memory or mapped from a file: features [N, D], or images uint8 [N, H, W, C]."""

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
from partly.items.contract import Index, Kind, Positions, Statistics, select_rows
from partly.items.encoding import Encoding
from partly.labels.names import Names

BLOCK = 1 << 22  # numbers processed at a time: sums are in float64
MAX_SAMPLE_ITEMS = 1 << 12  # sampled to detect extreme items
MAX_MAGNITUDE = 1e37  # float32 then also holds differences of features, and their reciprocals
REFUSED = f"are missing (NaN), infinite or too large (beyond {MAX_MAGNITUDE:.0e})"
INFINITE = f"are infinite or too large (beyond {MAX_MAGNITUDE:.0e})"
REMEDY = "Fill them in (sklearn.impute) or leave these items out."
Place = Callable[[int, int], str]


@dataclass(frozen=True, eq=False)
class Arrays:
    """All or some rows of an array.

    `features` and `image_array` check the numbers at once; those of a mapped file are checked when their statistics are
    measured.
    """

    array: npt.NDArray[Any]
    kind: Kind = "features"
    names: Names | None = None
    rows: Positions | None = None  # None: all
    file_digest: str | None = None  # of a mapped file that has a digest of its own
    where: str = "X"  # name in error messages
    conditioning: Conditioning | None = None  # applied before numbers become float32; None: not yet chosen
    encoding: Encoding | None = None
    in_memory: bool = False  # may be copied as a whole; its digest is that of the numbers in float32
    origin: None = None

    def __len__(self) -> int:
        return len(self.array) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        rest = self.array.shape[1:]
        return (rest[2], *rest[:2]) if self.kind == "pictures" else rest

    def __getitem__(self, index: Index) -> Arrays:
        rows = select_rows(self.rows, index, len(self))
        return replace(self, rows=rows)

    def take(self, index: Tensor | slice) -> Tensor:
        return self._tensor(self._part(index if isinstance(index, slice) else index.numpy()))

    def _part(self, index: Index) -> npt.NDArray[Any]:
        rows = index if self.rows is None else self.rows[index]
        if isinstance(rows, slice) or not self.array.flags.c_contiguous:  # `take` would copy the whole array first
            return self.array[rows]
        return self.array.take(rows, axis=0)

    def _tensor(self, part: npt.NDArray[Any]) -> Tensor:
        if self.kind == "pictures":
            return torch.from_numpy(part).permute(0, 3, 1, 2)
        return torch.from_numpy(self.conditioning.apply(part) if self.conditioning else _as_float32(part))

    # ---------------------------------------------------------------- numbers that float32 cannot hold

    @cached_property
    def prepared(self) -> Arrays:
        """The features for training: conditioned where float32 requires it, otherwise cast once if in memory."""
        if self.kind != "features" or self.conditioning is not None or not len(self):
            return self
        exact = self._exact_statistics
        mean, scale = exact.mean.numpy(), exact.scale.numpy()
        rounding = np.finfo(self.array.dtype if self.array.dtype.kind == "f" else np.float64).eps
        conditioning = choose_conditioning(mean, scale, self._sample(), float(rounding))
        if conditioning is not None:
            rounded = np.can_cast(self.array.dtype, np.float32)
            warn_of_conditioning(conditioning, mean, scale, self.names, self.where, rounded)
            return replace(self, conditioning=conditioning)
        if not self.in_memory or self.array.dtype == np.float32:
            return self
        return replace(self, array=_as_float32(self._part(slice(None))), rows=None)

    def condition_as(self, conditioning: Conditioning | None) -> Arrays:
        """Return the features with the conditioning of a trained model."""
        return replace(self, conditioning=conditioning or UNCONDITIONED)

    @property
    def exact(self) -> npt.NDArray[Any]:
        """All features in memory at their original precision: float32, or float64 where float32 may not hold them."""
        part = self._part(slice(None))
        return _as_float32(part) if np.can_cast(part.dtype, np.float32) else part.astype(np.float64)

    @cached_property
    def _exact_statistics(self) -> Statistics:
        """Mean and scale at the original precision."""
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

    # ---------------------------------------------------------------- one pass over all items

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
        if not is_usable(part):
            _refuse(part, self.where, self.names, items=self._positions(start, len(part)))

    def _identity(self, part: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The numbers that the digest covers: float32 for features in memory, unless conditioned."""
        return _as_float32(part) if self._is_cast else part

    @property
    def _is_cast(self) -> bool:
        return self.in_memory and self.kind == "features" and not self.conditioning

    def _positions(self, start: int, count: int) -> npt.NDArray[Any]:
        """Rows of the array that these items are."""
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
    """Cast to contiguous, writable float32; return the same array where it is that already."""
    with np.errstate(over="ignore"):  # numbers too large for float32 become infinite and are refused
        return np.require(part, np.float32, ["C", "W"])


def _bytes(part: npt.NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(part, part.dtype.newbyteorder("<")).data


class Sums:
    """Running mean and scale over blocks (Chan's parallel algorithm)."""

    def __init__(self) -> None:
        self.count = 0.0
        self.mean: Tensor | float = 0.0
        self.squares: Tensor | float = 0.0  # sum of squared distances from the mean

    def add(self, x: Tensor) -> None:
        """Add a block [B, D] or [B, C, H, W]."""
        x = x.contiguous()
        dims = [d for d in range(x.ndim) if d != 1]
        count = x.numel() / x.shape[1]
        mean = x.sum(dim=dims, dtype=torch.float64) / count
        distance = x.to(torch.float64, copy=True)
        distance -= mean.view(-1, *[1] * (x.ndim - 2))
        distance *= distance
        self.merge(count, mean, distance.sum(dim=dims))

    def merge(self, count: float, mean: Tensor, squares: Tensor) -> None:
        if not self.count:
            self.count, self.mean, self.squares = count, mean, squares
            return
        total, difference = self.count + count, mean - self.mean
        self.squares = self.squares + squares + difference**2 * (self.count * count / total)
        self.mean = self.mean + difference * (count / total)
        self.count = total

    def statistics(self) -> Statistics:
        mean, squares = torch.as_tensor(self.mean), torch.as_tensor(self.squares)
        return Statistics(mean, (squares / self.count).sqrt())


# ---------------------------------------------------------------- constructors


def features(x: Any, where: str = "X", names: Names | None = None, place: Place | None = None) -> Arrays:
    """Wrap a matrix of numbers. Numbers that float32 cannot hold exactly are not converted yet: see `Arrays.prepared`.

    place : describes the location of the number at (i, j) for error messages.
    """
    x = np.asarray(x)
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise DataError(f"{where}: features must be a matrix of numbers, items x features; got {x.dtype} {x.shape}.")
    if not is_usable(x):
        _refuse(x, where, names, place)
    exact = _as_float32(x) if np.can_cast(x.dtype, np.float32) else x
    return Arrays(exact, "features", names, where=where, in_memory=True)


def is_usable(x: npt.NDArray[Any]) -> bool:
    """Return whether all numbers are finite and within `MAX_MAGNITUDE`, without allocating a mask."""
    return not x.size or (float(x.min()) >= -MAX_MAGNITUDE and float(x.max()) <= MAX_MAGNITUDE)  # False for NaN


def refuse_infinite(x: npt.NDArray[Any], where: str, names: Names | None = None, place: Place | None = None) -> None:
    """Refuse numbers that are infinite or too large; NaN is allowed."""
    if x.size and not (
        np.fmin.reduce(x, axis=None) >= -MAX_MAGNITUDE and np.fmax.reduce(x, axis=None) <= MAX_MAGNITUDE
    ):
        present = np.where(np.isnan(x), 0.0, x)
        if not is_usable(present):
            _refuse(present, where, names, place, what=INFINITE)


def find_unusable(x: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a mask of the numbers that are not usable."""
    with np.errstate(over="ignore"):
        return ~(np.abs(x.astype(np.float64)) <= MAX_MAGNITUDE)


def image_array(x: npt.NDArray[Any], where: str = "X") -> Arrays:
    """Wrap images of one size."""
    if x.ndim != 4 or x.dtype != np.uint8 or x.shape[3] not in (1, 3) or min(x.shape[1:3]) < 16 or not len(x):
        raise DataError(
            f"{where}: images must be uint8 [N, H, W, 1 or 3], at least 16 x 16; got {x.dtype} {list(x.shape)}."
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
    """Raise an error that lists the unusable numbers; `items` are the positions of the rows."""
    bad = np.argwhere(find_unusable(x))
    rows = range(len(x)) if items is None else items
    place = place or (lambda i, j: f"item {rows[i]}, feature {names[j] if names else j}")
    raise DataError(
        f"{where}: {len(bad)} of {x.size} features {what}"
        + listing((f"{place(i, j)}: {x[i, j]:g}" for i, j in bad.tolist()), len(bad))
        + f"\n{REMEDY}"
    )
