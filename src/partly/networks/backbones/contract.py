"""What every backbone is: pixels are normalised, stages make maps (or a vector) of them, and maps are pooled.

What a backbone shares with all others is here: which stages are trained, at which rate, how maps become a vector, and
at which size pictures are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from partly.errors import SettingError, within
from partly.items import Items
from partly.networks.layers import Pooling, pool, pooled_width

RATE = "rate_factor"  # a parameter's share of the learning rate; the parameter itself says so
Freeze = Literal["all"] | int | None
VIEWS = (1, 2, 5, 10)
CROP = 0.875  # of each side, in a view of a corner or of the middle


class Backbone(nn.Module):
    """Items -> features [B, width]. A subclass defines `maps` and `stages`, and says what it makes and wants.

    Pixels come as uint8 or float, 0 to 255 either way, [B, 3, H, W] or [B, 1, H, W]. With `scale` they become
    (value - mean) / scale here; without, they are standardised before, by the training items.
    """

    channels: int  # of what `maps` makes
    makes: Literal["map", "vector"] = "map"
    size: int | None = None  # side of the pictures that it looks at; None: as they come
    # How maps are pooled and at which share of the rate it learns, where nobody says otherwise.
    pooling: Pooling | None = "gap"  # None: not at all, and features are maps [B, width, H, W]
    rate: float = 0.1
    regions: tuple[float, float] = (0.1, 0.1)  # k_max and k_min of `weldon`
    shares_scale: bool = False  # whether the relative size of its features says something, so that they share one scale
    chunk_size: int = 32  # items of which features are made together: a network needs room for what it makes on the way
    views: int = 1  # of a picture, whose features are averaged
    mean: Tensor | None
    scale: Tensor | None

    def __init__(self, mean: Sequence[float] | None = None, scale: Sequence[float] | None = None) -> None:
        super().__init__()
        for name, values in (("mean", mean), ("scale", scale)):
            buffer = None if values is None else torch.tensor(values, dtype=torch.float32).view(-1, 1, 1)
            self.register_buffer(name, buffer, persistent=False)  # a constant of the backbone, not something learned
        self._always_eval: tuple[nn.Module, ...] = ()

    def maps(self, x: Tensor) -> Tensor:
        """Normalised items -> maps [B, channels, H, W], or vectors [B, channels] where that is what it `makes`."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it makes of items.")

    def stages(self) -> list[nn.Module]:
        """Its parts from the input to the output. Each is frozen or trained as a whole."""
        return list(self.children())

    # ---------------------------------------------------------------- what it measures on the training items

    def fit(self, items: Items) -> None:
        """Measure on the training items what it needs to know of them, without their labels. Most need nothing."""

    def fitted_state(self) -> dict[str, Tensor]:
        """What `fit` has found, which no package holds and a model is saved with."""
        return {}

    def load_fitted_state(self, tensors: dict[str, Tensor]) -> None:
        """Take what `fitted` gave; refuses tensors that do not fit together."""

    @property
    def normalises(self) -> bool:
        """Whether it takes pixels as they are."""
        return self.scale is not None

    @property
    def width(self) -> int:
        return pooled_width(self.channels, self.pooling) if self.makes == "map" and self.pooling else self.channels

    def forward(self, x: Tensor) -> Tensor:
        features = [self._features(view) for view in views(x, self.views)]
        return features[0] if len(features) == 1 else torch.stack(features).mean(dim=0)

    def _features(self, x: Tensor) -> Tensor:
        maps = self.maps(self.preprocess(x))
        return pool(maps, self.pooling, *self.regions) if self.makes == "map" and self.pooling else maps

    def preprocess(self, x: Tensor) -> Tensor:
        """Pictures at the size that it looks at, in colour and normalised where it says so."""
        x = x if x.is_floating_point() else x.float()
        if self.size is not None and x.shape[2:] != (self.size, self.size):
            x = F.interpolate(x, (self.size, self.size), mode="bilinear", antialias=True)
        if self.mean is None or self.scale is None:
            return x
        return (x.expand(-1, len(self.mean), -1, -1) - self.mean) / self.scale

    def train(self, mode: bool = True) -> Self:
        """What is frozen stays as it predicts: batch normalisation at rest, no dropout."""
        super().train(mode)
        for part in self._always_eval:
            part.eval()
        return self

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
        """The settings that all backbones have.

        freeze: "all", or how many of the last stages are trained; None trains everything. pooling: what maps become,
        with k_max and k_min for `weldon`. rate: of the backbone, as a share of the learning rate. size: side of the
        pictures that it looks at; None: its own. keep_statistics: batch normalisation goes on with the statistics that
        came with the weights, also where it is trained; None: where the weights are pretrained. views: 1 shows a
        picture as it is, 2 also its mirror image, 5 its corners and its middle, 10 these and their mirror images; what
        is made of them is averaged.

        On 500 training pictures of VOC 2012 at 128 px, and 250 others of them to judge by (efficientnet-lite0, the last
        three stages, four epochs of batches of 16, one seed), mAP was 0.70 so, 0.48 with learned statistics, and 0.65
        where all was frozen.
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
            setattr(parameter, RATE, rate)
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
    """So many views of pictures [B, C, H, W]: as they are, or with their mirror images; or four corners and the middle,
    each `CROP` of the sides, with or without their mirror images."""
    crops = [x]
    if count >= 5:
        height, width = (round(CROP * side) for side in x.shape[2:])
        top, left = x.shape[2] - height, x.shape[3] - width
        corners = [(0, 0), (0, left), (top, 0), (top, left), (top // 2, left // 2)]
        crops = [x[:, :, i : i + height, j : j + width] for i, j in corners]
    return crops if count % 2 else crops + [view.flip(3) for view in crops]


def channels_last(module: nn.Module) -> None:
    """Lay out the weights of convolutions with the channels together: a quarter faster on a CPU."""
    for parameter in module.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)


def learning_rate_factor(parameter: nn.Parameter) -> float:
    """Its share of the learning rate: that of its backbone, 1 outside of backbones."""
    return float(getattr(parameter, RATE, 1.0))


def split_stages(model: nn.Module) -> list[nn.Module]:
    """The first list of layers that is met on the way in, layer by layer; what comes before it is the first stage, what
    comes after (a last normalisation) belongs to the last. Without such a list, the children of the model."""
    listed = _list_of(model)
    if listed is None:
        return list(model.children())
    before, after = _around(model, listed)
    *layers, last = listed
    first = [nn.ModuleList(before)] if before else []
    return [*first, *layers, nn.ModuleList([last, *after])]


def _list_of(model: nn.Module) -> nn.ModuleList | None:
    """Breadth first, so that a list of stages is found before the list of layers in one of them."""
    here = [model]
    while here:
        layers = next((part for part in here if isinstance(part, nn.ModuleList) and len(part)), None)
        if layers is not None:
            return layers
        here = [child for part in here for child in part.children()]
    return None


def _around(model: nn.Module, listed: nn.Module) -> tuple[list[nn.Module], list[nn.Module]]:
    """The parts of a model before and after the one that holds the list, on every level down to it."""
    before: list[nn.Module] = []
    after: list[nn.Module] = []
    while model is not listed:
        children = list(model.children())
        place = next(i for i, child in enumerate(children) if any(part is listed for part in child.modules()))
        before += children[:place]
        after = children[place + 1 :] + after
        model = children[place]
    return before, after
