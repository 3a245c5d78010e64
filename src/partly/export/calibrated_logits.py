"""A calibration as torch code that a graph can hold: the same lines and steps as `calling.maps`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from partly.calibration import Calibration, IsotonicMap, PlattMap


class Calibrated(nn.Module):
    """Logits [B, L] -> calibrated ones."""

    slope: Tensor  # [L]
    bias: Tensor  # [L]
    x: Tensor  # [L, K], rising
    y: Tensor  # [L, K]
    stepped: Tensor  # [L], whether a label has steps

    def __init__(self, calibration: Calibration) -> None:
        super().__init__()
        self.some = any(isinstance(label.map, IsotonicMap) for label in calibration.labels)
        maps = [label.map for label in calibration.labels]
        lines = [map if isinstance(map, PlattMap) else PlattMap() for map in maps]
        self.register_buffer("slope", torch.tensor([line.slope for line in lines]))
        self.register_buffer("bias", torch.tensor([line.bias for line in lines]))
        steps = [map if isinstance(map, IsotonicMap) else IsotonicMap((0.0, 1.0), (0.5, 0.5)) for map in maps]
        most = max((len(step.x) for step in steps), default=2)
        # Shorter ones go on flat, far out, where no score is.
        self.register_buffer("x", torch.tensor([_filled(step.x, most, 1.0) for step in steps]).reshape(-1, most))
        self.register_buffer("y", torch.tensor([_filled(step.y, most, 0.0) for step in steps]).reshape(-1, most))
        self.register_buffer("stepped", torch.tensor([isinstance(map, IsotonicMap) for map in maps], dtype=torch.bool))

    def forward(self, logits: Tensor) -> Tensor:
        found = self.slope * logits + self.bias
        if not self.some:
            return found
        s = torch.maximum(torch.minimum(logits, self.x[:, -1]), self.x[:, 0])
        # Each step gives the part of its rise that the score has gone through: no search, which ONNX does not have.
        width = self.x[:, 1:] - self.x[:, :-1]
        gone = ((s.unsqueeze(2) - self.x[:, :-1]) / width).clamp(0, 1)
        p = self.y[:, 0] + (gone * (self.y[:, 1:] - self.y[:, :-1])).sum(dim=2)
        return torch.where(self.stepped, torch.log(p) - torch.log1p(-p), found)


def _filled(values: tuple[float, ...], most: int, apart: float) -> list[float]:
    return [*values, *(values[-1] + apart * (i + 1) for i in range(most - len(values)))]
