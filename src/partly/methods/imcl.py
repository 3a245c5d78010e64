"""Labels and features of an item must agree with those of a few similar items; who is similar is learned along.

Paper: D. Huynh, E. Elhamifar. Interactive Multi-Label CNN Learning with Partial Labels. CVPR 2020. "IMCL", equations
1 to 8 and both algorithms.

Known no: an ordinary negative in the cross-entropy, and `no_value` below 0 in the label vectors, where a yes is 1.
Unknown: no cross-entropy; in the label vectors it is what the network says now, on the scale from -no_value to 1. Of
every item, `k` similar ones are sought (joint non-negative OMP), and lambda_y times the squared error of its label
vector, rebuilt from theirs through the label graph, is added to the loss, with lambda_f times that of its features.
Gradients reach the unknown labels and the features of both sides, and the weights of the graph.

Differs: one step fits the similarities, and then moves the graph and the network by the gradient at the same place. The
graph has its own weight for a label itself, as in the authors' code. tanh is left out of the loss, as in the code
(`tanh`). The scale of the label vectors is the code's, (1 + n) sigmoid(2 x + ln n) - n with n = no_value, which is 0 at
x = 0. The lambdas are shares of the cross-entropy, measured once (`relative`), as in the code; the paper does not say
so. Items without a similar one have no smoothness loss. Training on the known labels alone, from which the paper
starts, is the share `warmup` of the epochs. Atoms of the bank are as they were when it was refreshed, and get no
gradient.

`graph` is "co-occurrence" (counted on known entries), "identity", or a file with the columns label, related and perhaps
weight; `edges` is the most that a label has. `candidates` are the other items of the batch, or a bank of at most `bank`
items, refreshed every `refresh` epochs. `side` is a file with the columns item and class: a class is joined to the
label vectors with `side_weight`, when similar items are sought. `PRESETS` has the settings of the paper and the code.

Defaults: lambdas, k and edges are the paper's for Open Images. On a validation part of the features of VOC 2012, 10 %
known, one seed, a linear head and warmup = 0.5, they were 6.3 points of mAP above `bce`. On 2,000 items of it, where
they were 5.6 above, lambda_y = 3 was 6.7 above, a bank 4.2, a fixed graph 5.6 and none 6.2. With the MLP head nothing
was gained, and lambdas this large cost a point or two by the last epoch; there lambda_y = 0.1 does no harm.

`explain` lists the neighbours and the edges of the graph that speak for an entry.
"""

# A little long because an explanation must go exactly the way that the loss goes.

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from partly.clock import Clock
from partly.errors import SettingError, within
from partly.losses import bce
from partly.method import Method, Task
from partly.pool import Batch, Pool
from partly.similarity import (
    Explanation,
    LabelGraph,
    Neighbours,
    explained,
    joint_nonnegative_omp,
    mixed,
    read_classes,
)

SEARCH = {"lambda_y": (0.1, 4.0), "lambda_f": (0.05, 2.0), "k": [3, 5, 7], "graph": ["co-occurrence", "identity"]}
IN_PAPERS = ("IMCL",)
PRESETS: dict[str, dict[str, float | str | bool]] = {
    "paper": {"lambda_y": 1.0, "lambda_f": 0.5, "k": 5, "edges": 50, "solver": "clip", "tanh": True},
    "code": {
        "lambda_y": 1.0,
        "lambda_f": 0.5,
        "k": 3,
        "candidates": "bank",
        "solver": "ls",
        "stop": "score",
        "tolerance": 1e-3,
        "known_through_graph": False,
    },
}
ENCODED = 1024  # items at a time, for the bank


@dataclass(frozen=True)
class Candidates:
    """Items to be similar to: features [M, D], scores [M, L] (labels as the network sees them), z [M, L], index [M]."""

    features: Tensor
    scores: Tensor
    z: Tensor
    index: Tensor


