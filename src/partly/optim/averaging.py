"""Exponential moving average of weights over all steps so far.

It is normalized by the sum of its coefficients, so that the initial weights have no influence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from partly.optim.optimizers import match_layout


class Average:
    """Moving average of parameters."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], decay: float) -> None:
        self.parameters, self.decay = dict(parameters), decay
        self.values = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        self.steps = torch.zeros((), dtype=torch.int64)

    @torch.no_grad()
    def update(self) -> None:
        """Add the weights after a step."""
        self.steps += 1
        weight = (1 - self.decay) / (1 - self.decay ** int(self.steps))
        for name, parameter in self.parameters.items():
            self.values[name].lerp_(parameter, weight)

    @contextmanager
    def swap(self) -> Iterator[None]:
        """Replace the parameters by the average within this context."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for name, parameter in self.parameters.items():
            parameter.data, self.values[name] = self.values[name], parameter.data

    @torch.no_grad()
    def apply(self) -> None:
        """Replace the parameters by the average for good."""
        for name, parameter in self.parameters.items():
            parameter.copy_(self.values[name])

    def state(self) -> dict[str, Tensor]:
        return {"steps": self.steps, **{f"value.{name}": value for name, value in self.values.items()}}

    def load(self, tensors: Mapping[str, Tensor], prefix: str) -> None:
        """Load the result of `state` from tensors with this prefix."""
        self.steps = tensors[f"{prefix}steps"].cpu().clone()
        self.values = {
            name: match_layout(parameter, tensors[f"{prefix}value.{name}"]).to(parameter.device)
            for name, parameter in self.parameters.items()
        }
