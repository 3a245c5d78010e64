"""Features that a backbone computed from other items.

They keep their origin, so that a model of these features also accepts the original items, and reports show those.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from partly.items.contract import Index, Items, Kind, Origin, Statistics, with_shared_scale


@dataclass(frozen=True, eq=False)
class PrecomputedFeatures:
    """Features in a file, with the original items if those are available."""

    features: Items
    origin: Origin
    source: Items | None = None
    kind: Kind = "features"
    names: None = None
    encoding: None = None
    conditioning: None = None

    def __len__(self) -> int:
        return len(self.features)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.features.shape

    @property
    def statistics(self) -> Statistics:
        statistics = self.features.statistics
        return with_shared_scale(statistics) if self.origin.shares_scale else statistics

    def __getitem__(self, index: Index) -> PrecomputedFeatures:
        source = None if self.source is None else self.source[index]
        return PrecomputedFeatures(self.features[index], self.origin, source)

    def take(self, index: Tensor | slice) -> Tensor:
        return self.features.take(index)

    def digest(self) -> str:
        return self.features.digest()


def source_items(items: Items) -> Items:
    """Return the items that features were computed from, if available; otherwise the items themselves."""
    return items.source if isinstance(items, PrecomputedFeatures) and items.source is not None else items
