"""Interactive multi-label CNN learning (IMCL): an item agrees with similar items, found during training.

When to use
    Similar items should vote for each other's unknown entries, or predictions must be explained by neighbors
    (`partly explain`).

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  0
    item     + lambda_y |y - sum over k similar items of w y' A|^2 + lambda_f |f - sum of w' f'|^2
    y: known labels and, where unknown, the prediction; A: the label graph; w, w' >= 0

Reference
    D. Huynh, E. Elhamifar. Interactive Multi-Label CNN Learning with Partial Labels. CVPR 2020. Equations 1 to 8 and
    both algorithms.

Known negatives
    Ordinary negatives in the cross-entropy, and -`no_value` in the label vectors, where a positive is 1. Unknown
    entries have no cross-entropy; in the label vectors they are the scaled prediction. Gradients reach the unknown
    labels and the features of both items, and the weights of the graph.

Differences from the paper
    One step finds the similar items by joint non-negative OMP, then updates graph and network by the same gradient.
    As in the authors' code: a label has a weight for itself, the loss omits tanh (`tanh`), label vectors are
    (1 + n) sigmoid(2 x + ln n) - n with n = no_value, and the lambdas are relative to the cross-entropy, measured once
    (`relative`). `scaled_search` uses the measured scale in the search too. Items without a similar item have no
    smoothness loss. Training starts with `bce` for the share `warmup` of the epochs, none of which can be the best
    epoch; `head="warm-linear"` with warmup = 0 replaces it. Items in the bank keep the scores of its last refresh and
    get no gradient.

Settings
    graph       "co-occurrence" (of known entries), "names" (similar names, by minilm), "identity", or a file with the
                columns label, related and optionally weight; `edges` is the maximum per label
    similar_by  "features" searches by features alone and reuses their weights for labels (table 4, fixed similarity)
    candidates  other items of the batch, or a bank of at most `bank` items, refreshed every `refresh` epochs
    side        a file with the columns item and class; classes join the label vectors with weight `side_weight`
    `PRESETS` holds the settings of the paper and of its code. `explain` lists the neighbors and edges that support an
    entry.

Defaults
    lambdas, k and edges are the paper's for Open Images.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from partly.clock import Clock
from partly.errors import DataError, SettingError, within
from partly.labels import Labels
from partly.losses import bce
from partly.method import About, EntryState, Method, Task
from partly.networks import eval_mode
from partly.pool import Batch, Pool
from partly.similarity import (
    Bank,
    Candidates,
    Explanation,
    LabelGraph,
    LabelVectors,
    Neighbors,
    explain_entry,
    joint_nonnegative_omp,
    mix_rows,
    read_classes,
)

ABOUT = About(
    learns_from="no",
    search={"lambda_y": (0.1, 4.0), "lambda_f": (0.05, 2.0), "k": [3, 5, 7], "graph": ["co-occurrence", "identity"]},
    in_papers=("IMCL",),
    learns_from_unknown=True,
)
Settings = dict[str, float | str | bool]
SHARED: Settings = {"lambda_y": 1.0, "lambda_f": 0.5}
# The search in the authors' code, which differs from the paper.
CODE_SEARCH: Settings = {"solver": "ls", "stop": "score", "tolerance": 1e-3, "known_through_graph": False}
PRESETS: dict[str, Settings] = {
    "paper": {**SHARED, "k": 5, "edges": 50, "solver": "clip", "tanh": True},
    "code": {**SHARED, **CODE_SEARCH, "k": 3, "candidates": "bank"},
}
ENCODED_ITEMS = 1024  # at a time
MIN_SMOOTHNESS = 1e-4  # relative to the cross-entropy; a smaller smoothness loss is rounding error


class Imcl(Method):
    entry_state = (EntryState("classes", torch.int64, -1, per_label=False),)
    scale: Tensor  # of the smoothness losses; 0 until measured
    classes: Tensor  # classes of the training items, -1 if unknown

    def __init__(
        self,
        task: Task,
        *,
        lambda_y: float = 1.0,
        lambda_f: float = 0.5,
        k: int = 5,
        graph: str = "co-occurrence",
        edges: int = 50,
        learn_graph: bool = True,
        candidates: Literal["batch", "bank"] = "batch",
        bank: int = 4096,
        refresh: int = 1,
        similar_by: Literal["both", "features"] = "both",
        warmup: float = 0.5,
        relative: bool = True,
        scaled_search: bool = False,
        no_value: float = 0.5,
        solver: Literal["nnls", "clip", "ls"] = "nnls",
        stop: Literal["sign", "score"] = "sign",
        tolerance: float = 0.0,
        known_through_graph: bool = True,
        tanh: bool = False,
        side: str | None = None,
        side_weight: float = 1.0,
    ) -> None:
        super().__init__(task)
        within(0, math.inf, lambda_y=lambda_y, lambda_f=lambda_f, side_weight=side_weight, tolerance=tolerance)
        within(1, math.inf, k=k, bank=bank, refresh=refresh)
        within(0, 1, warmup=warmup)
        within(1e-6, 1, no_value=no_value)
        self.lambdas, self.relative, self.tanh = (lambda_y, lambda_f), relative, tanh
        self.scaled_search, self.side, self.side_weight = scaled_search, side, side_weight
        self.refresh, self.similar_by, self.warmup = refresh, similar_by, warmup
        self.pursuit = partial(joint_nonnegative_omp, k=k, solver=solver, stop=stop, tolerance=tolerance)
        self.network = task.network()
        self.optimizer = task.make_optimizer(self.network.parameters())
        label_graph = LabelGraph(task.labels, 0 if graph == "identity" else edges)
        label_graph.weights.requires_grad_(learn_graph)
        self.vectors = LabelVectors(label_graph, no_value, known_through_graph)
        self.graph_optimizer = task.make_optimizer(label_graph.parameters())
        self.graph_optimizer.param_groups[0]["weight_decay"] = 0.0  # decay would erase edges without evidence
        size = min(bank, len(task.items)) if candidates == "bank" else 0
        self.bank = Bank(size, self.network.width(task.items.shape) if size else 0, task.labels)
        self.register_buffer("scale", torch.zeros(2))
        if task.observed is not None:  # an unreadable file is refused before training starts
            self.vectors.graph.connect(graph, task.observed)
            self.classes.copy_(self._classes(task.observed))

    @classmethod
    def memory(cls, task: Task, settings: Mapping[str, Any]) -> tuple[int, int]:
        entries = min(settings["bank"], len(task.items)) * task.labels if settings["candidates"] == "bank" else 0
        return Bank.ENTRY_BYTES * entries, 0

    def _classes(self, labels: Labels) -> Tensor:
        """Return the class of each item, [N]; -1 if unknown."""
        if self.side is None:
            return torch.tensor(-1, device=self.scale.device).expand(len(labels))
        return torch.from_numpy(read_classes(self.side, labels.ids)).to(self.scale.device)

    # ---------------------------------------------------------------- before an epoch

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        if clock.epoch == 0:
            self.allocate(self.graph_optimizer)
        epochs_of_use = clock.epoch - self._first_epoch(clock)
        if len(self.bank) and epochs_of_use >= 0 and epochs_of_use % self.refresh == 0:
            bank_rows = clock.epoch_rng("bank").permutation(len(pool))[: len(self.bank)]
            with eval_mode(self), torch.no_grad():
                self.bank.store(self._candidates(pool, torch.from_numpy(bank_rows).sort().values, self.classes))

    def _first_epoch(self, clock: Clock) -> int:
        """Return the first epoch, from 0, that uses similar items."""
        return int(self.warmup * clock.epochs + 1e-9)

    def may_be_best(self, clock: Clock) -> bool:
        """Return True once similar items are used."""
        return clock.epoch >= self._first_epoch(clock)

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"similar items are looked at": self.may_be_best(clock)}

    def _candidates(self, pool: Pool, index: Tensor, classes: Tensor) -> Candidates:
        """Encode items of a pool; classes [N] belong to all its items."""
        return Candidates.concatenate(self._encode(pool.take(part), classes)[1] for part in index.split(ENCODED_ITEMS))

    # ---------------------------------------------------------------- a step

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits, own = self._encode(batch, self.classes)
        loss = known = bce(logits, batch.z).mean()
        # The loop handles a loss that is not finite.
        if clock.epoch >= self._first_epoch(clock) and known.isfinite():
            smooth = self._smoothness(own, self.bank.candidates() if len(self.bank) else own)
            if self.relative and not self.scale.all():
                self._measure(known, smooth)
            weights = self.scale if self.relative else torch.ones_like(self.scale)
            loss = known + (weights * torch.tensor(self.lambdas).to(smooth.device) * smooth).sum()
        self.step(loss, clock, self.optimizer, *([self.graph_optimizer] if loss is not known else []))
        return {"loss": loss.item(), "known": known.item()}

    def _encode(self, batch: Batch, classes: Tensor) -> tuple[Tensor, Candidates]:
        """Return the logits of items, and the items as candidates."""
        features, logits = self.network.features_and_logits(batch.x, batch.z)
        side = torch.where(batch.index >= 0, classes[batch.index.clamp(min=0)], -1)
        return logits, Candidates(features, self.vectors.scores(logits), batch.z, batch.index, side)

    def _smoothness(self, own: Candidates, others: Candidates) -> Tensor:
        """Return the mean squared errors of labels and features, reconstructed from similar items: [2]."""
        support, *weights = self.similar(own, others)
        without_similar = support[:, 0] < 0
        chosen, positions = support.clamp(min=0).unique(return_inverse=True)
        positions = torch.where(support < 0, -1, positions)
        labels = mix_rows(self.vectors.through_graph(others.scores[chosen], others.z[chosen]), positions, weights[0])
        labels = torch.tanh(labels) if self.tanh else labels
        features = mix_rows(others.features[chosen], positions, weights[1])
        pairs = ((self.vectors.fill_unknown(own.scores, own.z), labels), (own.features, features))
        errors = torch.stack([(target - mixture).square().sum(dim=1) for target, mixture in pairs])
        return torch.where(without_similar, 0.0, errors).mean(dim=1)

    @torch.no_grad()
    def similar(self, own: Candidates, others: Candidates) -> tuple[Tensor, Tensor, Tensor]:
        """Return support, label weights and feature weights of items, [B, k] each. An item is never similar to itself.
        With `scaled_search`, the lambdas are scaled as soon as the scales are measured."""
        classes = 1 + max(int(part.side.max()) for part in (own, others))
        labels = own.with_side(self.vectors.fill_unknown(own.scores, own.z), self.side_weight, classes)
        other_labels = self.vectors.through_graph(others.scores, others.z)
        other_labels = others.with_side(other_labels, self.side_weight, classes)
        scales = self.scale if self.scaled_search and self.scale.all() else torch.ones_like(self.scale)
        lambda_y, lambda_f = (scales * torch.tensor(self.lambdas).to(scales.device)).tolist()
        if self.similar_by == "features":  # used for labels too, so that both have the same weights
            labels, other_labels = own.features, others.features
        views = (own.features, labels, others.features, other_labels)
        return self.pursuit(*views, lambda_y=lambda_y, lambda_f=lambda_f, exclude=own.places(others))

    @torch.no_grad()
    def _measure(self, known: Tensor, smooth: Tensor) -> None:
        """Set the scale that makes each smoothness loss as large as the cross-entropy, once it is positive."""
        measured = (self.scale == 0) & (smooth > MIN_SMOOTHNESS * known)
        self.scale.copy_(torch.where(measured, known / smooth, self.scale))

    # ---------------------------------------------------------------- reasons

    def explain(self, item: int | Tensor, label: int, pool: Pool | None = None) -> Explanation:
        """Return the similar items and the edges of the label graph that support or oppose an entry.

        item: a position in the pool, whose known labels count, or the features (the image) of a new item. pool: the
        items to search, or None for the bank. Neighbors are positions in the pool, or among the training items.
        """
        within(0, self.task.labels - 1, label=label)
        if pool is None and not (isinstance(item, Tensor) and len(self.bank)):
            raise SettingError(
                "explain() needs a pool to search for similar items: explain(item, label, Pool(items, labels))."
            )
        classes = torch.full((1,), -1, device=self.scale.device) if pool is None else self._classes(pool.labels)
        with eval_mode(self), torch.no_grad():
            logits, own = self._encode(self._single_item(item, pool), classes)
            others = (
                self.bank.candidates() if pool is None else self._candidates(pool, torch.arange(len(pool)), classes)
            )
            support, *weights = (part[0] for part in self.similar(own, others))
        rows = support[support >= 0]
        vectors = self.vectors.parts(label, others.scores[rows], others.z[rows])
        neighbors = Neighbors(others.index[rows], torch.stack(weights)[:, : len(rows)], *vectors)
        return explain_entry(label, torch.sigmoid(logits[0, label]).item(), neighbors, self.vectors.graph)

    def _single_item(self, item: int | Tensor, pool: Pool | None) -> Batch:
        if pool is not None and not isinstance(item, Tensor):
            within(0, len(pool) - 1, item=item)
            return pool.take(torch.tensor([item]))
        x, shape, device = torch.as_tensor(item), self.task.items.shape, self.scale.device
        if x.shape != shape:
            raise DataError(f"An item of shape {list(x.shape)}; this model is for items of shape {list(shape)}.")
        unknown = torch.zeros(1, self.task.labels, dtype=torch.int8, device=device)
        return Batch(x[None].to(device), unknown, torch.tensor([-1], device=device))
