"""The common shape of networks, and their first layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self, get_args

import torch
from torch import Tensor, nn

from partly.config import Precision
from partly.distributed.share import BatchShard
from partly.errors import SettingError
from partly.items import Statistics
from partly.items.prepared import Prepared
from partly.networks.residual import accepts_labels

FeaturesAndLogits = tuple[Tensor, Tensor]  # features [B, D] and logits [B, L]


class Network(nn.Module):
    """`features(x)` -> [B, D], then `head(features)` -> logits [B, L]. If the head takes maps, features are [B, D, H,
    W].

    A head whose forward takes (features, z) also gets the known labels z [B, L], or None. In distributed training x is
    a shard of the batch, z belongs to the whole batch, and the result is that of the whole batch.
    """

    def __init__(self, features: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.head = head
        self.takes_labels = accepts_labels(head)
        self.warm = False  # whether its head, a matrix from features to logits, is to start from what is solved
        self.precision: Precision = "float32"
        self.compiled: Callable[..., FeaturesAndLogits] | None = None

    def forward(self, x: Tensor | BatchShard, z: Tensor | None = None) -> Tensor:
        logits: Tensor = x.spread(self, z) if isinstance(x, BatchShard) else self.features_and_logits(x, z)[1]
        return logits

    def features_and_logits(self, x: Tensor | BatchShard, z: Tensor | None = None) -> FeaturesAndLogits:
        """Return features [B, D], averaged over positions for maps, and logits [B, L].

        Reduced precision and compilation apply to training only.
        """
        if isinstance(x, BatchShard):
            features, logits = x.spread(self.features_and_logits, z)
            return features, logits
        if not self.training:
            return self._features_and_logits(x, z)
        make = self.compiled or self._features_and_logits
        if not uses_bfloat16(self.precision, x.device.type):
            return make(x, z)
        with torch.autocast(x.device.type, torch.bfloat16):
            features, logits = make(x, z)
        return features.float(), logits.float()  # losses are computed in float32

    def _features_and_logits(self, x: Tensor, z: Tensor | None) -> FeaturesAndLogits:
        features = x.features if isinstance(x, Prepared) else self.features(x)
        logits = self.head(features, z) if self.takes_labels else self.head(features)
        return average_positions(features), logits

    def configure_training(self, precision: Precision, compiled: bool) -> Self:
        """Set precision and compilation for training."""
        self.precision, self.compiled = precision, torch.compile(self._features_and_logits) if compiled else None
        return self

    def embed(self, x: Tensor | BatchShard) -> Tensor:
        """Return features [B, D]."""
        if isinstance(x, Prepared):
            return x.features
        features: Tensor = (
            x.spread(lambda own, _: self.embed(own))
            if isinstance(x, BatchShard)
            else average_positions(self.features(x))
        )
        return features

    def width(self, shape: tuple[int, ...]) -> int:
        """Return the number of features for items of this shape."""
        device = next((part.device for part in self.features.buffers()), None)
        with eval_mode(self), torch.no_grad():
            return int(self.features(torch.zeros(1, *shape, device=device)).shape[1])


def as_maps(features: Tensor) -> Tensor:
    """Return maps [B, D, H, W] unchanged, and features [B, D] as maps with one position."""
    return features if features.ndim == 4 else features[:, :, None, None]


def average_positions(features: Tensor) -> Tensor:
    """Return features [B, D] unchanged, and maps [B, D, H, W] averaged over positions."""
    return features if features.ndim == 2 else features.mean(dim=(2, 3))


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """Switch a module to evaluation mode within this context; afterwards each part gets its own mode back."""
    learning = [part for part in module.modules() if part.training]
    if learning:  # skips a model that only predicts, where switching takes longer than a linear head
        module.eval()  # restored below
    try:
        yield
    finally:
        for part in learning:
            part.training = True


def uses_bfloat16(precision: Precision, device: str) -> bool:
    """Tell whether a network computes in bfloat16 on this kind of device.

    "auto" uses it on GPUs that support it, and never on CPUs, where it is mostly slower. Unlike float16 it needs
    no loss scaling.
    """
    if precision == "auto":
        return device == "cuda" and torch.cuda.is_bf16_supported()
    return precision == "bfloat16"


def check_training_options(precision: object, compiled: object) -> None:
    """Refuse invalid options."""
    if precision not in get_args(Precision):
        raise SettingError(f"dtype = {precision!r} must be one of {', '.join(get_args(Precision))}.")
    if not isinstance(compiled, bool):
        raise SettingError(f"compile = {compiled!r} must be True or False.")


def check_compiler(device: str = "cpu") -> None:
    """Refuse compilation on a machine without a compiler, by compiling something small."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, when it loads its compiler
            torch.compile(torch.neg)(torch.ones(2, device=device))
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise SettingError(
            f"compile = True: torch cannot compile here ({reason}). Install a C++ compiler, or leave it out."
        ) from None


class Standardize(nn.Module):
    """Standardize each feature (or color channel) by the mean and scale of the training items."""

    mean: Tensor
    inverse_scale: Tensor

    def __init__(self, measured: Statistics, shape: tuple[int, ...]) -> None:
        super().__init__()
        mean, scale = measured.mean, measured.scale
        # Constant features become 0, not noise divided by almost 0.
        inverse = torch.where(scale > 1e-6 * mean.abs().clamp(min=1e-24), 1.0 / scale, 0.0)
        places = (-1, *[1] * (len(shape) - 1))
        self.register_buffer("mean", mean.view(places).float())
        self.register_buffer("inverse_scale", inverse.view(places).float())

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean).mul_(self.inverse_scale)  # in place, on a temporary tensor
