"""Classifiers that hear of each other: a graph convolution over the labels makes the weights of the read-out.

Paper: Z.-M. Chen, X.-S. Wei, P. Wang, Y. Guo. Multi-Label Image Recognition with Graph Convolutional Networks. CVPR
2019. "ML-GCN".

The graph is counted from known entries alone: P(j | i) is the share of yes of label j among the items where i is known
to be yes and j is known. Where a label is never known to be no, its unknown entries cannot be told apart from no, and
P(j | i) is the share of known yes among all items where i is known to be yes. With one yes per item nothing ever comes
together: no label has a neighbour, and each weight vector is made from its own label vector alone.

The paper starts from word vectors of the labels' names, held fixed: those that `vectors` names, a file of word vectors,
a table with the names of the labels as ids, or "minilm", which makes them of the names. `size` says how many numbers a
vector of a file has.

Differs: without `vectors` they are learned. The re-weighted rows of the graph already sum to 1, so they are not
normalised again (the authors' code does, with the transposed graph). The trunk is that of `mlp`, in place of a
convolutional network that is tuned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from partly.errors import SettingError, within
from partly.labels import Labels
from partly.labels.matrix import blocks
from partly.networks import mlp
from partly.networks.label_vectors import SIZE, ReadVectors, label_vectors, vector_size

HIDDEN, SLOPE = 1024, 0.2  # size of the paper, and the slope of its leaky ReLU
Counts = npt.NDArray[np.float32]


class MLGCN(nn.Module):
    """Features [B, inputs] -> logits [B, L], for a graph [L, L] whose row i says how much label i hears of each.

    vectors: [L, V] and held fixed; without them, vectors of `size` numbers are learned.
    """

    graph: Tensor
    vectors: Tensor

    def __init__(
        self, inputs: int, graph: Tensor, vectors: Tensor | None = None, *, hidden: int = HIDDEN, size: int = SIZE
    ) -> None:
        super().__init__()
        labels = len(graph)
        if graph.shape != (labels, labels) or (vectors is not None and len(vectors) != labels):
            raise SettingError(
                f"graph must be [L, L] and vectors [L, V]; got {list(graph.shape)} "
                f"and {'no vectors' if vectors is None else list(vectors.shape)}."
            )
        self.register_buffer("graph", graph)
        if vectors is None:
            self.vectors = nn.Parameter(F.normalize(torch.randn(labels, size), dim=1))
        else:
            self.register_buffer("vectors", vectors)
        self.first = nn.Linear(self.vectors.shape[1], hidden, bias=False)
        self.second = nn.Linear(hidden, inputs, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        return F.linear(features, self.weights())

    def weights(self) -> Tensor:
        """One weight vector per label, [L, inputs]. The graph is applied where the vectors are shorter."""
        heard = F.leaky_relu(self.first(self.graph @ self.vectors), SLOPE)
        weights: Tensor = self.graph @ self.second(heard)
        return weights


def label_graph(observed: Labels, tau: float = 0.4, p: float = 0.2) -> Tensor:
    """The graph [L, L]: j is a neighbour of i where P(j | i) is at least tau; a label hears its neighbours, all alike,
    with weight p in sum, and itself with 1 - p, or with 1 where it has none."""
    within(0, 1, tau=tau, p=p)
    likely = conditional(observed) >= tau
    np.fill_diagonal(likely, False)
    neighbours = likely.sum(axis=1, keepdims=True)
    graph = np.where(likely, p / np.maximum(neighbours, 1), 0.0).astype(np.float32)
    np.fill_diagonal(graph, np.where(neighbours > 0, 1.0 - p, 1.0))
    return torch.from_numpy(graph)


def conditional(observed: Labels) -> Counts:
    """P(j yes | i yes) [L, L] as said above; 0 where there is nothing to count."""
    both, known = co_occurrence(observed)
    never_no = observed.counts()[1] == 0
    known[:, never_no] = np.diag(both)[:, None]
    return np.divide(both, known, out=np.zeros_like(both), where=known > 0)


def co_occurrence(observed: Labels) -> tuple[Counts, Counts]:
    """Of the items where i is known to be yes, in how many j is known to be yes, and in how many it is known at all:
    two arrays [L, L]. Dense labels are worked through in blocks; of sparse ones only known pairs are touched."""
    if observed.sparse:
        yes, known = (part.astype(np.float32) for part in (observed.positive, observed.known))
        return (yes.T @ yes).toarray(), (yes.T @ known).toarray()
    both, seen = (np.zeros((observed.shape[1],) * 2, np.float32) for _ in range(2))
    for block in blocks(observed.shape):
        z: Any = observed.rows(block)
        yes = (z == 1).astype(np.float32)
        both += yes.T @ yes
        seen += yes.T @ (z != 0).astype(np.float32)
    return both, seen


def head(
    inputs: int,
    labels: int,
    observed: Labels | None = None,
    read_vectors: ReadVectors | None = None,
    *,
    tau: float = 0.4,
    p: float = 0.2,
    hidden: int = HIDDEN,
    vectors: str | None = None,
    size: int | None = None,
) -> tuple[nn.Module, nn.Module]:
    trunk, last = mlp.head(inputs, labels)
    assert isinstance(last, nn.Linear)
    graph = torch.eye(labels) if observed is None else label_graph(observed, tau, p)
    size, fixed_vectors = vector_size(vectors, size), None
    if vectors is not None:  # without labels to speak of, room for those that a saved model brings
        fixed_vectors = (
            torch.randn(labels, size)
            if observed is None
            else label_vectors(vectors, observed.names, size, read_vectors)
        )
    return trunk, MLGCN(last.in_features, graph, fixed_vectors, hidden=hidden, size=size)
