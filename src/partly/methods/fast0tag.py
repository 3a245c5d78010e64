"""Fast0Tag: an item becomes a direction in a space of label vectors that ranks positives above negatives.

When to use
    Labels without any known example must be predicted: use vectors of their names (`vectors="minilm"`).

Formula
    x = v(item) . e(label)
    item     mean over its positives i and negatives j of log(1 + exp(x_j - x_i))

Reference
    Y. Zhang, B. Gong, M. Shah. Fast Zero-Shot Image Tagging. CVPR 2016.

Known negatives
    Ranked below every positive of the item. Unknown entries are in no pair, unless `unknown_as_no` treats them as
    negatives, which is needed where only positives are known.

Differences from the paper
    The paper uses fixed word vectors, as `vectors` does here: a file of word vectors, a table whose ids are label
    names, or "minilm", which embeds the names. `size` is the number of values per vector in a file. Without `vectors`,
    label vectors are learned with the network, and labels without known entries cannot be predicted. The head of the
    task makes the direction. Training starts with `bce` for the share `warmup` of the epochs: Huynh and Elhamifar
    (CVPR 2020) start all their baselines from a logistic model.

Defaults
    size = 300 is that of the paper's word vectors (384 with minilm). warmup = 0.5 was chosen by validation, of 0 and
    0.5.
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

ABOUT = About(learns_from="no", search={"size": [30, 100, 300], "warmup": (0.0, 0.9)}, in_papers=("Fast0Tag",))


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
        fixed_vectors = None
        if vectors is not None and task.observed is not None:  # else they come with a trained model
            fixed_vectors = label_vectors(vectors, task.observed.names, size, task.read_vectors)
        if task.start is None:
            directions = replace(task, labels=size, observed=None).network(logits=False)
            self.network = low_rank_network(directions, size, task.labels, seed_for(task.config.seed, "label vectors"))
        else:
            self.network = task.start.low_rank(size, fixed_vectors)
        if vectors is not None:
            weight = self.network.head.get_parameter("weight").requires_grad_(False)
            weight.copy_(weight if fixed_vectors is None else fixed_vectors)
        self.optimizer = task.make_optimizer(self.network.parameters())

    def _is_ranking(self, clock: Clock) -> bool:
        """Tell whether the warm-up is over and labels are ranked."""
        return clock.progress >= self.warmup

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"the order of labels is learned": self._is_ranking(clock)}

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x)
        if not self._is_ranking(clock):
            loss = bce(logits, batch.z).mean()
        else:
            loss = rank_net(logits, batch.z, unknown_as_no=self.unknown_as_no).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
