"""Base class of backbones: normalize pixels, compute maps or vectors in stages, pool maps.

It implements the settings that all backbones share: frozen stages, learning rate, pooling and image size.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from partly.errors import SettingError, within
from partly.items import Items
from partly.networks.layers import Pooling, count_pooled, pool

RATE_ATTRIBUTE = "rate_factor"  # attribute of parameters: their share of the learning rate
Freeze = Literal["all"] | int | None
VIEWS = (1, 2, 5, 10)
CROP = 0.875  # share of each side in a cropped view


class Backbone(nn.Module):
    """Items -> features [B, width]. A subclass defines `maps` and `stages`, and sets the class attributes.

    Pixels are uint8 or float, from 0 to 255, [B, 3, H, W] or [B, 1, H, W]. With `scale` they become (value - mean) /
    scale; without, they were standardized by the training items.
    """

    channels: int  # of the output of `maps`
    makes: Literal["map", "vector"] = "map"
    size: int | None = None  # side of the input images; None for any
    # Defaults of pooling and of the share of the learning rate.
    pooling: Pooling | None = "gap"  # None: features are maps [B, width, H, W]
    rate: float = 0.1
    regions: tuple[float, float] = (0.1, 0.1)  # k_max and k_min of `weldon`
    shares_scale: bool = False  # whether features share one scale, because their relative size matters
    chunk_size: int = 32  # items per forward pass, which bounds the memory of activations
    views: int = 1  # number of views of an image
    mean: Tensor | None
    scale: Tensor | None

    def __init__(self, mean: Sequence[float] | None = None, scale: Sequence[float] | None = None) -> None:
        super().__init__()
        for name, values in (("mean", mean), ("scale", scale)):
            buffer = None if values is None else torch.tensor(values, dtype=torch.float32).view(-1, 1, 1)
            self.register_buffer(name, buffer, persistent=False)  # a constant, not learned
        self._always_eval: tuple[nn.Module, ...] = ()

    def maps(self, x: Tensor) -> Tensor:
        """Return maps [B, channels, H, W], or vectors [B, channels], of preprocessed items."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it makes of items.")

    def stages(self) -> list[nn.Module]:
        """Return the parts from input to output. Each is frozen or trained as a whole."""
        return list(self.children())

    # ---------------------------------------------------------------- what it measures on the training items

    def fit(self, items: Items) -> None:
        """Fit to the training items, without labels. Most backbones need no fit."""

    def fitted_state(self) -> dict[str, Tensor]:
        """Return the tensors that `fit` computed; they are saved with the model."""
        return {}

    def load_fitted_state(self, tensors: dict[str, Tensor]) -> None:
        """Load the result of `fitted_state`; inconsistent tensors are refused."""

    @property
    def normalizes(self) -> bool:
        """Tell whether it takes raw pixels."""
        return self.scale is not None

    @property
    def width(self) -> int:
        return count_pooled(self.channels, self.pooling) if self.makes == "map" and self.pooling else self.channels

    def forward(self, x: Tensor) -> Tensor:
        features = [self._features(view) for view in views(x, self.views)]
        return features[0] if len(features) == 1 else torch.stack(features).mean(dim=0)

    def _features(self, x: Tensor) -> Tensor:
        maps = self.maps(self.preprocess(x))
        return pool(maps, self.pooling, *self.regions) if self.makes == "map" and self.pooling else maps

    def preprocess(self, x: Tensor) -> Tensor:
        """Resize and normalize images, and expand grayscale to color."""
        x = x if x.is_floating_point() else x.float()
        if self.size is not None and x.shape[2:] != (self.size, self.size):
            x = F.interpolate(x, (self.size, self.size), mode="bilinear", antialias=True)
        if self.mean is None or self.scale is None:
            return x
        return (x.expand(-1, len(self.mean), -1, -1) - self.mean) / self.scale

    def train(self, mode: bool = True) -> Self:
        """Keep frozen parts in evaluation mode."""
        super().train(mode)
        for part in self._always_eval:
            part.eval()
        return self

    def stop_learning(self) -> None:
        """Keep everything in evaluation mode from now on, batch normalization too."""
        self._always_eval = tuple(self.children())
        self.train(self.training)

    # ---------------------------------------------------------------- what the settings ask for

    def configure(
        self,
        *,
        freeze: Freeze = None,
        pooling: Pooling = "gap",
        k_max: float = 0.1,
        k_min: float = 0.1,
        rate: float = 0.1,
        size: int | None = None,
        keep_statistics: bool | None = None,
        views: int = 1,
    ) -> Self:
        """Apply the settings that all backbones share.

        Parameters
        ----------
        freeze : "all", int or None
            Number of last stages to train; "all" trains none, None trains all.
        pooling : str
            How maps become a vector; k_max and k_min are those of `weldon`.
        rate : float
            Learning rate of the backbone, as a share of the learning rate.
        size : int, optional
            Side of the input images; the backbone's own by default.
        keep_statistics : bool, optional
            Keep the batch normalization statistics of the weights during training; by default for pretrained weights.
        views : int
            1: the image, 2: also mirrored, 5: corners and center, 10: these and mirrored. Features are averaged.
        """
        within(0, float("inf"), rate=rate)
        if self.makes == "vector" and pooling != self.pooling:
            raise SettingError(f"pooling = {pooling!r}: this backbone makes a vector, and there is nothing to pool.")
        if views not in VIEWS or (views > 1 and self.makes == "vector"):
            raise SettingError(f"views = {views!r}: should be one of {', '.join(map(str, VIEWS))}, 1 for texts.")
        self.pooling, self.regions, self.rate, self.views = pooling, (k_max, k_min), rate, views
        if size is not None:
            within(1, float("inf"), size=size)
            self.size = size
        self._freeze(freeze)
        if keep_statistics:
            self._always_eval += tuple(part for part in self.modules() if isinstance(part, _BatchNorm))
        self.train(self.training)
        for parameter in self.parameters():
            setattr(parameter, RATE_ATTRIBUTE, rate)
        return self

    def _freeze(self, freeze: Freeze) -> None:
        if freeze is None:
            return
        stages = self.stages()
        trained = 0 if freeze == "all" else freeze
        if not 0 <= trained <= len(stages):
            raise SettingError(
                f"freeze = {freeze!r}: there are {len(stages)} stages. Give how many of the last ones are trained, "
                "'all' to train none, or leave it out to train everything."
            )
        self.requires_grad_(False)
        for part in stages[len(stages) - trained :]:
            part.requires_grad_(True)
        self._always_eval = tuple(stages[: len(stages) - trained]) if trained else tuple(self.children())


