"""The shape that every network has, and its first layer."""

from __future__ import annotations

import inspect
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

FeaturesAndLogits = tuple[Tensor, Tensor]  # features [B, D] and logits [B, L]


class Network(nn.Module):
    """`features(x)` -> [B, D], then `head(features)` -> logits [B, L]; a method can see both. Where there are maps, and
    the head takes them, features are [B, D, H, W].

    A head whose forward takes (features, z) is also given what is known of the items: z [B, L], or None. Of a share of
    a batch it makes what it would make of the whole batch, z being that of the whole.
    """

    def __init__(self, features: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.head = head
        self.takes_labels = "z" in inspect.signature(head.forward).parameters
        self.warm = False  # whether its head, a matrix from features to logits, is to start from what is solved
        self.precision: Precision = "float32"
        self.compiled: Callable[..., FeaturesAndLogits] | None = None

    def forward(self, x: Tensor | BatchShard, z: Tensor | None = None) -> Tensor:
        logits: Tensor = x.spread(self, z) if isinstance(x, BatchShard) else self.features_and_logits(x, z)[1]
        return logits

    def features_and_logits(self, x: Tensor | BatchShard, z: Tensor | None = None) -> FeaturesAndLogits:
        """Features [B, D], of maps their mean over all places, and logits [B, L]. Only while it learns as `learning`
        asks: scores are made in full precision, and for any number of items."""
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
        return features.float(), logits.float()  # losses and all else are computed in full

    def _features_and_logits(self, x: Tensor, z: Tensor | None) -> FeaturesAndLogits:
        features = self.features(x)
        logits = self.head(features, z) if self.takes_labels else self.head(features)
        return average_positions(features), logits

    def configure_training(self, precision: Precision, compiled: bool) -> Self:
        """While it is trained, at this precision; compiled, where asked for."""
        self.precision, self.compiled = precision, torch.compile(self._features_and_logits) if compiled else None
        return self

    def embed(self, x: Tensor | BatchShard) -> Tensor:
        """Features [B, D] alone."""
        features: Tensor = (
            x.spread(lambda own, _: self.embed(own))
            if isinstance(x, BatchShard)
            else average_positions(self.features(x))
        )
        return features

    def width(self, shape: tuple[int, ...]) -> int:
        """How many features it makes of items of this shape."""
        with eval_mode(self), torch.no_grad():
            return int(self.features(torch.zeros(1, *shape)).shape[1])


def as_maps(features: Tensor) -> Tensor:
    """Maps [B, D, H, W] as they are; features [B, D] as maps of a single place."""
    return features if features.ndim == 4 else features[:, :, None, None]


def average_positions(features: Tensor) -> Tensor:
    """Features [B, D]; of maps [B, D, H, W] their mean over all places."""
    return features if features.ndim == 2 else features.mean(dim=(2, 3))


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """For a while as it predicts: no dropout, batch normalisation at rest. Each part gets its own mode back."""
    learning = [part for part in module.modules() if part.training]
    if learning:  # nothing is switched in a model that only predicts: it would take longer than a linear head
        module.eval()  # for a while, and only here, so that nobody forgets to switch back
    try:
        yield
    finally:
        for part in learning:
            part.training = True


def uses_bfloat16(precision: Precision, device: str) -> bool:
    """Whether a network multiplies in bfloat16 on this kind of device. "auto": on a GPU that can, and never on a CPU:
    one without instructions for it takes ten times as long. It needs no scaling of the loss, as float16 would."""
    if precision == "auto":
        return device == "cuda" and torch.cuda.is_bf16_supported()
    return precision == "bfloat16"


def check_training_options(precision: object, compiled: object) -> None:
    """Refuse what cannot be asked for, or done here."""
    if precision not in get_args(Precision):
        raise SettingError(f"dtype = {precision!r} must be one of {', '.join(get_args(Precision))}.")
    if not isinstance(compiled, bool):
        raise SettingError(f"compile = {compiled!r} must be True or False.")


def check_compiler(device: str = "cpu") -> None:
    """Refuse to compile where nothing can be compiled: something small is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, when it loads its compiler
            torch.compile(torch.neg)(torch.ones(2, device=device))
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise SettingError(
            f"compile = True: torch cannot compile here ({reason}). Install a C++ compiler, or leave it out."
        ) from None


class Standardise(nn.Module):
    """Mean 0 and scale 1 for each feature (or colour channel), as measured once on the training items."""

    mean: Tensor
    inverse_scale: Tensor

    def __init__(self, measured: Statistics, shape: tuple[int, ...]) -> None:
        super().__init__()
        mean, scale = measured.mean, measured.scale
        # A constant feature says nothing: it becomes 0, not noise divided by almost nothing.
        inverse = torch.where(scale > 1e-6 * mean.abs().clamp(min=1e-24), 1.0 / scale, 0.0)
        places = (-1, *[1] * (len(shape) - 1))
        self.register_buffer("mean", mean.view(places).float())
        self.register_buffer("inverse_scale", inverse.view(places).float())

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean).mul_(self.inverse_scale)  # in place: nobody else has the difference
