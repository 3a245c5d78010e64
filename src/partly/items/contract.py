"""The contract of items: number, kind and shape, batches, and a digest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NoReturn, Protocol, Self, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.clock import Draw
from partly.images.augmentation import Augmentation
from partly.items.conditioning import Conditioning
from partly.items.encoding import Encoding
from partly.labels.names import Names

Kind = Literal["features", "pictures", "texts"]  # "pictures" are images; the name is stored in run folders
Index = slice | npt.NDArray[Any]  # a slice, positions or a boolean mask
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Statistics:
    """Mean and scale in float64 of each feature or color channel, for the first layer of a network."""

    mean: Tensor
    scale: Tensor
    shared: Tensor | None = None  # common scale, where the relative size of features carries information

    @property
    def keeping_size(self) -> Statistics:
        """The statistics with the shared scale where there is one, so that large features stay larger."""
        return self if self.shared is None else Statistics(self.mean, self.shared)


def identity_statistics(channels: int) -> Statistics:
    """Return mean 0 and scale 1."""
    return Statistics(torch.zeros(channels, dtype=torch.float64), torch.ones(channels, dtype=torch.float64))


def with_shared_scale(statistics: Statistics) -> Statistics:
    """Add one scale for all features that vary: the root mean square of their scales."""
    varies = statistics.scale > 0
    common = statistics.scale[varies].square().mean().sqrt() if varies.any() else statistics.scale.new_ones(())
    return Statistics(statistics.mean, statistics.scale, torch.where(varies, common, 0.0))


@dataclass(frozen=True)
class Origin:
    """The backbone that computed features, and the kind and shape of its input."""

    kind: Kind
    shape: tuple[int, ...]  # of one input item
    backbone: str
    settings: dict[str, Any]
    measured: tuple[list[float], list[float]] | None  # mean and scale of the colors, unless the backbone has its own
    weights: str  # SHA-256
    shares_scale: bool = False  # the relative size of features carries information
    # Tensors that the backbone measured on the training items; saved in a file of their own.
    fitted: Mapping[str, Tensor] = field(default_factory=dict, compare=False)

    @classmethod
    def read(cls, values: Mapping[str, Any], fitted: Mapping[str, Tensor] | None = None) -> Origin:
        """Build from JSON values; unknown keys are ignored."""
        known = {name: values[name] for name in cls._names() if name in values}
        return cls(**known | {"shape": tuple(known["shape"])}, fitted=fitted or {})

    def plain(self) -> dict[str, Any]:
        """Return the values for JSON, without the tensors, of which `weights` is a digest."""
        return {name: getattr(self, name) for name in self._names()}

    @classmethod
    def _names(cls) -> list[str]:
        return [item.name for item in fields(cls) if item.name != "fitted"]


class Items(Protocol):
    """Items to learn from. They are immutable, and are read in batches."""

    @property
    def kind(self) -> Kind:
        """Kind of the items."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one item as `take` returns it: [D] features, [C, H, W] of an image, or [T] bytes of a text."""

    @property
    def names(self) -> Names | None:
        """Names of the features, if they have names."""

    @property
    def origin(self) -> Origin | None:
        """Backbone that computed these features; None for all other items."""

    @property
    def encoding(self) -> Encoding | None:
        """Encoding of the table columns that these features come from; None for all other items."""

    @property
    def conditioning(self) -> Conditioning | None:
        """Conditioning of the features, once it is chosen."""

    @property
    def statistics(self) -> Statistics:
        """Mean and scale, measured in one pass that also computes the digest; refuses numbers that are not finite."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Index) -> Items:
        """Return a view of some items; nothing is read or copied."""

    def take(self, index: Tensor | slice) -> Tensor:
        """Return the items at these positions, in memory: [B, *shape]."""

    def digest(self) -> str:
        """Return the SHA-256 of the content."""


@runtime_checkable
class Streaming(Protocol):
    """Items that prepare batches ahead."""

    def stream(self, parts: Iterable[Tensor | slice], draw: Draw | None = None) -> Iterator[Tensor]:
        """Yield what `take` returns for each part; with a draw, randomly augmented."""


class Decoded(Items, Protocol):
    """Image files: decoded ahead at the requested size, and augmented while a network learns from them."""

    @property
    def size(self) -> int | None:
        """Side in pixels; None until it is chosen."""

    def stream(self, parts: Iterable[Tensor | slice], draw: Draw | None = None) -> Iterator[Tensor]:
        """Yield what `take` returns for each part; with a draw, randomly augmented."""

    def resize(self, size: int) -> Decoded:
        """Return the items at another size."""

    def augment(self, augmentation: Augmentation | None) -> Decoded:
        """Return the items with random augmentation wherever there is a draw."""

    def unreadable(self) -> dict[int, str]:
        """Return the items that cannot be decoded: position -> file and reason."""


def is_decoded(items: Items) -> TypeGuard[Decoded]:
    """Return whether these are image files."""
    return hasattr(type(items), "augment")


def stream_batches(items: Items, parts: Iterable[Tensor | slice], draw: Draw | None = None) -> Iterator[Tensor]:
    """Yield a batch for each part, prepared ahead where the items support it; `draw` augments training batches."""
    return items.stream(parts, draw) if isinstance(items, Streaming) else map(items.take, parts)


@dataclass(frozen=True)
class Absent:
    """Kind, shape and number of training items that are no longer available: enough to predict."""

    kind: Kind
    shape: tuple[int, ...]
    count: int
    names: Names | None = None
    origin: Origin | None = None
    encoding: Encoding | None = None
    conditioning: Conditioning | None = None

    def __len__(self) -> int:
        return self.count

    @property
    def statistics(self) -> Statistics:
        """Identity: the measured statistics are part of the saved weights."""
        return identity_statistics(self.shape[0])

    def __getitem__(self, index: Index) -> Self:
        return self._refuse()

    def take(self, index: Tensor | slice) -> Tensor:
        return self._refuse()

    def digest(self) -> str:
        return self._refuse()

    def _refuse(self) -> NoReturn:
        raise LookupError("A model does not keep the items it was trained on.")


def is_items(x: object) -> TypeGuard[Items]:
    """Return whether an object is `Items`, by its type: asking the object itself would measure its statistics."""
    return all(hasattr(type(x), name) for name in ("take", "digest"))


def to_absent(items: Items) -> Absent:
    """Return what a model keeps of its training items."""
    return Absent(items.kind, items.shape, len(items), items.names, items.origin, items.encoding, items.conditioning)


def resolve_index(index: Index, count: int) -> Positions | slice:
    """Return the positions, or the slice, that an index selects among `count` items."""
    if isinstance(index, slice):
        return index
    chosen = np.asarray(index)
    if chosen.dtype == bool and chosen.shape == (count,):
        return np.flatnonzero(chosen)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise IndexError(f"Select items by a slice, positions or a mask of {count}; got {chosen.dtype} {chosen.shape}.")
    return chosen.astype(np.int64, copy=False)


def select_rows(rows: Positions | None, index: Index, count: int) -> Positions | None:
    """Return the rows of a view of a view; None stands for all `count` rows."""
    chosen = resolve_index(index, count)
    if rows is None and isinstance(chosen, slice) and chosen == slice(None):
        return None
    return (np.arange(count) if rows is None else rows)[chosen]
