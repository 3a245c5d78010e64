"""Solve the plain baseline for the known entries, as the start of iterative methods.

The start is the method `bce`, or `assume-negative` if only yes is known, on the same features and with the same bits.
Fits without a fold, or on bootstrap samples, take its penalties and blending weights, so that each is one convex fit.

Behind a pretrained backbone with trained stages, the baseline is solved on the features of the pretrained backbone
before training.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from partly import networks
from partly.clock import Clock, seed_for
from partly.items import Absent, Items, as_items, stream_batches, to_absent
from partly.losses import terms
from partly.method import Task
from partly.method.start import Start
from partly.networks import backbones, eval_mode
from partly.networks.custom_modules import NONE
from partly.networks.linear import LINEAR_HEADS, WARM_LINEAR
from partly.pool import Pool
from partly.solvers import folds, solved_readout
from partly.solvers.solved_readout import SolvedReadout

MAX_HELD_OUT = 2000  # items, about: a search over steps needs no more of them
MAX_SEARCH_FOLDS = 3  # bounds the cost of that search by a few fits of the baseline
INNER_FOLDS = 3  # for out-of-fold scores within the part that a fold leaves
ITEMS_AT_ONCE = 64  # through a backbone
MAX_PREPARED_BYTES = 1 << 29  # of features that are computed once
Rows = npt.NDArray[np.intp]
Made = Callable[[], Tensor]


def baseline_task(task: Task, items: Items | None = None) -> Task:
    """Return the task of the baseline: the same data, with the head `linear` if it is requested, else `kernel`.

    Behind a backbone that learns, it is `linear`: distances of kernels have no gradient where they are 0.

    items: features of the items by a backbone; by default only their number and width.
    """
    head = "linear" if task.config.head in LINEAR_HEADS or fine_tunes(task) else "kernel"
    plain = task.with_config(head=head, head_settings={}, optimizer="adamw", penalty=None, start="random")
    if fine_tunes(task):
        width = networks.feature_width(task.items, task.config.backbone, task.config.backbone_settings)
        items = items or Absent("features", (width,), len(task.items))
        plain = replace(plain.with_config(backbone=None, backbone_settings={}, augment=None), items=items)
    return replace(plain, start=None)


def fine_tunes(task: Task) -> bool:
    """Return whether a pretrained backbone is trained together with a head on its pooled features."""
    config = task.config
    if task.items.kind == "features" or config.backbone is None or config.head in (NONE, WARM_LINEAR):
        return False
    pretrained = backbones.weights_of(config.backbone, config.backbone_settings) != backbones.RANDOM
    return pretrained and not networks.takes_maps(config.head)


def can_start(task: Task) -> bool:
    """Return whether the baseline can be solved: on features that fit into memory, given or of a pretrained
    backbone."""
    return solved_readout.can_solve(baseline_task(task))


def memory(task: Task) -> tuple[int, int]:
    """Return the bytes for entries: kept throughout, and needed while the baseline is solved."""
    return solved_readout.memory(baseline_task(task))


class Baseline:
    """The solved baseline of a task, and the starts that follow from it."""

    def __init__(self, task: Task) -> None:
        assert task.observed is not None
        labels, self.body = task.observed, _body(task) if fine_tunes(task) else None
        self.task = baseline_task(task, None if self.body is None else _embed(self.body, task.items))
        self.name = "bce" if labels.counts()[1].any() else "assume-negative"
        self.method = SolvedReadout(self.task, terms.bce if self.name == "bce" else terms.assume_negative, {})
        self.pool = Pool(self.task.items, labels, weights=task.weights)
        clock = Clock(task.config.seed, 1, self.method.steps(self.pool))
        for _ in self.method.epoch(self.pool, clock):
            clock.tick()
        self.method.requires_grad_(False)
        self.fold = self.method.fold(self.pool)
        count = int(self.fold.max()) + 1
        enough = -(-MAX_HELD_OUT * count // max(1, len(self.fold)))
        self.search_folds = min(count, enough, MAX_SEARCH_FOLDS)  # the first ones, which a search over steps holds out

    def start(self) -> Start:
        """Return the start on all items."""
        head = self.method.network.head
        contrast = cache(lambda: self._contrasts([np.arange(len(self.fold))])[0])
        return self._start(head.get_parameter("weight"), head.get_parameter("bias"), contrast, self.out_of_fold)

    def start_without(self, fold: int) -> Start:
        """Return the start on the items outside of a fold; its scores of the fold are those of `out_of_fold`."""
        weight, offset = self._folds
        bias = self.method.bias + offset[fold]
        return self._start(weight[fold], bias, lambda: self._fold_contrasts[fold], partial(self._fit_nested, fold))

    def _start(self, weight: Tensor, bias: Tensor, contrast: Made, out_of_fold: Made) -> Start:
        features = copy.deepcopy(self.method.network.features)  # the networks may be on a GPU, and this is not
        assert isinstance(features, nn.Sequential)
        return Start(self, features, weight, bias, contrast, out_of_fold, self.body)

    def out_of_fold(self) -> Tensor:
        """Return logits of the training entries by fits that did not see the item, [N, L]."""
        scores = self.method.out_of_fold()
        assert scores is not None
        return self.method.enforce_hierarchy(scores)

    @cached_property
    def all_features(self) -> Tensor | None:
        """Features of all items [N, W], computed once; None where they take too much memory, or nothing is saved."""
        union = self.method.union
        if union.is_identity or 4 * len(self.pool) * union.width > MAX_PREPARED_BYTES:
            return None
        blocks = [self.method.network.features(x) for x in self.pool.items_in_order()]
        return torch.cat(blocks)

    def _features(self, rows: Tensor) -> Tensor:
        """Features of some items, [B, W]."""
        made: Tensor = (
            self.method.network.features(self.pool.items.take(rows))
            if self.all_features is None
            else self.all_features[rows]
        )
        return made

    # ---------------------------------------------------------------- fits at the penalties that were chosen

    @cached_property
    def _folds(self) -> tuple[Tensor, Tensor]:
        """Weights [K, L, W] and offsets [K, L] of the fits without each fold of the search."""
        return self._fit(np.stack([self.fold != k for k in range(self.search_folds)]))

    @cached_property
    def _fold_contrasts(self) -> Tensor:
        return self._contrasts([np.flatnonzero(self.fold != k) for k in range(self.search_folds)])

    def _contrasts(self, parts: Sequence[Rows]) -> Tensor:
        """Half the difference of fits on two bootstrap samples of each part of the items, [K, L, W]."""
        rng = np.random.default_rng(seed_for(self.task.config.seed, "bootstrap"))
        draws = [np.bincount(rng.choice(rows, len(rows)), minlength=len(self.fold)) for rows in parts for _ in range(2)]
        weight, _ = self._fit(np.stack(draws).astype(np.float32))
        return (weight[::2] - weight[1::2]) / 2

    @cache  # noqa: B019
    def _fit_nested(self, fold: int) -> Tensor:
        """Out-of-fold logits of the items outside of a fold, by models that saw nothing of it: [N', L]."""
        rows = np.flatnonzero(self.fold != fold)
        inner = np.full(len(self.fold), -1)
        inner[rows] = (
            np.random.default_rng(seed_for(self.task.config.seed, "inner folds")).permutation(len(rows)) % INNER_FOLDS
        )
        weight, offset = self._fit(np.stack([(inner >= 0) & (inner != k) for k in range(INNER_FOLDS)]))
        scores = torch.empty(len(self.fold), self.task.labels)
        for k in range(INNER_FOLDS):
            for part in torch.from_numpy(np.flatnonzero(inner == k)).split(self.pool.batch_size):
                scores[part] = self._features(part) @ weight[k].T + offset[k] + self.method.bias
        return scores[rows]

    @torch.no_grad()
    def _fit(self, seen: npt.NDArray[Any]) -> tuple[Tensor, Tensor]:
        """Fit each sample [K, N] of the items: weights [K, L, W], blended, and what to add to the biases [K, L]."""
        method, (weights, targets) = self.method, self.method.weights_and_targets(self.pool)
        labels, width = len(weights), method.union.width
        found, offset = torch.zeros(len(seen), labels, width), torch.zeros(len(seen), labels)
        for number, (name, span) in enumerate(method.spans.items()):
            slope = method.slopes[number]
            if not slope.any():
                continue
            fits = folds.choose_solver(method.features(self.pool, name), weights)
            w, b = next(fits.path(weights, targets, seen, [method.strengths[number].item()]))
            w, b = fits.to_original(w, np.zeros_like(b))
            found[:, :, span] = slope[:, None] * torch.from_numpy(w).view(len(seen), labels, -1)
            offset += slope * torch.from_numpy(b).view(len(seen), labels)
        return found, offset


def make_solved_start(task: Task) -> Start:
    """Return the start of a task; one without weights where there are no labels, as in a model that is loaded."""
    return _placeholder(task) if task.observed is None else Baseline(task).start()


def _body(task: Task) -> nn.Sequential:
    """Return the pretrained backbone with its preprocessing."""
    config = task.config
    return networks.build_body(task.items, config.backbone, config.backbone_settings)[0]


@torch.no_grad()
def _embed(body: nn.Module, items: Items) -> Items:
    """Return the features that a backbone makes of items, in memory."""
    blocks = [slice(at, min(at + ITEMS_AT_ONCE, len(items))) for at in range(0, len(items), ITEMS_AT_ONCE)]
    with eval_mode(body):
        return as_items(torch.cat([body(x) for x in stream_batches(items, blocks)]).numpy())


def _placeholder(task: Task) -> Start:
    body = _body(replace(task, items=to_absent(task.items))) if fine_tunes(task) else None
    task = baseline_task(task)
    features = networks.build(to_absent(task.items), task.labels, task.config.head).features
    assert isinstance(features, nn.Sequential)
    weight = torch.zeros(task.labels, networks.union_of(features).width)
    return Start(None, features, weight, torch.zeros(task.labels), weight.clone, weight.clone, body)
