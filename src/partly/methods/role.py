"""Every training entry has an estimate that is learned along with the network; the two teach each other.

Take it: where only yes is known and the guesses themselves are wanted (`beliefs_`), at twelve bytes an entry.

Formula:

    network    CE(p, y) on known entries + CE(p, b) on all + count(p)
    estimates  CE(b, y) on known entries + CE(b, p) on all + count(b);   both halved, and neither moves the other's side
    count(p) = ((mean over items of the sum of p) - expected_yes)^2 / L^2

Paper: E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris, N. Jojic. Multi-Label Learning from Single Positive
Labels. CVPR 2021. "ROLE", regularised online label estimation.

Known no: an ordinary negative in both losses; its estimate starts at 0.005, as that of a yes at 0.995. Unknown: starts
between 0.4 and 0.6, then network and estimate are drawn towards each other, while both keep the number of yes per item
near `expected_yes`.

Differs: the paper takes the true number of yes per item (VOC 1.5, COCO 2.9), which nobody knows; by default it is
estimated. Where some no is known: L times the share of yes among what is known, as if it were known by chance. Where
only yes is known, that share is found among the entries that a linear classifier of known yes against all else, held
out in folds, scores highest, which are nearly all yes: it is the chance that a yes is known, and the known yes per item
over it is the number of all. (Of pictures, which have no features yet, it is the number of known yes.) The estimates
have an Adam of their own that moves only the items of the batch (in the authors' code the moments of a dense Adam move
the others too, and that is most of the way they go), with `step` as its learning rate instead of 10 times that of the
network.

Defaults: step = 0.5 was chosen by validation on the features of VOC 2012 with one yes per item and a linear head.
The number of yes with one known per item, estimated (true): VOC 2012 1.1 (1.4), scene 1.1 (1.1), yeast 4.4 (4.2), COCO
2.1 (2.9), debtags 8.7 (6.6), corel5k 18 (3.5). It is too low where an item with a single yes is told from others (then
what scores highest is known more often than the rest), and too high where the features say little. With a quarter of
the yes known by chance: 1.5, 1.1, 5.7, 3.2, 8.0 and 14. It matters little: validation mAP with the number of known yes,
the estimate and the true number, a linear head, one yes per item, means of two seeds, was on VOC 2012 0.835, 0.835,
0.835; scene 0.753, 0.753, 0.752; yeast 0.433, 0.432, 0.433; COCO 0.542, 0.543, 0.545; debtags (one seed) 0.360 each.

Linear initialisation ("ROLE+LI") is `linear_share` > 0: for that share of the epochs (the paper: 25 of 35) a linear
network is trained first, and its estimates are where the second phase, with a new network of the chosen head, begins.
Each phase has its own schedule of the learning rate. The paper also keeps the weights of the linear layer; on given
features that would be one long linear training. Until the second phase the model is untrained: no epoch of the
first may be chosen as the best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.clock import Clock, seed_for
from partly.errors import within
from partly.losses import bce, count_penalty, cross_entropy, yes_per_item
from partly.method import About, EntryState, Method, Task
from partly.pool import Batch, Pool
from partly.solvers import folds
from partly.solvers.calibration import calibrate

ABOUT = About(search={"expected_yes": (1.0, 5.0), "step": (0.01, 1.0)}, in_papers=("ROLE",), learns_from_unknown=True)
UNKNOWN, KNOWN = math.log(0.6 / 0.4), math.log(0.995 / 0.005)  # largest first estimates, as logits
SAMPLE, ENTRIES = 2000, 500_000  # items, and entries, that the number of yes per item is estimated from, at most
TOP, LEAST = 0.1, 50  # share of the known yes with the highest scores, and the least number, among which c is counted
DECAY, DECAY_OF_SQUARES, TINY = 0.9, 0.999, 1e-12  # of Adam; gradients of single entries are small


class Role(Method):
    entry_state = (
        EntryState("estimates", belief=torch.float32),
        EntryState("moment"),
        EntryState("squares"),
        EntryState("visits", per_label=False),
    )

    estimates: Tensor
    moment: Tensor
    squares: Tensor
    visits: Tensor
    expected: Tensor

    def __init__(
        self, task: Task, *, expected_yes: float | None = None, step: float = 0.5, linear_share: float = 0.0
    ) -> None:
        super().__init__(task)
        within(0, 1, linear_share=linear_share)
        self.expected_yes, self.step_size, self.linear_share = expected_yes, step, linear_share
        self.network = task.network()
        self.optimiser = task.optimiser(self.network.parameters())
        if linear_share:
            self.linear = replace(task, head="linear", head_settings={}).network("linear")
            self.linear_optimiser = task.optimiser(self.linear.parameters())
        generator = torch.Generator().manual_seed(seed_for(task.seed, "estimates"))
        self.estimates.uniform_(-UNKNOWN, UNKNOWN, generator=generator)
        self.register_buffer("expected", torch.zeros(()))

    @classmethod
    def working_memory(cls, task: Task, settings: Mapping[str, Any]) -> int:
        # A number that nobody gives is counted where some no is known, and else found by folds over some items.
        counted = settings["expected_yes"] is not None or (
            task.observed is not None and task.observed.counts()[1].any()
        )
        return 0 if counted else folds.memory(_sampled(len(task.items), task.labels), task.labels, 0)

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        if clock.epoch > 0:
            return
        for index, z in pool.labels_in_order():
            self.estimates[index] = torch.where(z == 0, self.estimates[index], KNOWN * z)
        self.expected.fill_(self._estimated(pool) if self.expected_yes is None else self.expected_yes)

    def _estimated(self, pool: Pool) -> float:
        """Yes per item, from what is known and, where that is only yes, from the features too."""
        yes, no = (int(count.sum()) for count in pool.labels.counts())
        known = yes_per_item(yes, no, *pool.labels.shape)
        if no or not yes or pool.items.kind != "features":
            return known
        seed = seed_for(self.task.seed, "yes per item")
        rows = np.sort(np.random.default_rng(seed).permutation(len(pool))[: _sampled(*pool.labels.shape)])
        share = known_share(
            self.standardized_features(pool.items[rows], pool.batch_size), pool.labels.rows(rows) == 1, seed
        )
        return min(known / share, max(known, pool.labels.shape[1] / 2))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        linear, phase = self._phase(clock)
        network, optimiser = (self.linear, self.linear_optimiser) if linear else (self.network, self.optimiser)
        logits = network(batch.x, batch.z)
        estimates = self.estimates[batch.index].requires_grad_()
        loss = (self._side(logits, estimates, batch.z) + self._side(estimates, logits, batch.z)) / 2
        self.step(loss, phase, optimiser)
        assert estimates.grad is not None
        self._move(batch.index, estimates.grad, replace(self.task, lr=self.step_size).learning_rate(phase))
        return {"loss": loss.item()}

    def _phase(self, clock: Clock) -> tuple[bool, Clock]:
        """Whether this is the linear phase, and a clock for which the phase is the whole schedule."""
        cut = min(round(self.linear_share * clock.epochs), clock.epochs - 1)
        if clock.epoch < cut:
            return True, replace(clock, epochs=cut)
        return False, replace(clock, epochs=clock.epochs - cut, epoch=clock.epoch - cut)

    def may_be_best(self, clock: Clock) -> bool:
        """Once the network of the model is trained, in the second phase."""
        return not self._phase(clock)[0]

    def _side(self, logits: Tensor, other: Tensor, z: Tensor) -> Tensor:
        """What one of the two learns from what is known, from the other, and from the number of yes."""
        entries = bce(logits, z) + cross_entropy(logits, torch.sigmoid(other.detach()))
        return entries.mean() + count_penalty(logits, self.expected)

    @torch.no_grad()
    def _move(self, index: Tensor, gradient: Tensor, rate: float) -> None:
        """A step of Adam on these rows; all others stay exactly where they are."""
        self.visits[index] += 1
        visits = self.visits[index].unsqueeze(1)
        moment = self.moment[index].lerp_(gradient, 1 - DECAY)
        squares = self.squares[index].lerp_(gradient**2, 1 - DECAY_OF_SQUARES)
        self.moment[index], self.squares[index] = moment, squares
        scale = (squares / (1 - DECAY_OF_SQUARES**visits)).sqrt_().add_(TINY)
        self.estimates[index] -= rate * moment / (1 - DECAY**visits) / scale

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        """What was observed, and the estimates of what was not."""
        z = self.observed(rows)
        return torch.where(z == 0, torch.sigmoid(self.estimates[rows]), (z > 0).float())


def _sampled(items: int, labels: int) -> int:
    """How many items the number of yes per item is estimated from."""
    return min(items, SAMPLE, max(1, ENTRIES // labels))


def known_share(x: Any, yes: npt.NDArray[np.bool_], seed: int) -> float:
    """The chance that a yes is known, from standardised features x [N, D] and the known yes [N, L]; 1 where there is
    none. What scores highest as a known yes is nearly always a yes, known or not, so the known share is counted there:
    among all entries that score no less than the best `TOP` of the known yes do, each by the fold that did not see it.
    """
    count = int(yes.sum())
    if not count:
        return 1.0
    known = np.ascontiguousarray(yes.T)
    entries = (np.ones(known.shape, np.float32), known.astype(np.float32))  # weights and targets
    held_out = folds.solve(x, *entries, folds.assign_folds(len(yes), seed)).held_out
    scores = calibrate(held_out, *entries)(held_out)
    top = min(count, max(LEAST, math.ceil(TOP * count)))
    least = np.sort(scores[known])[-top]
    return float((scores[known] >= least).sum() / (scores >= least).sum())
