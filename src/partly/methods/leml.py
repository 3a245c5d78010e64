"""A linear model of low rank on the given features, fitted to the known entries by turns of exact solves.

Take it: where there are many labels, few known entries of each, and features are given: it is solved in seconds.

Formula:

    sum over known entries of (y - x W h)^2 / 2  +  ridge / 2 (|W|^2 + |H|^2),   y = +1 or -1,  rank `rank`

Paper: H.-F. Yu, P. Jain, P. Kar, I. S. Dhillon. Large-scale Multi-label Learning with Missing Labels. ICML 2014.
"LEML": the sum over the known entries of loss(label, x W h_label) plus `ridge` / 2 times the squares of W and H, with
rank `rank`; H given W, then W given H.

Known no: an ordinary negative, -1. Unknown: no loss.

Differs: every label has a bias of its own, in H and under the same ridge. Both losses are solved alike: the quadratic
that touches the loss at the present scores and is nowhere below it is minimised, for H by Cholesky, for W by a few
steps of conjugate gradients. For the squared loss that quadratic is the loss itself; the logistic loss falls too. The
squared hinge of the paper is left out. The chosen head is not used, nor the optimiser, and pictures are rows of pixels.
An epoch is one turn: its first step solves for H, its second for W (the first for both, where there is only one), and
all others rest.

Defaults: by validation, one seed, coarse labels and 1/256 of the items wholly known, VOC 2012 and COCO. P@1 at ridge 1,
10, 100: 0.55, 0.59, 0.44 and 0.59, 0.63, 0.60; with the logistic loss at most 0.58 and 0.59. The rank was not searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from partly.clock import Clock, seed_for
from partly.errors import within
from partly.method import Method, Task
from partly.networks import Network, Standardise
from partly.pool import Pool

SEARCH = {"rank": [8, 32, 80], "ridge": (1.0, 1000.0), "fit": ["squared", "logistic"]}
CURVATURE = {"squared": 1.0, "logistic": 0.25}  # the largest second derivative of each loss
FEW = 0.03  # share of entries that are known, below which the others are not touched
AT_ONCE = 1 << 12  # known entries whose squares, rank x rank each, are made at a time
ENOUGH = 1e-12  # of the first squared residual, for conjugate gradients


class Leml(Method):
    kinds = ("features", "pictures")
    spreads = False
    loss: Tensor  # the objective before the last solve, a mean over the entries

    def __init__(
        self,
        task: Task,
        *,
        rank: int = 32,
        ridge: float = 10.0,
        fit: Literal["squared", "logistic"] = "squared",
        iterations: int = 10,
    ) -> None:
        super().__init__(task)
        within(1, math.inf, rank=rank, iterations=iterations)
        within(1e-9, math.inf, ridge=ridge)
        self.ridge, self.fit, self.iterations = ridge, fit, iterations
        width = math.prod(task.items.shape)
        rank = min(rank, width, task.labels)
        # Linear layers draw their first weights from the global generator, so these are made without.
        first = nn.utils.skip_init(nn.Linear, width, rank, bias=False)
        last = nn.utils.skip_init(nn.Linear, rank, task.labels)
        self.network = Network(
            nn.Sequential(Standardise(task.items.statistics, task.items.shape), nn.Flatten(), first), last
        )
        self.requires_grad_(False)
        generator = torch.Generator().manual_seed(seed_for(task.seed, "weights", "leml"))
        self.w.normal_(std=width**-0.5, generator=generator)
        self.h.zero_()
        self.bias.zero_()
        self.register_buffer("loss", torch.zeros(()))

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        solves = [self.solve_h, self.solve_w]
        for step in range(clock.step, pool.steps):
            due = solves if pool.steps == 1 else solves[step : step + 1]
            for solve in due if self.task.lr else ():  # all that a learning rate can mean to a solver
                self.loss.fill_(solve(pool) / (len(pool) * self.task.labels))
            yield {"loss": self.loss.item()}

    @property
    def w(self) -> Tensor:
        """[rank, D]"""
        return self.network.get_parameter("features.2.weight")

    @property
    def h(self) -> Tensor:
        """[L, rank]"""
        return self.network.get_parameter("head.weight")

    @property
    def bias(self) -> Tensor:
        """[L]"""
        return self.network.get_parameter("head.bias")

    # ---------------------------------------------------------------- the two half-turns

    def solve_h(self, pool: Pool) -> float:
        """The best H for this W; returns the objective before."""
        h = torch.cat([self.h, self.bias.unsqueeze(1)], dim=1).double()
        labels, width = h.shape
        curves = self.ridge * torch.eye(width, dtype=h.dtype, device=h.device).repeat(labels, 1, 1)
        slope = self.ridge * h
        total = self._penalty()
        for x, z in self._items(pool):
            made = F.pad(x @ self.w.double().T, (0, 1), value=1.0)
            if few(z):
                item, label = z.nonzero(as_tuple=True)
                rows = made[item]
                losses, slopes = self._losses((rows * h[label]).sum(dim=1), z[item, label])
                slope.index_add_(0, label, slopes.unsqueeze(1) * rows)
                for some in torch.arange(len(item), device=item.device).split(AT_ONCE):
                    squares = rows[some].unsqueeze(2) * rows[some].unsqueeze(1)
                    curves.index_add_(0, label[some], squares, alpha=CURVATURE[self.fit])
            else:
                losses, slopes = self._losses(made @ h.T, z)
                slope += slopes.T @ made
                chosen = torch.where((z != 0).T.unsqueeze(2), made, 0.0)  # [L, B, width]
                curves += CURVATURE[self.fit] * (chosen.transpose(1, 2) @ made)
            total += losses
        h -= torch.cholesky_solve(slope.unsqueeze(2), torch.linalg.cholesky(curves)).squeeze(2)
        self.h.copy_(h[:, :-1])
        self.bias.copy_(h[:, -1])
        return total

    def solve_w(self, pool: Pool) -> float:
        """The best W for this H, as far as the iterations go; returns the objective before."""
        w, h, bias = self.w.double(), self.h.double(), self.bias.double()
        slope, total = self.ridge * w, self._penalty()
        for x, z in self._items(pool):
            made = x @ w.T
            if few(z):
                item, label = z.nonzero(as_tuple=True)
                scores = (made[item] * h[label]).sum(dim=1) + bias[label]
                losses, slopes = self._losses(scores, z[item, label])
                back = torch.zeros_like(made).index_add_(0, item, slopes.unsqueeze(1) * h[label])
            else:
                losses, slopes = self._losses(made @ h.T + bias, z)
                back = slopes @ h
            total += losses
            slope += back.T @ x

        def curve(v: Tensor) -> Tensor:
            result = self.ridge * v
            for x, z in self._items(pool):
                made = x @ v.T
                if few(z):
                    item, label = z.nonzero(as_tuple=True)
                    change = (made[item] * h[label]).sum(dim=1, keepdim=True)
                    back = torch.zeros_like(made).index_add_(0, item, change * h[label])
                else:
                    back = torch.where(z != 0, made @ h.T, 0.0) @ h
                result += CURVATURE[self.fit] * back.T @ x
            return result

        self.w.copy_(w - solved(curve, slope, self.iterations))
        return total

    # ---------------------------------------------------------------- parts of the objective

    def _items(self, pool: Pool) -> Iterator[tuple[Tensor, Tensor]]:
        """Standardised items [B, D], in float64, and what is known of them [B, L]."""
        standardise = self.network.get_submodule("features.0")
        for batch in pool.in_order():
            yield standardise(batch.x).flatten(1).double(), batch.z

    def _penalty(self) -> float:
        weights = (self.w, self.h, self.bias)
        return self.ridge / 2 * math.fsum(weight.double().square().sum().item() for weight in weights)

    def _losses(self, scores: Tensor, z: Tensor) -> tuple[float, Tensor]:
        """The sum of the losses of the known entries, and d loss / d score of each entry: [B, L], or [K] of some."""
        if self.fit == "squared":
            losses, slopes = (scores - z).square() / 2, scores - z
        else:
            losses, slopes = F.softplus(-z * scores), -z * torch.sigmoid(-z * scores)
        return losses[z != 0].sum().item(), torch.where(z != 0, slopes, 0.0)


def few(z: Tensor) -> bool:
    """Whether so little is known that it is less work to pick that out than to go through all entries."""
    return int((z != 0).sum()) < FEW * z.numel()


def solved(curve: Callable[[Tensor], Tensor], slope: Tensor, iterations: int) -> Tensor:
    """v with curve(v) = slope, for a linear positive `curve`, by at most so many steps of conjugate gradients."""
    v = torch.zeros_like(slope)
    residual, direction = slope, slope
    size = first = slope.square().sum()
    for _ in range(iterations):
        if size <= ENOUGH * first:
            break
        curved = curve(direction)
        step = size / (direction * curved).sum()
        v = v + step * direction
        residual = residual - step * curved
        size, before = residual.square().sum(), size
        direction = residual + (size / before) * direction
    return v
