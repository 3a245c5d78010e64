"""Task: the sizes, networks, optimizers and learning rate that a method is built from."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from partly import networks
from partly.clock import Clock, seed_for
from partly.config import ResolvedConfig
from partly.errors import SettingError
from partly.items import Items
from partly.labels import Labels
from partly.labels.weights import Weights
from partly.method.prior import Prior
from partly.method.start import Start
from partly.model_choice.priors import among_known
from partly.moved import RenamedAttribute
from partly.networks import Network
from partly.networks.backbones import learning_rate_factor
from partly.networks.label_vectors import ReadVectors
from partly.networks.linear import LINEAR_HEADS, WARM_LINEAR
from partly.optim import optimizers, schedules

SMALL_INIT_SCALE = 0.1  # scale of the random weights of further linear heads
MIN_YES_SHARE = 1e-3  # minimum share of positives for the initial bias


@dataclass(frozen=True)
class Task:
    """Everything that a method is built from: the configuration, sizes, new networks and optimizers."""

    items: Items  # training items, or `Absent` ones of a saved model
    labels: int
    config: ResolvedConfig = ResolvedConfig()  # noqa: RUF009 (frozen)
    observed: Labels | None = None  # labels of the training items; None for a model that only predicts
    read_vectors: ReadVectors | None = None  # reader of files with vectors of labels
    start: Start | None = None  # where networks start; None: at random weights
    prior: Prior | None = None  # what teachers say of the training entries
    weights: Weights | None = None  # of the training entries, for the start
    parent_index: tuple[tuple[int, ...], ...] = ()  # rows over labels: the k-th parent of each, or itself

    above = RenamedAttribute("parent_index")
    rate = RenamedAttribute("learning_rate")
    optimiser = RenamedAttribute("make_optimizer")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return fields of 0.2 that are now in `config`, with a warning."""
            if name not in ResolvedConfig.__dataclass_fields__:
                raise AttributeError(f"Task has no attribute {name!r}")
            warnings.warn(f"Task.{name} is now Task.config.{name}.", DeprecationWarning, stacklevel=2)
            return getattr(self.config, name)

    def with_config(self, **changes: Any) -> Task:
        """Return the task with another configuration."""
        return replace(self, config=replace(self.config, **changes))

    @property
    def depth(self) -> int:
        """Return the number of levels of the hierarchy below its roots; 0 without a hierarchy."""
        steps, depth = {(child, above) for row in self.parent_index for child, above in enumerate(row)}, 0
        steps = {(child, above) for child, above in steps if child != above}
        while steps:  # without those that begin at a root, level after level
            below = {child for child, _ in steps}
            steps, depth = {(child, above) for child, above in steps if above in below}, depth + 1
        return depth

    @property
    def has_first_logits(self) -> bool:
        """Return True if there are scores of the training entries before training."""
        return self.start is not None or self.prior is not None

    def first_logits(self) -> torch.Tensor | None:
        """Return logits of the training entries before training, [N, L], by fits that did not see the item.

        They are those of the solved start, combined with the scores of teachers; None where there is neither.
        """
        solved = None if self.start is None else self.start.out_of_fold()
        return solved if self.prior is None else self.prior(solved)

    def network(self, role: str = "network", logits: bool = True, at_random: bool = True, sample: int = 0) -> Network:
        """Return a new network. Its initial weights depend only on the seed and the role.

        With a start, it scores as the solved baseline until it learns. sample: 1 and -1 for two networks that have to
        differ. They start on either side of the baseline, as far apart as fits to two bootstrap samples.

        A linear head that makes logits starts from the known labels (`_start`) if entries are missing at random.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for(self.config.seed, "weights", role))
            if self.start is not None and logits:
                offered = {"observed": self.observed, "read_vectors": self.read_vectors}
                network = self.start.network(self.config.head, self.config.head_settings, sample, **offered)
                return network.configure_training(self.config.dtype, self.config.compile)
            body = (self.config.head, self.config.head_settings, self.config.backbone, self.config.backbone_settings)
            network = networks.build(
                self.items, self.labels, *body, observed=self.observed, read_vectors=self.read_vectors
            )
        if not any(parameter.requires_grad for parameter in network.parameters()):
            raise SettingError(f"Nothing is left to train: {self.config.backbone_settings} freezes every parameter.")
        if logits and self.config.head in LINEAR_HEADS and isinstance(network.head, nn.Linear):
            self._start(network.head, role == "network", at_random)
            network.warm = self.config.head == WARM_LINEAR
        return network.configure_training(self.config.dtype, self.config.compile)

    @torch.no_grad()
    def _start(self, head: nn.Linear, first: bool, at_random: bool) -> None:
        """Initialize a linear head: weights at zero, biases at the log-odds of the known entries.

        Random weights on hundreds of features are noise that a short training does not remove. Of several networks only
        the first starts at zero, so that they differ; the others start small. Without known negatives the biases stay
        at zero, and the method decides.
        """
        if first:
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
        if at_random and self.observed is not None and self.observed.counts()[1].any():
            share = among_known(self.observed).clip(MIN_YES_SHARE, 1 - MIN_YES_SHARE)
            head.bias.copy_(torch.from_numpy(np.log(share / (1 - share))))
            head.weight.mul_(SMALL_INIT_SCALE)

    def make_optimizer(self, parameters: Iterable[nn.Parameter], factor: float = 1.0) -> torch.optim.Optimizer:
        """Return an optimizer at `factor` times the learning rate, scaled for parameters of a backbone."""
        rates: dict[float, list[nn.Parameter]] = {}
        for parameter in parameters:
            rates.setdefault(factor * learning_rate_factor(parameter), []).append(parameter)
        groups = [{"params": same, "factor": rate} for rate, same in rates.items()]
        return optimizers.make(self.config.optimizer, groups, self.config.lr, self.config.weight_decay)

    def learning_rate(self, clock: Clock, lr: float | None = None) -> float:
        """Return the learning rate at this time, by the schedule; lr: replaces that of the configuration."""
        config, schedule = self.config, schedules.find(self.config.schedule).make
        lr = config.lr if lr is None else lr
        return float(schedule(clock.group_batches(config.accumulate), lr, **config.schedule_settings))
