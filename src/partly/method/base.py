"""Base class of all methods: training steps, predictions, beliefs and checkpoint state."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from partly.clock import Clock
from partly.distributed.group import process_group
from partly.errors import PartlyError, SettingError
from partly.items import Items, Kind, standardize, to_absent
from partly.method.entry_state import EntryState
from partly.method.task import Task
from partly.moved import RenamedAttribute, adopt_former_names
from partly.networks import Network
from partly.optim import optimizers
from partly.optim.averaging import Average
from partly.pool import Batch, Pool

FIRST_STAGE = "first_stage."  # prefix of tensors that a backbone fitted


class Method(nn.Module):
    """Base class of methods. Subclasses take the task, then their settings as typed keyword arguments with defaults."""

    needs_truth: ClassVar[bool] = False  # True for an oracle; every report states it
    entry_state: ClassVar[tuple[EntryState, ...]] = ()  # per-entry state; memory and attributes follow from it
    entry_bytes: ClassVar[int] = 0  # bytes per entry outside `entry_state`, as methods for 0.2 declare it
    belief_bytes: ClassVar[int] = 0  # bytes per belief that is not read from `entry_state`
    working_bytes: ClassVar[int] = 0  # temporary bytes per entry, for example to relabel
    default_epochs: ClassVar[int | None] = None  # epochs to train by default; None for the usual number
    provides_out_of_fold: ClassVar[bool] = False  # whether `out_of_fold` returns scores
    solves: ClassVar[bool] = False  # whether weight_decay is the penalty of a solver
    own_penalty: ClassVar[str | None] = None  # the setting that replaces weight_decay
    variable_size_modules: ClassVar[tuple[str, ...]] = ()  # modules whose size depends on the data, up to a bound
    supports_distributed: ClassVar[bool] = True  # whether it iterates over batches, which processes can share
    kinds: ClassVar[tuple[Kind, ...]] = ("features", "pictures", "texts")  # kinds of items that it can learn from
    settled = RenamedAttribute("may_be_best")
    weighs = RenamedAttribute("sample_weight_support")
    spreads = RenamedAttribute("supports_distributed")
    crosses = RenamedAttribute("provides_out_of_fold")
    grown = RenamedAttribute("variable_size_modules")
    own_epochs = RenamedAttribute("default_epochs")
    coherent = RenamedAttribute("enforce_hierarchy")
    finish = RenamedAttribute("strip_training_state")
    standardised = RenamedAttribute("standardized_features")
    optimisers = RenamedAttribute("optimizers")
    starts_solved: ClassVar[bool] = True  # whether its networks can start at a solved baseline: `Task.network`
    network: Network  # used by the default `forward`

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        adopt_former_names(cls, Method)

    def __init__(self, task: Task, settings: Mapping[str, Any] | None = None) -> None:
        """Register the per-entry state; `settings` are those that it depends on."""
        super().__init__()
        if task.items.kind not in self.kinds:
            raise SettingError(
                f"{type(self).__name__} learns from {' or '.join(self.kinds)}, not from {task.items.kind}."
            )
        self.task = task
        # Plain facts about the training, saved next to the state.
        self.notes: dict[str, Any] = {}
        self.lr_factor = 1.0  # 0: the networks stay where they start
        self._entry_state_names: list[str] = []
        self._accumulating = False  # whether gradients are being accumulated
        self._average: Average | None = None
        for state in self.entry_state_for(task, settings or {}):
            self.register_entry_state(state)

    @classmethod
    def entry_state_for(cls, task: Task, settings: Mapping[str, Any]) -> tuple[EntryState, ...]:
        """Return the per-entry state for this task and these settings."""
        return cls.entry_state

    @classmethod
    def memory(cls, task: Task, settings: Mapping[str, Any]) -> tuple[int, int]:
        """Return the bytes of per-entry state, permanent and temporary. State per item is not counted."""
        bytes_per_entry = sum(state.dtype.itemsize for state in cls.entry_state_for(task, settings) if state.per_label)
        entries = len(task.items) * task.labels
        return (bytes_per_entry + cls.entry_bytes) * entries, cls.working_memory(task, settings)

    @classmethod
    def working_memory(cls, task: Task, settings: Mapping[str, Any]) -> int:
        """Return the bytes of per-entry state that are needed temporarily."""
        return cls.working_bytes * len(task.items) * task.labels

    @classmethod
    def belief_memory(cls, task: Task, settings: Mapping[str, Any]) -> int:
        """Return the bytes of the beliefs about all training entries."""
        read = sum(state.belief.itemsize for state in cls.entry_state_for(task, settings) if state.belief is not None)
        return (read + cls.belief_bytes) * len(task.items) * task.labels

    def register_entry_state(self, state: EntryState) -> None:
        """Add the tensor as an attribute. It is saved in checkpoints, is not part of the model, and is empty without
        `Task.observed`."""
        count = 0 if self.task.observed is None else len(self.task.items)
        shape = (count, self.task.labels) if state.per_label else (count,)
        self.register_buffer(state.name, torch.full(shape, state.fill, dtype=state.dtype), persistent=False)
        self._entry_state_names.append(state.name)

    def keep(self, name: str, fill: float = 0.0, dtype: torch.dtype = torch.float32, per_label: bool = True) -> None:
        """Register per-entry state whose memory `entry_bytes` declares. Deprecated: declare `entry_state`."""
        warnings.warn(
            f"{type(self).__name__}: Method.keep is deprecated since 0.3. Declare {name!r} in entry_state instead of "
            "keep and entry_bytes.",
            DeprecationWarning,
            stacklevel=2,
        )
        self.register_entry_state(EntryState(name, dtype, fill, per_label))

    def steps(self, pool: Pool) -> int:
        """Return the number of safe points per epoch. Override it in a method that does not iterate over batches."""
        return pool.steps

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        """Prepare an epoch, for example relabel or rebuild a graph."""

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        """Make one training step and return metrics, including 'loss'."""
        raise NotImplementedError(f"{type(self).__name__} defines neither update nor epoch.")

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        """Train one epoch. Every yield is a safe point, at which the clock advances."""
        for batch in pool.batches(clock):
            yield self.update(batch, clock)

    def may_be_best(self, clock: Clock) -> bool:
        """Tell whether the epoch that just ended can be selected as the best one.

        A method with phases returns False until its own phase has begun: before that it is another method, which may
        score higher. The answer depends on settings, clock and state only.
        """
        return True

    def plan(self, clock: Clock) -> dict[str, float]:
        """Return quantities that follow a schedule, by description: a growing share, or a phase (1 once it has begun).

        They depend on settings and clock only. The method's page shows them.
        """
        return {}

    def sample_weight_support(self) -> str:
        """Return what sample weights can apply to: "entries", "items", or "" for no support."""
        return ""

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        """Return logits [B, L]. z [B, L] holds the known labels, for heads that use them."""
        if "network" not in self._modules:
            raise NotImplementedError(f"{type(self).__name__} has no `network`, so it must define forward.")
        logits: Tensor = self.network(x, z)
        return logits

    def logits(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        """Return the logits of `forward`, with the hierarchy enforced."""
        return self.enforce_hierarchy(self(x) if z is None else self(x, z))

    def enforce_hierarchy(self, scores: Tensor) -> Tensor:
        """Lower the scores [B, L] of labels to at most those of their ancestors.

        Scores are never raised: coarse labels are known more often than fine ones, so their scores are more reliable.
        """
        for _ in range(self.task.depth):
            for parents in self.task.parent_index:
                scores = torch.minimum(scores, scores[:, list(parents)])
        return scores

    def beliefs(self, rows: slice = slice(None)) -> Tensor | None:
        """Return probabilities of the training entries, N x L or some rows, or None."""
        return None

    def out_of_fold(self, rows: slice = slice(None)) -> Tensor | None:
        """Return logits of the training entries by models that did not see the item, or None."""
        return None

    def thresholds(self) -> Tensor | None:
        """Return the decision threshold of each label [L], or None for 0.5."""
        return None

    @property
    def device(self) -> torch.device:
        return next(chain(self.parameters(), self.buffers())).device

    def observed(self, rows: slice) -> Tensor:
        """Return the known labels of some training items, z [B, L]."""
        assert self.task.observed is not None  # a model that only predicts has no beliefs
        return torch.tensor(self.task.observed.rows(rows), device=self.device)

    def standardized_features(self, items: Items, block: int, first: nn.Module | None = None) -> Any:
        """Return the features of items as the first layer standardizes them, [N, D], in memory. Sparse ones stay
        sparse.

        block: items to read at a time. first: the layer to use, for a method without `network`.
        """
        first = first or self.network.get_submodule("features.0")
        return standardize(items, first.get_buffer("mean").cpu(), first.get_buffer("inverse_scale").cpu(), block)

    def step(self, loss: Tensor, clock: Clock, *optimizers: torch.optim.Optimizer) -> None:
        """Apply gradients. This is the only place that changes parameters.

        With gradient accumulation, gradients are summed until the last batch of a group, each weighted by its share of
        items.
        """
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        for parameter in (p for group in groups for p in group["params"]) if not self._accumulating else ():
            parameter.grad = None  # as `zero_grad` does, without its profiler hook
        batches = self.task.config.accumulate
        (loss if batches == 1 else loss * clock.share_in_group(batches)).backward()
        if batches > 1:
            self._accumulating = not clock.ends_group(batches)
            if self._accumulating:
                return
        process_group().average(p.grad for group in groups for p in group["params"])
        rate = self.learning_rate(clock)
        for group in groups:
            group["lr"] = rate * group["factor"]
        for optimizer in optimizers:
            optimizer.step()
        if self.task.config.average is not None:
            self._averaging(self.task.config.average).update()

    def learning_rate(self, clock: Clock) -> float:
        """Return the learning rate at this time: that of the task, times the factor chosen on held-out entries."""
        return self.lr_factor * self.task.learning_rate(clock)

    def _averaging(self, decay: float) -> Average:
        if self._average is None:
            self._average = Average({name: p for name, p in self.named_parameters() if p.requires_grad}, decay)
        return self._average

    @contextmanager
    def use_average(self) -> Iterator[None]:
        """Replace the weights by their average within this context, for evaluation."""
        if self._average is None:
            yield
        else:
            with self._average.swap():
                yield

    def apply_average(self) -> None:
        """Replace the weights by their average for good."""
        if self._average is not None:
            self._average.apply()

    @staticmethod
    def allocate(optimizer: torch.optim.Optimizer) -> None:
        """Allocate gradients and optimizer state now, for an optimizer whose first step comes late.

        A run that fits into memory at its start then cannot run out of memory later.
        """
        for group in optimizer.param_groups:
            group["lr"] = 0.0
            for parameter in (p for p in group["params"] if p.requires_grad):
                parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        for state in optimizer.state.values():
            if "step" in state:
                state["step"].zero_()  # no step was taken yet

    # ---------------------------------------------------------------- state, for checkpoints

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Return the optimizers that are attributes of this object, by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, torch.optim.Optimizer)}

    def weights(self) -> dict[str, Tensor]:
        """Return all parameters and buffers: the model."""
        return {f"method.{key}": value for key, value in self.state_dict().items()}

    def first_stage(self) -> dict[str, Tensor]:
        """Return the tensors that a backbone fitted to the training items; they are saved with the model."""
        origin = self.task.items.origin
        return {} if origin is None else {f"{FIRST_STAGE}{name}": value for name, value in origin.fitted.items()}

    def entries(self) -> dict[str, Tensor]:
        """Return the per-entry state."""
        return {f"entries.{name}": self.get_buffer(name) for name in self._entry_state_names}

    def state(self) -> dict[str, Tensor]:
        """Return everything that is needed to resume training, as a flat dictionary of tensors."""
        tensors = self.weights() | self.entries()
        for name, optimizer in self.optimizers().items():
            tensors |= {
                f"optimizer.{name}.{key}": value for key, value in optimizers.optimizer_state(optimizer).items()
            }
        if self._accumulating:
            waiting = ((name, parameter.grad) for name, parameter in self.named_parameters())
            tensors |= {f"gradient.{name}": gradient for name, gradient in waiting if gradient is not None}
        if self._average is not None:
            tensors |= {f"average.{key}": value for key, value in self._average.state().items()}
        return tensors

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the result of `state` or `weights`; missing training state is unchanged."""
        state = {k.removeprefix("method."): tensors[k] for k in tensors if k.startswith("method.")}
        for name, own in self.state_dict().items():  # torch would convert integers to weights silently
            if name in state and state[name].dtype != own.dtype:
                raise PartlyError(f"{name} is of {state[name].dtype}, and this method has it as {own.dtype}.")
        self.load_state_dict(state)
        for key, kept in self.entries().items():
            if key in tensors:
                if tensors[key].shape != kept.shape:
                    raise PartlyError(
                        f"{key} is kept for {list(tensors[key].shape)}, and these items and labels need "
                        f"{list(kept.shape)}. Start from a run on the same items and labels."
                    )
                kept.copy_(tensors[key])
        for name, optimizer in self.optimizers().items():
            optimizers.load_state(optimizer, tensors, _find_prefix(tensors, name))
        for key in (key for key in tensors if key.startswith("gradient.")):
            parameter, self._accumulating = self.get_parameter(key.removeprefix("gradient.")), True
            parameter.grad = optimizers.match_layout(parameter, tensors[key]).to(parameter.device)
        if self.task.config.average is not None and "average.steps" in tensors:
            self._averaging(self.task.config.average).load(tensors, "average.")

    def strip_training_state(self) -> None:
        """Keep only what prediction needs: drop per-entry state, optimizers and gradients."""
        for name in self._entry_state_names:
            setattr(self, name, self.get_buffer(name)[:0].clone())
        for name in self.optimizers():
            delattr(self, name)
        self.zero_grad(set_to_none=True)
        self._accumulating, self._average = False, None
        self.task = replace(self.task, observed=None, start=None, weights=None, items=to_absent(self.task.items))
        self.eval()  # for good


def _find_prefix(tensors: Mapping[str, Tensor], optimizer: str) -> str:
    """Return the prefix of an optimizer's tensors; checkpoints of 0.2 say "optimiser", as may the attribute's name."""
    former = optimizer.replace("optimizer", "optimiser")
    prefixes = (f"optimizer.{optimizer}.", f"optimiser.{optimizer}.", f"optimiser.{former}.")
    return next((prefix for prefix in prefixes if any(key.startswith(prefix) for key in tensors)), prefixes[0])
