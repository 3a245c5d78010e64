"""Features that a backbone made of other items: what they were made of is remembered, so that a model of these features
takes such items too, and so that they can be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from torch import Tensor

from partly.items.contract import Index, Items, Kind, Statistics, shared_scale


@dataclass(frozen=True)
class Origin:
    """Of what features were made, and by which backbone."""

    kind: Kind
    shape: tuple[int, ...]  # of one item that the backbone is given
    backbone: str
    settings: dict[str, Any]
    measured: tuple[list[float], list[float]] | None  # mean and scale of colours, where the backbone knows none itself
    weights: str  # SHA-256
    shares_scale: bool = False  # whether the relative size of features says something
    # What the backbone has measured on the training items: tensors, which are saved beside.
    fitted: Mapping[str, Tensor] = field(default_factory=dict, compare=False)

    @classmethod
    def read(cls, said: Mapping[str, Any], fitted: Mapping[str, Tensor] | None = None) -> Origin:
        """From JSON, in which there may be more."""
        found = {name: said[name] for name in cls._names() if name in said}
        return cls(**found | {"shape": tuple(found["shape"])}, fitted=fitted or {})

    def plain(self) -> dict[str, Any]:
        """For JSON: all but the tensors, of which `weights` is a digest."""
        return {name: getattr(self, name) for name in self._names()}

    @classmethod
    def _names(cls) -> list[str]:
        return [one.name for one in fields(cls) if one.name != "fitted"]


@dataclass(frozen=True, eq=False)
class MadeFeatures:
    """Features that lie in a file, and where it is at hand what they were made of."""

    features: Items
    origin: Origin
    source: Items | None = None
    kind: Kind = "features"
    names: None = None

    def __len__(self) -> int:
        return len(self.features)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.features.shape

    @property
    def statistics(self) -> Statistics:
        found = self.features.statistics
        return shared_scale(found) if self.origin.shares_scale else found

    def __getitem__(self, index: Index) -> MadeFeatures:
        source = None if self.source is None else self.source[index]
        return MadeFeatures(self.features[index], self.origin, source)

    def take(self, index: Tensor | slice) -> Tensor:
        return self.features.take(index)

    def digest(self) -> str:
        return self.features.digest()


def made_of(items: Items) -> Items:
    """What these features were made of, where that is at hand; else the items themselves."""
    return items.source if isinstance(items, MadeFeatures) and items.source is not None else items


def origin_of(items: Items) -> Origin | None:
    """What these were made of; None where they are what they are."""
    origin: Origin | None = getattr(items, "origin", None)
    return origin