def views(x: Tensor, count: int) -> list[Tensor]:
    """Return views of images [B, C, H, W]: the image or its corners and center, optionally with mirror images."""
    crops = [x]
    if count >= 5:
        height, width = (round(CROP * side) for side in x.shape[2:])
        top, left = x.shape[2] - height, x.shape[3] - width
        corners = [(0, 0), (0, left), (top, 0), (top, left), (top // 2, left // 2)]
        crops = [x[:, :, i : i + height, j : j + width] for i, j in corners]
    return crops if count % 2 else crops + [view.flip(3) for view in crops]


def channels_last(module: nn.Module) -> None:
    """Store convolution weights with channels last, which is faster on a CPU."""
    for parameter in module.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)


def learning_rate_factor(parameter: nn.Parameter) -> float:
    """Return a parameter's share of the learning rate: that of its backbone, else 1."""
    return float(getattr(parameter, RATE_ATTRIBUTE, 1.0))


def copy_body(body: nn.Sequential) -> nn.Sequential:
    """Return a copy of a backbone with what precedes it; its parameters keep their share of the learning rate."""
    copied = copy.deepcopy(body)
    for old, new in zip(body.parameters(), copied.parameters(), strict=True):
        setattr(new, RATE_ATTRIBUTE, learning_rate_factor(old))  # a copied parameter has no attributes
    return copied


def split_stages(model: nn.Module) -> list[nn.Module]:
    """Split a model into stages: each layer of its first module list is one.

    Modules before the list form the first stage, and modules after it join the last. Without a list, the children of
    the model are the stages.
    """
    listed = _list_of(model)
    if listed is None:
        return list(model.children())
    before, after = _around(model, listed)
    *layers, last = listed
    first = [nn.ModuleList(before)] if before else []
    return [*first, *layers, nn.ModuleList([last, *after])]


def _list_of(model: nn.Module) -> nn.ModuleList | None:
    """Return the first module list, breadth first: a list of stages precedes the layers within a stage."""
    here = [model]
    while here:
        layers = next((part for part in here if isinstance(part, nn.ModuleList) and len(part)), None)
        if layers is not None:
            return layers
        here = [child for part in here for child in part.children()]
    return None


def _around(model: nn.Module, listed: nn.Module) -> tuple[list[nn.Module], list[nn.Module]]:
    """Return the modules before and after the list, on every level down to it."""
    before: list[nn.Module] = []
    after: list[nn.Module] = []
    while model is not listed:
        children = list(model.children())
        place = next(i for i, child in enumerate(children) if any(part is listed for part in child.modules()))
        before += children[:place]
        after = children[place + 1 :] + after
        model = children[place]
    return before, after
