"""A linear read-out under a weighted cross-entropy, solved by L-BFGS instead of trained by steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from partly.clock import Clock, seed_for
from partly.items.sparse_rows import SparseRows
from partly.method import EntryState, Method, Task
from partly.networks import feature_width, union_of
from partly.networks.kernel import AXES, Nystroem
from partly.networks.layers import FeatureUnion
from partly.networks.linear import LINEAR_HEADS
from partly.pool import Pool
from partly.solvers import folds
from partly.solvers.blending import blend_or_first, relative_gains, softmax_weights, without_negligible
from partly.solvers.logistic import Features, Floats
from partly.solvers.many_items import MANY_ITEMS, MAX_NUMBERS, FeatureBlocks

HEADS = (*LINEAR_HEADS, "kernel")  # heads that learn only the read-out
MLP_HEAD = "mlp"  # head whose hidden layers are trained next to a solved path
MAX_BYTES = 1 << 32  # memory limit of the solver; above it, training is by steps
KERNEL_FEATURES = ("linear", "linear_raw", "gaussian", "gaussian_raw", "laplace")  # those of `networks.kernel`
BLOCK = 1 << 12  # items per block of features
BLOCK_ENTRIES = 1 << 18  # of labels
Terms = Callable[..., tuple[Tensor, Tensor]]


def can_solve(task: Task) -> bool:
    """Tell whether a weighted cross-entropy is solved for this task, or a linear path next to an MLP.

    It is solved on features that fit into memory and reach the head directly, unless training by steps is requested.
    """
    return _is_solvable(task) and sum(memory(task)) <= MAX_BYTES


def exceeds_memory(task: Task) -> bool:
    """Tell whether only memory prevents a solution."""
    return _is_solvable(task) and sum(memory(task)) > MAX_BYTES


def _is_solvable(task: Task) -> bool:
    on_features = task.items.kind == "features" and task.config.backbone is None
    plain = on_features and task.config.head in (*HEADS, MLP_HEAD) and task.config.optimizer == "adamw"
    return bool(plain and task.config.head_settings.get("solve", True))


def memory(task: Task) -> tuple[int, int]:
    """Return the bytes of per-entry state: permanent, and temporary while solving."""
    entries, kinds = len(task.items) * task.labels, len(declare_held_out_state(task.config.head))
    width = feature_width(task.items, task.config.backbone, task.config.backbone_settings)
    if task.config.head == "kernel":
        width = max(width, task.config.head_settings.get("axes", AXES))
    return 4 * kinds * entries, folds.memory(len(task.items), task.labels, width) + 8 * (kinds - 1) * entries


def weights_and_targets(pool: Pool, terms: Terms, settings: dict[str, Any]) -> tuple[Floats, Floats]:
    """Return weights and targets of all training entries, [L, N] each."""
    items, labels = pool.labels.shape
    weights, targets = (np.empty((labels, items), np.float32) for _ in range(2))
    size = max(1, BLOCK_ENTRIES // max(1, labels))
    for rows in (slice(start, start + size) for start in range(0, items, size)):
        z = torch.tensor(pool.labels.rows(rows), device=pool.device)
        weights[:, rows], targets[:, rows] = (part.T.cpu().numpy() for part in terms(z, **settings))
    if pool.weights is not None:
        weights *= pool.weights.T
    return weights, targets


def dense(x: Any) -> Floats:
    """Return features as a dense array."""
    array: Floats = x if not hasattr(x, "toarray") else x.toarray()
    return array


def declare_held_out_state(head: str) -> tuple[EntryState, ...]:
    """Return the per-entry state of a head: out-of-fold scores for each kind of its features."""
    return tuple(EntryState(f"held_out_{name}") for name in (KERNEL_FEATURES if head == "kernel" else ("linear",)))


class SolvedReadout(Method):
    """Solve one kind of features per step; the last step blends them by held-out loss, and later steps do nothing.

    Cross-validation over the items chooses C, so all epochs are equal.
    """

    default_epochs = 1
    solves = True
    supports_distributed = False
    provides_out_of_fold = True
    variable_size_modules: ClassVar[tuple[str, ...]] = (
        "network.features.1",
        "network.head",
    )  # landmarks and the weights of their axes
    losses: Tensor  # [M], held-out losses
    strengths: Tensor  # [M]
    counts: Tensor  # [M], weight of each kind
    slopes: Tensor  # [M, L], factors of its scores
    bias: Tensor  # [L], added to their sum

    def __init__(self, task: Task, terms: Terms, settings: dict[str, Any]) -> None:
        super().__init__(task, settings)
        self.network = task.network()
        self.terms, self.settings = terms, settings
        self.spans = self.union.spans
        count = len(self.spans)
        self.register_buffer("losses", torch.full((count,), math.inf))
        for name in ("strengths", "counts"):
            self.register_buffer(name, torch.zeros(count))
        self.register_buffer("slopes", torch.zeros(count, task.labels))
        self.register_buffer("bias", torch.zeros(task.labels))

    @classmethod
    def entry_state_for(cls, task: Task, settings: Mapping[str, Any]) -> tuple[EntryState, ...]:
        return declare_held_out_state(task.config.head)

    def sample_weight_support(self) -> str:
        return "entries"

    def steps(self, pool: Pool) -> int:
        return len(self.spans)

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        names = list(self.spans)
        for step in range(clock.step, len(names)):
            if self.task.config.lr and not clock.epoch:  # a learning rate of 0 disables the solver
                self.solve(pool, names[step])
                if step == len(names) - 1:
                    self.blend(pool)
            yield {"loss": self.best_loss(), "strength": self.strengths[step].item()}

    def best_loss(self) -> float:
        """Return the smallest held-out loss so far; 0 before the first."""
        least = self.losses.min().item()
        return least if math.isfinite(least) else 0.0

    def solve(self, pool: Pool, name: str) -> None:
        """Solve one kind of features."""
        self.store_fit(name, self.compute_fit(pool, name))

    @torch.no_grad()
    def compute_fit(self, pool: Pool, name: str) -> folds.CrossValidatedFit:
        """Return the solution for one kind of features."""
        weights, targets = self.weights_and_targets(pool)
        x = self.features(pool, name)
        if isinstance(x, FeatureBlocks) and not isinstance(self.union.parts[name], nn.Identity):
            x, weights = self._sample(x, weights)
        return folds.solve(x, weights, targets, self.fold(pool), self.task.config.penalty)

    @torch.no_grad()
    def store_fit(self, name: str, fit: folds.CrossValidatedFit) -> None:
        """Keep the solution for one kind of features."""
        number = list(self.spans).index(name)
        self.network.head.get_parameter("weight")[:, self.spans[name]] = torch.from_numpy(fit.w)
        self.network.head.get_parameter("bias").copy_(torch.from_numpy(fit.b))
        self.losses[number], self.strengths[number] = fit.loss, fit.c
        self.get_buffer(f"held_out_{name}").copy_(torch.from_numpy(fit.held_out.T))

    @torch.no_grad()
    def blend(self, pool: Pool) -> None:
        """Combine all kinds into one read-out. A single kind stays as it was solved."""
        weight, bias = (self.network.head.get_parameter(name) for name in ("weight", "bias"))
        if len(self.spans) == 1:
            self.counts.fill_(1.0)
            self.slopes.fill_(1.0)
            self.bias.copy_(bias)
            return
        weights, targets = self.weights_and_targets(pool)
        losses = self.losses.tolist()
        wanted = softmax_weights(relative_gains(losses, weights, targets)).tolist()
        many = len(pool) >= MANY_ITEMS
        wanted = without_negligible(wanted) if many else wanted
        held_out = [self.read_held_out(name) for name in self.spans]
        found, counts = blend_or_first(held_out, wanted, losses, weights, targets)
        self.counts.copy_(torch.tensor(counts))
        self.slopes.copy_(torch.from_numpy(found.slopes))
        self.bias.copy_(torch.from_numpy(found.bias))
        for slope, span in zip(self.slopes, self.spans.values(), strict=True):
            weight[:, span] *= slope[:, None]
        bias.copy_(self.bias)
        for part, count in zip(self.union.parts.values(), counts, strict=True):
            for kernel in part.modules():
                if many and not count and isinstance(kernel, Nystroem):
                    kernel.drop()

    def read_held_out(self, name: str) -> Floats:
        """Return out-of-fold scores of every training entry, [L, N]."""
        kept: Floats = self.get_buffer(f"held_out_{name}").cpu().numpy().T
        return kept

    def out_of_fold(self, rows: slice = slice(None)) -> Tensor | None:
        scores = [self.get_buffer(f"held_out_{name}")[rows] for name in self.spans]
        return sum((slope * part for slope, part in zip(self.slopes, scores, strict=True)), self.bias)

    # ---------------------------------------------------------------- what is solved

    @property
    def union(self) -> FeatureUnion:
        """The fixed features, kind by kind."""
        return union_of(self.network.features)

    def fold(self, pool: Pool) -> folds.Fold:
        """Return the fold of each training item."""
        return folds.assign_folds(len(pool), seed_for(self.task.config.seed, "folds"))

    def weights_and_targets(self, pool: Pool) -> tuple[Floats, Floats]:
        """Return weights and targets of all training entries, [L, N] each."""
        return weights_and_targets(pool, self.terms, self.settings)

    def _standardize(self, pool: Pool) -> Features:
        """Return standardized features, read when needed if they are many."""
        items = pool.items
        if len(items) < MANY_ITEMS or len(items) * items.shape[0] <= MAX_NUMBERS or items.kind != "features":
            return self.standardized_features(items, pool.batch_size)
        if isinstance(items, SparseRows):
            return self.standardized_features(items, pool.batch_size)
        first = self.network.get_submodule("features.0")
        mean, factor = (first.get_buffer(name).cpu() for name in ("mean", "inverse_scale"))

        def read(rows: Any) -> Floats:
            part = items.take(rows if isinstance(rows, slice) else torch.from_numpy(rows))
            standardized: Floats = (part - mean).mul_(factor).numpy()
            return standardized

        return FeatureBlocks(len(items), items.shape[0], read)

    def features(self, pool: Pool, name: str) -> Features:
        """Return one kind of features of all training items, [N, D]; unchanged ones stay sparse."""
        x, part, span = self._standardize(pool), self.union.parts[name], self.spans[name]
        if isinstance(part, nn.Identity):
            return x
        width = span.stop - span.start
        blocks = FeatureBlocks(len(pool), width, lambda rows: self._in_blocks(part, x, rows, width))
        return blocks[:] if len(pool) * width <= MAX_NUMBERS or len(pool) < MANY_ITEMS else blocks

    @torch.no_grad()
    def _in_blocks(self, part: nn.Module, x: Features, rows: Any, width: int) -> Floats:
        """Return one kind of features of some items, from standardized ones that are read in blocks."""
        positions = np.arange(x.shape[0])[rows]
        features = np.empty((len(positions), width), np.float32)
        for start in range(0, len(positions), BLOCK):
            block = torch.from_numpy(dense(x[positions[start : start + BLOCK]])).to(self.device)
            features[start : start + BLOCK] = part(block).cpu().numpy()
        return features

    def _sample(self, x: FeatureBlocks, weights: Floats) -> tuple[FeatureBlocks, Floats]:
        """Keep the features of a sample of items in memory, and the weights of these items only."""
        items, width = x.shape
        rng = np.random.default_rng(seed_for(self.task.config.seed, "kernel items"))
        chosen = np.sort(rng.permutation(items)[: MAX_NUMBERS // width])
        place = np.full(items, -1)
        place[chosen] = np.arange(len(chosen))
        in_memory = x[chosen]

        def read(rows: Any) -> Floats:
            places = place[rows]
            return in_memory[places] if (places >= 0).all() else x[rows]

        return FeatureBlocks(items, width, read), np.where(place >= 0, weights, np.float32(0))
