"""The contract of a method, and how the methods in the folder `methods/` are found.

The loop owns time (order, saving, evaluating); a method owns change: its networks, its optimisers, its beliefs and
how one step changes them. All that must survive a crash is a parameter, a buffer or an optimiser of the method.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from partly import networks
from partly.clock import Clock, seed_for
from partly.errors import SettingError, did_you_mean
from partly.labels import Labels
from partly.networks import Network
from partly.pool import Batch, Pool

OPTIMISERS = ("adamw", "sgd")


@dataclass(frozen=True)
class Task:
    """What a method builds itself from: sizes, fresh networks, optimisers. One place for the learning rate."""

    x: Tensor  # training items, for their shape and for the scale of the features
    items: int
    labels: int
    head: str = "mlp"
    optimizer: str = "adamw"
    lr: float = 1e-3
    weight_decay: float = 1e-2
    warmup: float = 0.05  # share of the schedule
    seed: int = 0
    observed: Labels | None = None  # the training labels, for graphs over the labels; None when a model is loaded

    def network(self, role: str = "network") -> Network:
        """A new network; its first weights are a function of the seed and the role alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for(self.seed, "weights", role))
            return networks.build(self.head, self.x, self.labels, self.observed)

    def optimiser(self, parameters: Iterable[nn.Parameter], factor: float = 1.0) -> torch.optim.Optimizer:
        """An optimiser for these parameters, at `factor` times the task's learning rate."""
        group = [{"params": list(parameters), "factor": factor}]
        if self.optimizer == "adamw":
            return torch.optim.AdamW(group, lr=self.lr, weight_decay=self.weight_decay, fused=True)
        if self.optimizer == "sgd":
            return torch.optim.SGD(group, lr=self.lr, momentum=0.9, weight_decay=self.weight_decay, fused=True)
        raise SettingError(f"There is no optimizer {self.optimizer!r}.{did_you_mean(self.optimizer, OPTIMISERS)}")

    def rate(self, clock: Clock) -> float:
        """The learning rate now: linear warm-up, then half a cosine down to 0."""
        # The middle of the step, so that neither the first nor the last step is wasted at rate 0.
        done = min(1.0, clock.progress + 0.5 / (clock.steps * clock.epochs))
        if done < self.warmup:
            return self.lr * done / self.warmup
        return self.lr * 0.5 * (1.0 + math.cos(math.pi * (done - self.warmup) / (1.0 - self.warmup)))


class Method(nn.Module):
    """One paper. Subclasses take the task, then their settings as typed keyword arguments with defaults."""

    needs_truth: ClassVar[bool] = False  # an oracle says so, and every report prints it
    entry_bytes: ClassVar[int] = 0  # memory kept per entry (N x L), declared so that a run can be refused in time
    network: Network  # what `forward` asks, where a method does not say otherwise

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task

    @classmethod
    def kept_bytes(cls, items: int, labels: int, settings: dict[str, Any]) -> int:
        """Memory kept for entries with these settings (all of them), known before anything is made."""
        return cls.entry_bytes * items * labels

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        """Before the first step of an epoch: relabel, rebuild a graph."""

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        """One step: forward, backward, optimiser(s). Returns what is worth watching, 'loss' among it."""
        raise NotImplementedError(f"{type(self).__name__} defines neither update nor epoch.")

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        """One epoch. Every yield is a safe point; the clock ticks there."""
        for batch in pool.batches(clock):
            yield self.update(batch, clock)

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        """Logits [B, L]; z [B, L] is what is known of the items, for the heads that make use of it."""
        if "network" not in self._modules:
            raise NotImplementedError(f"{type(self).__name__} has no `network`, so it must define forward.")
        logits: Tensor = self.network(x, z)
        return logits

    def beliefs(self) -> Tensor | None:
        """What the method holds to be true of the training entries: N x L in [0, 1], or None."""
        return None

    def step(self, loss: Tensor, clock: Clock, *optimisers: torch.optim.Optimizer) -> None:
        """The one place where gradients become changes."""
        for optimiser in optimisers:
            optimiser.zero_grad(set_to_none=True)
        loss.backward()
        rate = self.task.rate(clock)
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = rate * group["factor"]
            optimiser.step()

    @staticmethod
    def allocate(optimiser: torch.optim.Optimizer) -> None:
        """Make gradients and state of an optimiser now, as they would be before its first step. For one whose first
        step comes late: a run that fits into memory when it begins shall not grow out of it in the middle."""
        for group in optimiser.param_groups:
            group["lr"] = 0.0
            for parameter in (p for p in group["params"] if p.requires_grad):
                parameter.grad = torch.zeros_like(parameter)
        optimiser.step()
        for state in optimiser.state.values():
            if "step" in state:
                state["step"].zero_()  # none has been taken

    # ---------------------------------------------------------------- state, for checkpoints

    def optimisers(self) -> dict[str, torch.optim.Optimizer]:
        """Every optimiser that is an attribute of this object, by attribute name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, torch.optim.Optimizer)}

    def weights(self) -> dict[str, Tensor]:
        """All parameters and buffers."""
        return {f"method.{key}": value for key, value in self.state_dict().items()}

    def state(self) -> dict[str, Tensor]:
        """All parameters, buffers and optimiser states, as one flat dictionary of tensors."""
        tensors = self.weights()
        for name, optimiser in self.optimisers().items():
            for number, state in optimiser.state_dict()["state"].items():
                tensors |= {f"optimiser.{name}.{number}.{k}": v for k, v in state.items() if v is not None}
        return tensors

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `state`."""
        self.load_state_dict({k.removeprefix("method."): v for k, v in tensors.items() if k.startswith("method.")})
        for name, optimiser in self.optimisers().items():
            state: dict[int, dict[str, Tensor]] = {}
            prefix = f"optimiser.{name}."
            for key in (key for key in tensors if key.startswith(prefix)):
                number, entry = key.removeprefix(prefix).split(".", 1)
                state.setdefault(int(number), {})[entry] = tensors[key].clone()
            optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


class LossMethod(Method):
    """One network trained with a loss function; what a file in `methods/` with only a `loss` becomes.

    The function takes (logits, z), or (logits, z, clock) where it changes with the epochs, then its settings.
    """

    def __init__(self, task: Task, loss: Callable[..., Tensor], settings: dict[str, Any]) -> None:
        super().__init__(task)
        self.network = task.network()
        self.optimiser = task.optimiser(self.network.parameters())
        self.loss, self.settings = loss, settings
        self.timed = "clock" in inspect.signature(loss).parameters

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        given = (self.network(batch.x, batch.z), batch.z, *((clock,) if self.timed else ()))
        loss = self.loss(*given, **self.settings).mean()
        penalty = self.penalty()
        loss = loss if penalty is None else loss + penalty
        self.step(loss, clock, self.optimiser)
        return {"loss": loss.item()}

    def penalty(self) -> Tensor | None:
        """What a subclass adds to the loss of every batch."""
        return None
