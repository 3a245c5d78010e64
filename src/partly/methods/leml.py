"""LEML: a low-rank linear model fitted to the known entries by alternating exact solves.

When to use
    Many labels with few known entries each, on fixed features. It is solved in seconds.

Formula
    sum over known entries of (y - x W h)^2 / 2  +  ridge / 2 (|W|^2 + |H|^2),   y = +1 or -1,  rank `rank`

Reference
    H.-F. Yu, P. Jain, P. Kar, I. S. Dhillon. Large-scale Multi-label Learning with Missing Labels. ICML 2014.

Known negatives
    Ordinary negatives, y = -1. Unknown entries have no loss.

Differences from the paper
    Each label has a bias, in H and under the same ridge. Both losses are minimized through a quadratic majorizer:
    for H by Cholesky, for W by a few steps of conjugate gradients. For the squared loss the majorizer is the loss
    itself. The paper's squared hinge is left out. Head and optimizer are not used, and images are rows of pixels. An
    epoch is one alternation: its first step solves for H, its second for W (a single step solves for both), and all
    further steps do nothing.

Defaults
    ridge = 10 and the squared loss were chosen by validation. The rank was not searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from partly.clock import Clock, seed_for
from partly.errors import within
from partly.labels import Labels
from partly.method import About, Method, Task
from partly.networks import Network, Standardize
from partly.pool import Pool

ABOUT = About(search={"rank": [8, 32, 80], "ridge": (1.0, 1000.0), "fit": ["squared", "logistic"]})
CURVATURE = {"squared": 1.0, "logistic": 0.25}  # largest second derivative of each loss
SPARSE_SHARE = 0.03  # known share below which only known entries are computed
BLOCK = 1 << 21  # numbers per block of items
CG_TOLERANCE = 1e-12  # relative to the first squared residual


class Leml(Method):
    kinds = ("features", "pictures")
    supports_distributed = False
    own_penalty = "ridge"
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
        # skip_init: linear layers would draw from the global generator.
        first = nn.utils.skip_init(nn.Linear, width, rank, bias=False)
        last = nn.utils.skip_init(nn.Linear, rank, task.labels)
        self.network = Network(
            nn.Sequential(Standardize(task.items.statistics.keeping_size, task.items.shape), nn.Flatten(), first), last
        )
        self.requires_grad_(False)
        generator = torch.Generator().manual_seed(seed_for(task.config.seed, "weights", "leml"))
        self.w.normal_(std=width**-0.5, generator=generator)
        self.h.zero_()
        self.bias.zero_()
        self.register_buffer("loss", torch.zeros(()))

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        solves = [self.solve_h, self.solve_w]
        for step in range(clock.step, pool.steps):
            due = solves if pool.steps == 1 else solves[step : step + 1]
            for solve in due if self.task.config.lr else ():  # a learning rate of 0 disables the solver
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
        """Solve H for this W; return the objective before."""
        h = self._read_out()
        labels, width = h.shape
        curves = self.ridge * torch.eye(width, dtype=h.dtype, device=h.device).flatten().repeat(labels, 1)
        slope = self.ridge * h
        total = self._penalty()
        for x, z in self._standardize_blocks(pool):
            factors = append_one(x @ self.w.double().T)
            losses, slopes = self._losses(scores_at_known(z, factors, h), z)
            total += losses
            slope += slopes.T @ factors
            # All labels of an item share the same squares, summed over known entries.
            squares = (factors.unsqueeze(2) * factors.unsqueeze(1)).flatten(1)
            curves.addmm_(z.abs().T, squares, alpha=CURVATURE[self.fit])
        roots = torch.linalg.cholesky(curves.view(labels, width, width))
        h -= torch.cholesky_solve(slope.unsqueeze(2), roots).squeeze(2)
        self.h.copy_(h[:, :-1])
        self.bias.copy_(h[:, -1])
        return total

    def solve_w(self, pool: Pool) -> float:
        """Solve W for this H, as far as the iterations go; return the objective before."""
        w, h = self.w.double(), self.h.double()
        slope, total = self.ridge * w, self._penalty()
        for x, z in self._standardize_blocks(pool):
            losses, slopes = self._losses(scores_at_known(z, append_one(x @ w.T), self._read_out()), z)
            total += losses
            slope += (slopes @ h).T @ x

        def curve(v: Tensor) -> Tensor:
            result = self.ridge * v
            for x, z in self._standardize_blocks(pool):
                result += CURVATURE[self.fit] * (scores_at_known(z, x @ v.T, h) @ h).T @ x
            return result

        self.w.copy_(w - conjugate_gradient(curve, slope, self.iterations))
        return total

    def _read_out(self) -> Tensor:
        """Return H and the biases, [L, rank + 1], in float64."""
        return torch.cat([self.h, self.bias.unsqueeze(1)], dim=1).double()

    # ---------------------------------------------------------------- parts of the objective

    def _standardize_blocks(self, pool: Pool) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield standardized items [B, D] and known labels [B, L] in float64, sparse if few are known."""
        standardize = self.network.get_submodule("features.0")
        labels, device = pool.labels, self.device
        few = labels.known_per_item().sum() < SPARSE_SHARE * math.prod(labels.shape)
        # Items are read in batches and processed in larger blocks, since a batch is little work.
        read = pool.items_in_order()
        numbers = max(math.prod(pool.items.shape), labels.shape[1], (self.w.shape[0] + 1) ** 2)  # per item
        step = max(1, BLOCK // numbers // pool.batch_size) * pool.batch_size
        for start in range(0, len(pool), step):
            rows = slice(start, min(start + step, len(pool)))
            x = torch.cat(list(islice(read, -(-(rows.stop - start) // pool.batch_size))))
            z = sparse_known(labels, rows) if few else torch.tensor(labels.rows(rows), dtype=torch.float64)
            yield standardize(x.to(device)).flatten(1).double(), z.to(device)

    def _penalty(self) -> float:
        weights = (self.w, self.h, self.bias)
        return self.ridge / 2 * math.fsum(weight.double().square().sum().item() for weight in weights)

    def _losses(self, scores: Tensor, z: Tensor) -> tuple[float, Tensor]:
        """Return the sum of the losses of known entries, and d loss / d score of each entry, [B, L] like z."""
        s, y = (scores.values(), z.values()) if z.is_sparse else (scores, z)
        if self.fit == "squared":
            losses, slopes = (s - y).square() / 2, s - y
        else:
            losses, slopes = F.softplus(-y * s), -y * torch.sigmoid(-y * s)
        return losses[y != 0].sum().item(), with_values(z, slopes) if z.is_sparse else torch.where(y != 0, slopes, 0.0)


def append_one(made: Tensor) -> Tensor:
    """Append a column of ones for the biases: [B, rank + 1]."""
    return F.pad(made, (0, 1), value=1.0)


def scores_at_known(z: Tensor, made: Tensor, h: Tensor) -> Tensor:
    """Return scores made @ h.T of known entries, [B, L]; others are 0, and skipped if z is sparse."""
    if not z.is_sparse:
        return torch.where(z != 0, made @ h.T, 0.0)
    item, label = z.indices()
    return with_values(z, (made[item] * h[label]).sum(dim=1))


def sparse_known(labels: Labels, rows: slice) -> Tensor:
    """Return the known labels of some items as a sparse tensor, [B, L] in float64."""
    z = sp.coo_array(labels.ternary()[rows])
    places, values = torch.from_numpy(np.stack(z.coords)).long(), torch.from_numpy(z.data).double()
    return torch.sparse_coo_tensor(places, values, z.shape, is_coalesced=True, check_invariants=True)


def with_values(z: Tensor, values: Tensor) -> Tensor:
    """Return a sparse tensor with other values at the same positions."""
    return torch.sparse_coo_tensor(z.indices(), values, z.shape, is_coalesced=True, check_invariants=True)


def conjugate_gradient(curve: Callable[[Tensor], Tensor], slope: Tensor, iterations: int) -> Tensor:
    """Solve curve(v) = slope for a linear positive definite `curve`, in at most this many steps."""
    v = torch.zeros_like(slope)
    residual, direction = slope, slope
    size = first = slope.square().sum()
    for _ in range(iterations):
        if size <= CG_TOLERANCE * first:
            break
        curved = curve(direction)
        step = size / (direction * curved).sum()
        v = v + step * direction
        residual = residual - step * curved
        size, before = residual.square().sum(), size
        direction = residual + (size / before) * direction
    return v
