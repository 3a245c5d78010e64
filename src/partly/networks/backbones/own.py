"""A custom torch module as a backbone: it makes maps [B, C, H, W] or vectors [B, D] of items.

Pass it in Python: `Classifier(backbone=module)`. Its stages are its children in order, or the result of its method
`stages()`. A module is copied and trained from its weights; a function or class is called with the shape of an item for
each network. `standardise` = false passes raw items, pixels as floats from 0 to 255; otherwise they are standardized by
the training items. The module learns at the full learning rate unless `rate` is set.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from partly.errors import SettingError
from partly.networks import custom_modules
from partly.networks.backbones.contract import Backbone
from partly.registry import About

ABOUT = About(weights="the weights of the module that was given")
USUAL: dict[str, Any] = {"rate": 1.0}


class CustomBackbone(Backbone):
    """Backbone around a custom module."""

    def __init__(self, module: nn.Module, shape: tuple[int, ...], standardise: bool) -> None:
        super().__init__()
        self.module = module
        self.standardise = standardise
        size = getattr(module, "size", None)
        self.size = size if isinstance(size, int) and len(shape) == 3 else None
        input_shape = (shape[0], self.size, self.size) if self.size is not None else shape
        output = custom_modules.probe(
            module, torch.zeros(2, *input_shape), f"backbone: items [2, {', '.join(map(str, input_shape))}]"
        )
        if output.ndim not in (2, 4) or len(output) != 2:
            raise SettingError(
                f"backbone: {type(module).__name__} makes {list(output.shape)} of 2 items; it should make features "
                "[2, D] or maps [2, C, H, W]."
            )
        self.makes = "map" if output.ndim == 4 else "vector"
        self.channels = output.shape[1]

    @property
    def normalizes(self) -> bool:
        return not self.standardise

    def maps(self, x: Tensor) -> Tensor:
        features: Tensor = self.module(x)
        return features

    def stages(self) -> list[nn.Module]:
        stages: Any = getattr(self.module, "stages", None)
        return list(stages()) if callable(stages) else list(self.module.children())


def backbone(shape: tuple[int, ...], name: str, *, standardise: bool = True) -> CustomBackbone:
    return CustomBackbone(
        custom_modules.instantiate(f"{custom_modules.PREFIX}{name}", "backbone", shape), shape, standardise
    )
