"""Vision models of timm, by name: `timm:NAME`. timm and torchvision must be installed."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from partly.errors import SettingError
from partly.networks.backbones.contract import Backbone
from partly.networks.backbones.hf import tokens_to_maps
from partly.registry import About

ABOUT = About(weights="weights of timm: {name}")


class TimmModel(Backbone):
    """Images [B, 3, H, W] -> maps [B, channels, h, w]. The stages are the children of the model."""

    def __init__(self, model: Any, said: dict[str, Any]) -> None:
        super().__init__([255 * value for value in said["mean"]], [255 * value for value in said["std"]])
        self.model = model
        self.channels = int(model.num_features)
        self.size = int(said["input_size"][-1])

    def maps(self, x: Tensor) -> Tensor:
        made: Tensor = self.model.forward_features(x)
        return tokens_to_maps(made[:, getattr(self.model, "num_prefix_tokens", 0) :] if made.ndim == 3 else made)

    def stages(self) -> list[nn.Module]:
        return [child for child in self.model.children() if any(True for _ in child.parameters())]


def backbone(shape: tuple[int, ...], name: str, *, pretrained: bool = True) -> TimmModel:
    """Build it for images [C, H, W]."""
    try:
        import timm
    except (ImportError, RuntimeError) as error:
        raise SettingError(f"backbone = 'timm:{name}': timm cannot be imported here ({error}).") from None
    try:
        model = timm.create_model(name, pretrained=pretrained, num_classes=0)
    except RuntimeError as error:  # raised by timm for an unknown name
        raise SettingError(f"backbone = 'timm:{name}': {error}") from None
    return TimmModel(model, timm.data.resolve_model_data_config(model))
