"""An item becomes a direction in a space of label vectors, along which its known yes lie ahead of its known no.

Take it: where labels must be predicted of which no example is known: with vectors of their names (`vectors="minilm"`).

Formula:

    x = v(item) . e(label)
    item     mean over its yes i and no j of log(1 + exp(x_j - x_i))

Paper: Y. Zhang, B. Gong, M. Shah. Fast Zero-Shot Image Tagging. CVPR 2016. "Fast0Tag".

Known no: what every yes of the item is to lie ahead of. Unknown: in no pair, so it does not count; with `unknown_as_no`
the same as a known no, which is what is left to do where only yes is known.

Differs: the paper has word vectors, that stay as they are. So do those that `vectors` names: a file of word vectors, a
table with the names of the labels as ids, or "minilm", which makes them of the names; `size` says how many numbers a
vector of a file has. Without them the label vectors are learned along with the network, and a label that nobody was
asked about in training cannot be predicted. The network that makes the direction is the head of the task, with as
many outputs as the space has dimensions: one that knows labels apart, as `ml-gcn` does, knows nothing of them here. For
a share of the epochs the whole is first trained by `bce`: Huynh and Elhamifar (CVPR 2020) start all their baselines
from a logistic model.

Defaults: size is 300, that of the paper's word vectors (384 with minilm); warmup = 0.5, of 0 and 0.5, by validation
with a linear head on the features of VOC 2012 (50 % known) and COCO (30 %). There validation chose an epoch of the
first part: what did best was the small space with cross-entropy.
"""

from __future__ import annotations

from dataclasses import replace

from partly.clock import Clock, seed_for
from partly.errors import within
from partly.losses import bce, rank_net
from partly.method import About, Method, Task
from partly.networks.label_vectors import label_vectors, vector_size
from partly.networks.layers import low_rank_network
from partly.pool import Batch

ABOUT = About(search={"size": [30, 100, 300], "warmup": (0.0, 0.9)}, in_papers=("Fast0Tag",))


class Fast0Tag(Method):
    def __init__(
        self,
        task: Task,
        *,
        size: int | None = None,
        vectors: str | None = None,
        warmup: float = 0.5,
        unknown_as_no: bool = False,
    ) -> None:
        super().__init__(task)
        size = vector_size(vectors, size)
        within(0, 1, warmup=warmup)
        self.warmup, self.unknown_as_no = warmup, unknown_as_no
        directions = replace(task, labels=size, observed=None).network(logits=False)
        self.network = low_rank_network(directions, size, task.labels, seed_for(task.seed, "label vectors"))
        if vectors is not None:
            weight = self.network.head.get_parameter("weight").requires_grad_(False)
            if task.observed is not None:  # else they come with a trained model
                weight.copy_(label_vectors(vectors, task.observed.names, size, task.read_vectors))
        self.optimiser = task.optimiser(self.network.parameters())

    def _ranks(self, clock: Clock) -> bool:
        """Whether the order of labels is learned by now, and no longer each by itself."""
        return clock.progress >= self.warmup

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"the order of labels is learned": self._ranks(clock)}

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x)
        if not self._ranks(clock):
            loss = bce(logits, batch.z).mean()
        else:
            loss = rank_net(logits, batch.z, unknown_as_no=self.unknown_as_no).mean()
        self.step(loss, clock, self.optimiser)
        return {"loss": loss.item()}
