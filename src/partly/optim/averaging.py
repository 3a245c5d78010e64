"""An exponential average of weights: of those after every step so far, each counting `decay` times as much as the next.

The weights of the steps are divided by their sum, so that the average is one from the first step on, and not for
hundreds of them mostly the weights of the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from partly.optim.optimisers import laid_out_as


class Average:
    """Of some parameters, which go on as they are."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], decay: float) -> None:
        self.parameters, self.decay = dict(parameters), decay
        self.values = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        self.steps = torch.zeros((), dtype=torch.int64)

    @torch.no_grad()
    def update(self) -> None:
        """After a step."""
        self.steps += 1
        weight = (1 - self.decay) / (1 - self.decay ** int(self.steps))
        for name, parameter in self.parameters.items():
            self.values[name].lerp_(parameter, weight)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """While it lasts, the parameters are the average."""
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
        """For good, the parameters become the average."""
        for name, parameter in self.parameters.items():
            parameter.copy_(self.values[name])

    def state(self) -> dict[str, Tensor]:
        return {"steps": self.steps, **{f"value.{name}": value for name, value in self.values.items()}}

    def load(self, tensors: Mapping[str, Tensor], prefix: str) -> None:
        """The inverse of `state`, of those tensors whose names begin so."""
        self.steps = tensors[f"{prefix}steps"].cpu().clone()
        self.values = {
            name: laid_out_as(parameter, tensors[f"{prefix}value.{name}"]).to(parameter.device)
            for name, parameter in self.parameters.items()
        }
