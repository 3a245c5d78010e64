"""Features that an untrained backbone computes on demand, batch by batch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from partly.clock import Draw, seed_for
from partly.errors import CheckpointError, DataError
from partly.items import Items, Kind, Origin, Statistics, identity_statistics, is_decoded, stream_batches
from partly.items.contract import Index
from partly.networks import Standardize, backbones, eval_mode, resize_to_backbone
from partly.networks.backbones import Backbone


@dataclass(frozen=True, eq=False)
class LazyFeatures:
    """Features [N, D] of other items, computed on demand."""

    source: Items
    body: nn.Module  # layers before the head
    origin: Origin
    width: int
    kind: Kind = "features"
    names: None = None
    encoding: None = None
    conditioning: None = None

    def __len__(self) -> int:
        return len(self.source)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.width,)

    @property
    def chunk_size(self) -> int:
        """Return the number of items per forward pass."""
        return max(part.chunk_size for part in self.body.children() if isinstance(part, Backbone))

    def __getitem__(self, index: Index) -> LazyFeatures:
        return replace(self, source=self.source[index])

    def take(self, index: Tensor | slice) -> Tensor:
        return next(self.stream([index]))

    def stream(self, parts: Iterable[Tensor | slice], draw: Draw | None = None) -> Iterator[Tensor]:
        """Yield the features of each part, computed in chunks. There is no augmentation, so `draw` is unused."""
        whole = torch.arange(len(self))
        few = [[some for some in whole[part].split(self.chunk_size) if len(some)] for part in parts]
        device = next(self.body.buffers()).device
        with eval_mode(self.body), torch.inference_mode():
            features = (
                self.body(x.to(device)).float().cpu() for x in stream_batches(self.source, [p for f in few for p in f])
            )
            for several in few:
                yield torch.cat([torch.zeros(0, self.width), *(next(features) for _ in several)])

    @cached_property
    def statistics(self) -> Statistics:
        raise NotImplementedError("Features that are made on the way are there to predict, not to learn from.")

    def digest(self) -> str:
        """Return a digest of the items and of the backbone."""
        identity = json.dumps([self.source.digest(), self.origin.plain()], sort_keys=True)
        return hashlib.sha256(identity.encode()).hexdigest()


def lazy_features(items: Items, backbone: str, settings: dict[str, Any], device: str = "cpu") -> LazyFeatures:
    """Return the features of items under a backbone that is not trained."""
    settings = backbones.find(backbone).complete(settings | {"freeze": "all"})
    items = resize_to_backbone(items, backbone, settings)
    network = _backbone(backbone, items.shape, settings)
    network.fit(items)
    measured = identity_statistics(items.shape[0]) if network.normalizes else items.statistics
    body = nn.Sequential(Standardize(measured, items.shape), network)
    standardization = None if network.normalizes else (measured.mean.tolist(), measured.scale.tolist())
    origin = Origin(
        items.kind,
        items.shape,
        backbone,
        settings,
        standardization,
        _digest(body),
        network.shares_scale,
        network.fitted_state(),
    )
    return LazyFeatures(items, body.to(device), origin, network.width)


def rebuild_body(origin: Origin, device: str = "cpu") -> nn.Module:
    """Rebuild the backbone that made such features, and check that its weights are the same."""
    network = _backbone(origin.backbone, origin.shape, origin.settings)
    if network.fitted_state():
        network.load_fitted_state(dict(origin.fitted))
    measured = identity_statistics(origin.shape[0])
    if origin.measured is not None:
        measured = Statistics(*(torch.tensor(numbers, dtype=torch.float64) for numbers in origin.measured))
    body = nn.Sequential(Standardize(measured, origin.shape), network)
    if _digest(body) != origin.weights:
        raise CheckpointError(
            f"backbone = {origin.backbone!r}: its weights are not those that the features of training were made with "
            f"(sha256 {_digest(body)[:12]} here, {origin.weights[:12]} then). Install those, or train again."
        )
    return body.to(device)


def resize_like_training(items: Items, origin: Origin) -> Items:
    """Resize items to the size that the backbone was trained with."""
    items = items.resize(origin.shape[-1]) if is_decoded(items) else items
    if (items.kind, items.shape) != (origin.kind, origin.shape):
        raise DataError(
            f"The model was trained on features of {origin.kind} of {list(origin.shape)}; these are {items.kind} of "
            f"{list(items.shape)}."
        )
    return items


def _backbone(name: str, shape: tuple[int, ...], settings: dict[str, Any]) -> backbones.Backbone:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for("features", name))  # for backbones with random weights
        made: backbones.Backbone = backbones.find(name).make(shape, **settings)
    return made


def _digest(body: nn.Module) -> str:
    """Return the SHA-256 of all weights, including mean and scale of the first layer."""
    sha = hashlib.sha256()
    for name, tensor in body.state_dict().items():
        array = tensor.cpu().contiguous().numpy()
        sha.update(f"{name} {array.dtype.str}{array.shape}\n".encode() + array.tobytes())
    return sha.hexdigest()
