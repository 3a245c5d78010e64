"""What items are to everybody else: how many, of what kind and shape, a batch of them, and a fingerprint of them
all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol, Self, TypeGuard

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.clock import Draw
from partly.images.augmentation import Augmentation
from partly.labels.names import Names

Kind = Literal["features", "pictures", "texts"]
Index = slice | npt.NDArray[Any]  # a slice, positions or a boolean mask
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Statistics:
    """Mean and scale, in float64, of each feature (or colour channel): what the first layer of a network needs."""

    mean: Tensor
    scale: Tensor
    shared: Tensor | None = None  # one scale of several features, where their relative size says something

    @property
    def keeping_size(self) -> Statistics:
        """With the shared scale where there is one, so that large features stay larger than small ones."""
        return self if self.shared is None else Statistics(self.mean, self.shared)


def as_they_are(channels: int) -> Statistics:
    """Of what is not to be changed."""
    return Statistics(torch.zeros(channels, dtype=torch.float64), torch.ones(channels, dtype=torch.float64))


def shared_scale(found: Statistics) -> Statistics:
    """With one scale for all features that vary, the root mean square of theirs."""
    varies = found.scale > 0
    common = found.scale[varies].square().mean().sqrt() if varies.any() else found.scale.new_ones(())
    return Statistics(found.mean, found.scale, torch.where(varies, common, 0.0))


class Items(Protocol):
    """Things to learn from. Frozen: nobody writes to them, and nobody asks for all of them at once."""

    @property
    def kind(self) -> Kind:
        """What an item is."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one item, as `take` gives it: [D] features, [C, H, W] of a picture, or [T] bytes of a text."""

    @property
    def names(self) -> Names | None:
        """What the features are called, where somebody said."""

    @property
    def statistics(self) -> Statistics:
        """Measured in one pass, in which the digest is made too; refuses what is not finite."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Index) -> Items:
        """Some of them: a view, nothing is read or copied."""

    def take(self, index: Tensor | slice) -> Tensor:
        """The items at these positions, in memory: [B, *shape]."""

    def digest(self) -> str:
        """SHA-256 of what they are."""


class Decoded(Items, Protocol):
    """Items that take time to make: they are made ahead, at the size that is wanted, and may be changed at random while
    a network learns from them. All others need know nothing of this."""

    @property
    def size(self) -> int | None:
        """At which they are shown; None where nobody has said, and any will do."""

    def stream(self, parts: Iterable[Tensor | slice], draw: Draw | None = None) -> Iterator[Tensor]:
        """What `take` gives of each part, one after the other; with a draw, changed as it says."""

    def sized(self, size: int) -> Decoded:
        """The same at another size."""

    def augmented(self, augmentation: Augmentation | None) -> Decoded:
        """The same, changed at random wherever there is a draw."""

    def bad(self) -> dict[int, str]:
        """Those that cannot be made: position -> place and reason."""


def is_decoded(items: Items) -> TypeGuard[Decoded]:
    return hasattr(type(items), "augmented")


def streamed(items: Items, parts: Iterable[Tensor | slice], draw: Draw | None = None) -> Iterator[Tensor]:
    """Batch after batch, for who knows which ones it will ask for; the draw is for a network that learns from them."""
    stream: Callable[..., Iterator[Tensor]] | None = getattr(items, "stream", None)
    return map(items.take, parts) if stream is None else stream(parts, draw)


@dataclass(frozen=True)
class Absent:
    """Items that were there when a model was trained, of which kind, shape and number are known: all that it needs to
    predict."""

    kind: Kind
    shape: tuple[int, ...]
    count: int
    names: Names | None = None
    origin: Any = None  # `made_features.Origin`, where they were features that a backbone made
    encoding: Any = None  # `encoding.Encoding`, where they were made of the columns of a table
    conditioning: Any = None  # `conditioning.Conditioning`, where float32 cannot hold them as they are

    def __len__(self) -> int:
        return self.count

    @property
    def statistics(self) -> Statistics:
        """Anything: what was measured comes with the weights."""
        return as_they_are(self.shape[0])

    def __getitem__(self, index: Index) -> Self:
        return self._gone()

    def take(self, index: Tensor | slice) -> Tensor:
        return self._gone()

    def digest(self) -> str:
        return self._gone()

    def _gone(self) -> NoReturn:
        raise LookupError("A model does not hold on to the items it was trained on.")


def is_items(x: object) -> TypeGuard[Items]:
    """Whether somebody gives items. Asked of the type: to ask the object would measure its statistics."""
    return all(hasattr(type(x), name) for name in ("take", "digest"))


def absent(items: Items) -> Absent:
    """What a model remembers of its training items."""
    more = {name: getattr(items, name, None) for name in ("origin", "encoding", "conditioning")}
    return Absent(items.kind, items.shape, len(items), items.names, **more)


def positions(index: Index, count: int) -> Positions | slice:
    """Which of `count` items an index means."""
    if isinstance(index, slice):
        return index
    chosen = np.asarray(index)
    if chosen.dtype == bool and chosen.shape == (count,):
        return np.flatnonzero(chosen)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise IndexError(
            f"Items are picked by a slice, positions or a mask of {count}; got {chosen.dtype} {chosen.shape}."
        )
    return chosen.astype(np.int64, copy=False)


def narrowed(rows: Positions | None, index: Index, count: int) -> Positions | None:
    """The rows of a view of a view; `rows` None stands for all `count`."""
    chosen = positions(index, count)
    if rows is None and isinstance(chosen, slice) and chosen == slice(None):
        return None
    return (np.arange(count) if rows is None else rows)[chosen]