class Imcl(Method):
    scale: Tensor  # of the smoothness losses; 0 until measured
    classes: Tensor
    bank_features: Tensor
    bank_scores: Tensor
    bank_z: Tensor
    bank_index: Tensor

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
        warmup: float = 0.4,
        relative: bool = True,
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
        within(0, math.inf, lambda_y=lambda_y, lambda_f=lambda_f, side_weight=side_weight)
        within(1, math.inf, k=k, bank=bank, refresh=refresh)
        within(0, 1, warmup=warmup)
        within(1e-6, 1, no_value=no_value)
        self.lambdas = lambda_y, lambda_f
        self.k, self.solver, self.stop, self.tolerance = k, solver, stop, tolerance
        self.graph_from, self.side, self.side_weight = graph, side, side_weight
        self.candidates, self.refresh, self.warmup = candidates, refresh, warmup
        self.no_value, self.relative = no_value, relative
        self.known_through_graph, self.tanh = known_through_graph, tanh
        self.network = task.network()
        self.optimiser = task.optimiser(self.network.parameters())
        self.graph = LabelGraph(task.labels, 0 if graph == "identity" else edges)
        self.graph.weights.requires_grad_(learn_graph)
        self.graph_optimiser = task.optimiser(self.graph.parameters())
        self.graph_optimiser.param_groups[0]["weight_decay"] = 0.0  # an edge that nothing speaks against stays
        self._register(min(bank, task.items) if candidates == "bank" else 0)
        if task.observed is not None:  # a file that cannot be read is refused before the run begins
            self.graph.connect(graph, task.observed)

    def _register(self, bank: int) -> None:
        width = self._width() if bank else 0
        self.register_buffer("scale", torch.zeros(2))
        self.register_buffer("classes", torch.full((self.task.items if self.side else 0,), -1))
        self.register_buffer("bank_features", torch.zeros(bank, width))
        self.register_buffer("bank_scores", torch.zeros(bank, self.task.labels))
        self.register_buffer("bank_z", torch.zeros(bank, self.task.labels, dtype=torch.int8))
        self.register_buffer("bank_index", torch.full((bank,), -1))

    @torch.no_grad()
    def _width(self) -> int:
        """How many features the network makes."""
        self.network.eval()
        width = self.network.features(self.task.x[:1]).shape[1]
        self.network.train()
        return int(width)

    # ---------------------------------------------------------------- before an epoch

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        if clock.epoch == 0:
            self.graph.connect(self.graph_from, pool.labels)
            if self.side is not None:
                self.classes.copy_(torch.from_numpy(read_classes(self.side, pool.labels.ids)))
        since = clock.epoch - self._first(clock)
        if len(self.bank_index) and since >= 0 and since % self.refresh == 0:
            self._refresh(pool, clock)

    def _first(self, clock: Clock) -> int:
        """The first epoch, counted from 0, that looks at similar items."""
        return min(int(self.warmup * clock.epochs + 1e-9), clock.epochs - 1)

    def _refresh(self, pool: Pool, clock: Clock) -> None:
        drawn = clock.epoch_rng("bank").permutation(len(pool))[: len(self.bank_index)]
        found = self._in_use(map(pool.take, torch.from_numpy(drawn).sort().values.split(ENCODED)))
        for name, part in vars(found).items():
            getattr(self, f"bank_{name}").copy_(part)

    @torch.no_grad()
    def _in_use(self, batches: Iterable[Batch]) -> Candidates:
        """All items of these batches, without dropout."""
        was_training = self.training
        self.eval()
        parts = [vars(self._seen(batch)[1]) for batch in batches]
        self.train(was_training)
        return Candidates(**{name: torch.cat([part[name] for part in parts]) for name in parts[0]})

    # ---------------------------------------------------------------- a step

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits, own = self._seen(batch)
        loss = known = bce(logits, batch.z).mean()
        if clock.epoch >= self._first(clock):
            smooth = self._smoothness(own, own if self.candidates == "batch" else self._bank())
            if self.relative and not self.scale.all():
                self._measure(known, smooth)
            weights = self.scale if self.relative else torch.ones_like(self.scale)
            loss = known + (weights * smooth.new_tensor(self.lambdas) * smooth).sum()
        self.step(loss, clock, self.optimiser, *([self.graph_optimiser] if loss is not known else []))
        return {"loss": loss.item(), "known": known.item()}

    def _seen(self, batch: Batch) -> tuple[Tensor, Candidates]:
        """Logits of some items, and the items as they look to others."""
        features = self.network.features(batch.x)
        logits = self.network.head(features, batch.z) if self.network.hears else self.network.head(features)
        scores = (1 + self.no_value) * torch.sigmoid(2 * logits + math.log(self.no_value)) - self.no_value
        return logits, Candidates(features, scores, batch.z, batch.index)

    def _bank(self) -> Candidates:
        return Candidates(self.bank_features, self.bank_scores, self.bank_z, self.bank_index)

    def _known(self, scores: Tensor, z: Tensor) -> Tensor:
        """Label vectors: what is known, and the scores of what is not."""
        said = torch.where(z > 0, 1.0, -self.no_value)
        return torch.where(z == 0, scores, said)

    def _through_graph(self, scores: Tensor, z: Tensor) -> Tensor:
        if not self.known_through_graph:
            return self._known(self.graph(scores), z)
        heard: Tensor = self.graph(self._known(scores, z))
        return heard

    def _smoothness(self, own: Candidates, others: Candidates) -> Tensor:
        """Mean squared errors of labels and of features, rebuilt from similar items: [2]."""
        support, *weights = self.similar(own, others)
        alone = support[:, 0] < 0
        chosen, place = support.clamp(min=0).unique(return_inverse=True)
        place = torch.where(support < 0, -1, place)
        labels = mixed(self._through_graph(others.scores[chosen], others.z[chosen]), place, weights[0])
        labels = torch.tanh(labels) if self.tanh else labels
        features = mixed(others.features[chosen], place, weights[1])
        pairs = ((self._known(own.scores, own.z), labels), (own.features, features))
        errors = torch.stack([(target - rebuilt).square().sum(dim=1) for target, rebuilt in pairs])
        return torch.where(alone, 0.0, errors).mean(dim=1)

    @torch.no_grad()
    def similar(self, own: Candidates, others: Candidates) -> tuple[Tensor, Tensor, Tensor]:
        """Support, label weights and feature weights of some items, [B, k] each; nobody is similar to itself."""
        same = own.index[:, None] == others.index
        itself = torch.where(same.any(dim=1) & (own.index >= 0), same.float().argmax(dim=1), -1)
        return joint_nonnegative_omp(
            own.features,
            self._with_class(self._known(own.scores, own.z), own.index),
            others.features,
            self._with_class(self._through_graph(others.scores, others.z), others.index),
            self.k,
            *self.lambdas,
            itself,
            solver=self.solver,
            stop=self.stop,
            tolerance=self.tolerance,
        )

    def _with_class(self, y: Tensor, index: Tensor) -> Tensor:
        """Label vectors with the items' classes joined to them: [B, L + classes]."""
        if self.side is None:
            return y
        own = torch.where(index >= 0, self.classes[index.clamp(min=0)], -1)
        return torch.cat([y, self.side_weight * (own[:, None] == torch.arange(int(self.classes.max()) + 1))], dim=1)

    @torch.no_grad()
    def _measure(self, known: Tensor, smooth: Tensor) -> None:
        """What makes each smoothness loss as large as the cross-entropy now; waits for a batch that has all three."""
        measured = (self.scale == 0) & (smooth > 0)
        self.scale.copy_(torch.where(measured, known / smooth, self.scale))

    # ---------------------------------------------------------------- reasons

    def explain(self, item: int | Tensor, label: int, pool: Pool | None = None) -> Explanation:
        """The similar items, and the edges of the label graph, that speak for or against an entry.

        item: a position in the pool, whose known labels then count, or the features (the picture) of a new item. pool:
        the items among which similar ones are sought, or None for the bank. Neighbours are positions in the pool, or in
        the training items.
        """
        within(0, self.task.labels - 1, label=label)
        if pool is None and (isinstance(item, int) or not len(self.bank_index)):
            raise SettingError("Similar items are sought in a pool: explain(item, label, Pool(x, labels)).")
        others = self._bank() if pool is None else self._in_use(map(pool.take, torch.arange(len(pool)).split(ENCODED)))
        own = self._in_use([self._one(item, pool)])
        support, *weights = (part[0] for part in self.similar(own, others))
        found = support[support >= 0]
        z = others.z[found]
        direct = torch.zeros_like(found, dtype=torch.bool)
        if not self.known_through_graph:
            direct = z[:, label] != 0
            z = torch.where(direct[:, None], z, 0)
        y = self._known(others.scores[found], z)
        near = Neighbours(others.index[found], torch.stack(weights)[:, : len(found)], y, z, direct)
        share = (own.scores[0, label] + self.no_value) / (1 + self.no_value)  # sigmoid(2 x + ln no_value)
        probability = torch.sigmoid((torch.logit(share) - math.log(self.no_value)) / 2)
        return explained(label, probability.item(), near, self.graph)

    def _one(self, item: int | Tensor, pool: Pool | None) -> Batch:
        if isinstance(item, int) and pool is not None:
            return pool.take(torch.tensor([item]))
        device = self.scale.device
        x, unknown = torch.as_tensor(item)[None].to(device), torch.zeros(1, self.task.labels, dtype=torch.int8)
        return Batch(x, unknown.to(device), torch.tensor([-1], device=device))
