"""What every method is: how it changes by steps, what it predicts and believes, and what of it must survive a crash."""

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
from partly.items import Items, Kind, absent, origin_of, standardised
from partly.method.entry_state import EntryState
from partly.method.task import Task
from partly.moved import RenamedAttribute, adopt_former_names
from partly.networks import Network
from partly.optim import optimisers
from partly.optim.averaging import Average
from partly.pool import Batch, Pool

FIRST_STAGE = "first_stage."  # begins the names of tensors that a backbone has fitted


class Method(nn.Module):
    """One paper. Subclasses take the task, then their settings as typed keyword arguments with defaults."""

    needs_truth: ClassVar[bool] = False  # an oracle says so, and every report prints it
    entry_state: ClassVar[tuple[EntryState, ...]] = ()  # kept for training entries; memory and attributes follow
    entry_bytes: ClassVar[int] = 0  # kept per entry (N x L) outside `entry_state`, as methods for 0.2 declare it
    belief_bytes: ClassVar[int] = 0  # of one belief that is not read from `entry_state`
    working_bytes: ClassVar[int] = 0  # memory per entry that is needed now and then: to relabel, for one
    default_epochs: ClassVar[int | None] = (
        None  # epochs in which there is something to learn, where nobody asks for more
    )
    provides_out_of_fold: ClassVar[bool] = (
        False  # whether it has scores of training entries by who has not seen them: `out_of_fold`
    )
    solves: ClassVar[bool] = False  # whether weight_decay, where given, is the penalty of what is solved
    own_penalty: ClassVar[str | None] = None  # a setting of its own in the place of weight_decay
    variable_size_modules: ClassVar[
        tuple[str, ...]
    ] = ()  # parts of the model whose size follows that of the data, up to some bound
    supports_distributed: ClassVar[bool] = (
        True  # whether it goes through batches, whose items several processes can share
    )
    kinds: ClassVar[tuple[Kind, ...]] = ("features", "pictures", "texts")  # of items that it can learn from
    settled = RenamedAttribute("may_be_best")
    weighs = RenamedAttribute("sample_weight_support")
    spreads = RenamedAttribute("supports_distributed")
    crosses = RenamedAttribute("provides_out_of_fold")
    grown = RenamedAttribute("variable_size_modules")
    own_epochs = RenamedAttribute("default_epochs")
    coherent = RenamedAttribute("enforce_hierarchy")
    finish = RenamedAttribute("strip_training_state")
    standardised = RenamedAttribute("standardized_features")
    network: Network  # what `forward` asks, where a method does not say otherwise

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        adopt_former_names(cls, Method)

    def __init__(self, task: Task, settings: Mapping[str, Any] | None = None) -> None:
        """Register the per-entry state; `settings` are those on which it depends, if there are any."""
        super().__init__()
        if task.items.kind not in self.kinds:
            raise SettingError(
                f"{type(self).__name__} learns from {' or '.join(self.kinds)}, not from {task.items.kind}."
            )
        self.task = task
        # Worth telling of how it was trained: plain, saved beside the state, and no part of it.
        self.notes: dict[str, Any] = {}
        self._entry_state_names: list[str] = []
        self._accumulating = False  # whether gradients of a batch wait for those of the next
        self._average: Average | None = None
        for state in self.entry_state_for(task, settings or {}):
            self.register_entry_state(state)

    @classmethod
    def entry_state_for(cls, task: Task, settings: Mapping[str, Any]) -> tuple[EntryState, ...]:
        """Return the per-entry state for this task and these settings, before anything is made."""
        return cls.entry_state

    @classmethod
    def memory(cls, task: Task, settings: Mapping[str, Any]) -> tuple[int, int]:
        """Return the bytes for entries with these settings (all of them): kept throughout, and needed temporarily.
        State per item is not counted."""
        kept = sum(state.dtype.itemsize for state in cls.entry_state_for(task, settings) if state.per_label)
        entries = len(task.items) * task.labels
        return (kept + cls.entry_bytes) * entries, cls.working_memory(task, settings)

    @classmethod
    def working_memory(cls, task: Task, settings: Mapping[str, Any]) -> int:
        """Return the bytes for entries that are needed temporarily."""
        return cls.working_bytes * len(task.items) * task.labels

    @classmethod
    def belief_memory(cls, task: Task, settings: Mapping[str, Any]) -> int:
        """Return the bytes of the beliefs about all training entries."""
        read = sum(state.belief.itemsize for state in cls.entry_state_for(task, settings) if state.belief is not None)
        return (read + cls.belief_bytes) * len(task.items) * task.labels

    def register_entry_state(self, state: EntryState) -> None:
        """Make the tensor an attribute. It is saved so that training can go on, and is not part of the model: it is
        empty where `Task.observed` is None."""
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
        """Safe points of an epoch. Who does not go through batches says how many there are."""
        return pool.steps

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        """Before the first step of an epoch: relabel, rebuild a graph."""

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        """One step: forward, backward, optimiser(s). Returns what is worth watching, 'loss' among it."""
        raise NotImplementedError(f"{type(self).__name__} defines neither update nor epoch.")

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        """One epoch. Every yield is a safe point; the clock ticks there."""
        for batch in pool.batches(clock):
            yield self.update(batch, clock)

    def may_be_best(self, clock: Clock) -> bool:
        """Whether the epoch that has just ended may be chosen as the best. A method with phases says no until the one
        that it is named for has begun: before, it is another method, which may well be better for a while. Asked when
        the steps of an epoch are over, and the clock is still in it. Settings, clock and state decide."""
        return True

    def plan(self, clock: Clock) -> dict[str, float]:
        """What changes with the epochs whatever is learned, in words: a share that grows, or a phase, 1 once it has
        begun. From settings and clock alone; the method's page shows it."""
        return {}

    def sample_weight_support(self) -> str:
        """Whose losses it weighs, where they count differently: "entries", "items", or "" where it cannot."""
        return ""

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        """Logits [B, L]; z [B, L] is what is known of the items, for the heads that make use of it."""
        if "network" not in self._modules:
            raise NotImplementedError(f"{type(self).__name__} has no `network`, so it must define forward.")
        logits: Tensor = self.network(x, z)
        return logits

    def logits(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        """Those of `forward` as they leave the model: of a hierarchy, no label above its parent."""
        return self.enforce_hierarchy(self(x) if z is None else self(x, z))

    def enforce_hierarchy(self, scores: Tensor) -> Tensor:
        """Scores [B, L] of which no label's is above its parent's: the least of it and of all above it. Only from top
        to bottom: a coarse label is often known where a fine one is not, so its own score is what is best known."""
        for _ in range(self.task.depth):
            scores = torch.minimum(scores, scores[:, list(self.task.parent_index)])
        return scores

    def beliefs(self, rows: slice = slice(None)) -> Tensor | None:
        """What the method holds to be true of the training entries: N x L in [0, 1], all or some rows; or None."""
        return None

    def out_of_fold(self, rows: slice = slice(None)) -> Tensor | None:
        """Logits of the training entries by a model that has not seen the item: N x L, all or some rows; or None, where
        the method trains no such models."""
        return None

    def thresholds(self) -> Tensor | None:
        """From which probability on each label [L] is called yes, where the method has chosen; None for 0.5."""
        return None

    @property
    def device(self) -> torch.device:
        return next(chain(self.parameters(), self.buffers())).device

    def observed(self, rows: slice) -> Tensor:
        """What is known of some training items, z [B, L]: for `beliefs`."""
        assert self.task.observed is not None  # who only predicts has no beliefs
        return torch.tensor(self.task.observed.rows(rows), device=self.device)

    def standardized_features(self, items: Items, block: int, first: nn.Module | None = None) -> Any:
        """Features of these items as the network's first layer makes them (or another such layer, where there is no
        network), [N, D], all in memory, read so many at a time; sparse ones stay sparse: for a solver."""
        first = first or self.network.get_submodule("features.0")
        return standardised(items, first.get_buffer("mean").cpu(), first.get_buffer("inverse_scale").cpu(), block)

    def step(self, loss: Tensor, clock: Clock, *optimisers: torch.optim.Optimizer) -> None:
        """The one place where gradients become changes. Where several batches make a step, they are gathered until the
        last of them, and the loss is that of all their items."""
        groups = [group for optimiser in optimisers for group in optimiser.param_groups]
        for parameter in (p for group in groups for p in group["params"]) if not self._accumulating else ():
            parameter.grad = None  # what `zero_grad` does, which tells torch's profiler too
        batches = self.task.config.accumulate
        (loss if batches == 1 else loss * clock.share_in_group(batches)).backward()
        if batches > 1:
            self._accumulating = not clock.ends_group(batches)
            if self._accumulating:
                return
        process_group().average(p.grad for group in groups for p in group["params"])
        rate = self.task.learning_rate(clock)
        for group in groups:
            group["lr"] = rate * group["factor"]
        for optimiser in optimisers:
            optimiser.step()
        if self.task.config.average is not None:
            self._averaging(self.task.config.average).update()

    def _averaging(self, decay: float) -> Average:
        if self._average is None:
            self._average = Average({name: p for name, p in self.named_parameters() if p.requires_grad}, decay)
        return self._average

    @contextmanager
    def use_average(self) -> Iterator[None]:
        """While it lasts, the weights are their average, where one is kept: that is what is judged."""
        if self._average is None:
            yield
        else:
            with self._average.swapped_in():
                yield

    def apply_average(self) -> None:
        """For good, the weights are their average, where one is kept."""
        if self._average is not None:
            self._average.apply()

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
        """All parameters and buffers: the model."""
        return {f"method.{key}": value for key, value in self.state_dict().items()}

    def first_stage(self) -> dict[str, Tensor]:
        """What a backbone has measured on the training items to make features of them: saved with the model."""
        origin = origin_of(self.task.items)
        return {} if origin is None else {f"{FIRST_STAGE}{name}": value for name, value in origin.fitted.items()}

    def entries(self) -> dict[str, Tensor]:
        """What is kept for the training entries."""
        return {f"entries.{name}": self.get_buffer(name) for name in self._entry_state_names}

    def state(self) -> dict[str, Tensor]:
        """All that training needs to go on, as one flat dictionary of tensors."""
        tensors = self.weights() | self.entries()
        for name, optimiser in self.optimisers().items():
            tensors |= {f"optimiser.{name}.{key}": value for key, value in optimisers.state_of(optimiser).items()}
        if self._accumulating:
            waiting = ((name, parameter.grad) for name, parameter in self.named_parameters())
            tensors |= {f"gradient.{name}": gradient for name, gradient in waiting if gradient is not None}
        if self._average is not None:
            tensors |= {f"average.{key}": value for key, value in self._average.state().items()}
        return tensors

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """The inverse of `state`, and of `weights`: of the rest, what is there is taken."""
        state = {k.removeprefix("method."): tensors[k] for k in tensors if k.startswith("method.")}
        for name, own in self.state_dict().items():  # torch would turn whole numbers into weights without a word
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
        for name, optimiser in self.optimisers().items():
            optimisers.load_state(optimiser, tensors, f"optimiser.{name}.")
        for key in (key for key in tensors if key.startswith("gradient.")):
            parameter, self._accumulating = self.get_parameter(key.removeprefix("gradient.")), True
            parameter.grad = optimisers.laid_out_as(parameter, tensors[key]).to(parameter.device)
        if self.task.config.average is not None and "average.steps" in tensors:
            self._averaging(self.task.config.average).load(tensors, "average.")

    def strip_training_state(self) -> None:
        """Become a model that only predicts: let go of what was there to train."""
        for name in self._entry_state_names:
            setattr(self, name, self.get_buffer(name)[:0].clone())
        for name in self.optimisers():
            delattr(self, name)
        self.zero_grad(set_to_none=True)
        self._accumulating, self._average = False, None
        self.task = replace(self.task, observed=None, items=absent(self.task.items))
        self.eval()  # for good
