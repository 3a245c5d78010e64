"""Items that lie in one array, in memory or mapped from a file: features [N, D], or pictures [N, H, W, C] of uint8."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.errors import DataError, listing
from partly.items.contract import Index, Kind, Positions, Statistics, narrowed
from partly.labels.names import Names

BLOCK = 1 << 22  # numbers worked on at a time: sums are in float64
LARGEST = 1e37  # so that float32 also holds how far two features are apart, and one over that
REFUSED = f"are missing (NaN), infinite or too large (beyond {LARGEST:.0e})"
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

    def __len__(self) -> int:
        return len(self.array) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        rest = self.array.shape[1:]
        return (rest[2], *rest[:2]) if self.kind == "pictures" else rest

    def __getitem__(self, index: Index) -> Arrays:
        rows = narrowed(self.rows, index, len(self))
        return Arrays(self.array, self.kind, self.names, rows, self.file_digest, self.where)

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
        if part.dtype == np.float32:
            return torch.from_numpy(part)
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and refused as such
            return torch.from_numpy(part.astype(np.float32))

    # ---------------------------------------------------------------- one pass over all of them

    @cached_property
    def statistics(self) -> Statistics:
        sha = None if "_content_digest" in vars(self) or self.file_digest else self._sha()
        sums = Sums()
        for start, part in self._blocks():
            if not usable(part):
                _refuse(part, self.where, self.names, items=self._positions(start, len(part)))
            sums.add(self._tensor(part))
            if sha is not None:
                sha.update(_bytes(part))
        if sha is not None:
            vars(self)["_content_digest"] = sha.hexdigest()
        return sums.statistics()

    def _positions(self, start: int, count: int) -> npt.NDArray[Any]:
        """Of some items among all that the array holds."""
        return np.arange(start, start + count) if self.rows is None else self.rows[start : start + count]

    def digest(self) -> str:
        if self.file_digest is None:
            return self._content_digest
        if self.rows is None or np.array_equal(self.rows, np.arange(len(self.array))):
            return self.file_digest
        return hashlib.sha256(self.file_digest.encode() + self.rows.tobytes()).hexdigest()

    @cached_property
    def _content_digest(self) -> str:
        sha = self._sha()
        for _, part in self._blocks():
            sha.update(_bytes(part))
        return str(sha.hexdigest())

    def _sha(self) -> Any:
        return hashlib.sha256(f"{(len(self), *self.array.shape[1:])}{self.array.dtype.newbyteorder('<').str}".encode())

    def _blocks(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        step = max(1, BLOCK // max(1, int(np.prod(self.array.shape[1:]))))
        for start in range(0, len(self), step):
            yield start, self._part(slice(start, start + step))


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
    """A matrix of numbers as items; copied only where it is not float32 already. `place(i, j)` says where a number
    stands."""
    x = np.asarray(x)
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise DataError(f"{where}: features must be a matrix of numbers, items x features; got {x.dtype} {x.shape}.")
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and is refused as such
        result = np.require(x, np.float32, ["C", "W"])  # torch does not like memory that cannot be written to
    if not usable(result):
        _refuse(x, where, names, place)
    return Arrays(result, "features", names)


def usable(x: npt.NDArray[Any]) -> bool:
    """Whether all of these are numbers, and none beyond `LARGEST`; without a mask of all."""
    return not x.size or (float(x.min()) >= -LARGEST and float(x.max()) <= LARGEST)  # a NaN is both, and neither


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
) -> None:
    """items: the positions of these among all."""
    bad = np.argwhere(unusable(x))
    at = range(len(x)) if items is None else items
    place = place or (lambda i, j: f"item {at[i]}, feature {names[j] if names else j}")
    raise DataError(
        f"{where}: {len(bad)} of {x.size} features {REFUSED}"
        + listing((f"{place(i, j)}: {x[i, j]:g}" for i, j in bad.tolist()), len(bad))
        + f"\n{WAY_OUT}"
    )
