"""ML-GCN: a graph convolution over the labels makes the weights of the classifiers.

The graph counts known entries only: P(j | i) is the share of positives of label j among the items where i is positive
and j is known. For a label without known negatives, all items where i is positive count. With one positive per item no
label has neighbors.

`vectors` names fixed label vectors: a file of word vectors, a table whose ids are label names, or "minilm", which
embeds the names. `size` is the number of values per vector in a file. Without `vectors` they are learned.

Reference
    Z.-M. Chen, X.-S. Wei, P. Wang, Y. Guo. Multi-Label Image Recognition with Graph Convolutional Networks. CVPR 2019.

Differences from the paper
    Learned label vectors are possible. Rows of the re-weighted graph already sum to 1 and are not normalized again;
    the authors' code does so, with the transposed graph. The trunk is that of `mlp` instead of a fine-tuned CNN.
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

HIDDEN, SLOPE = 1024, 0.2  # the paper's hidden size and slope of its leaky ReLU
Counts = npt.NDArray[np.float32]


class MLGCN(nn.Module):
    """Features [B, inputs] -> logits [B, L], for a graph [L, L] whose row i weights the labels that label i listens to.

    vectors: fixed label vectors [L, V]; without them, vectors of `size` numbers are learned.
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
        """Return a weight vector per label, [L, inputs]. The graph is applied where vectors are shorter."""
        heard = F.leaky_relu(self.first(self.graph @ self.vectors), SLOPE)
        weights: Tensor = self.graph @ self.second(heard)
        return weights


def label_graph(observed: Labels, tau: float = 0.4, p: float = 0.2) -> Tensor:
    """Return the graph [L, L]: j is a neighbor of i if P(j | i) is at least tau. The neighbors share the weight p, and
    the label itself has 1 - p, or 1 without neighbors."""
    within(0, 1, tau=tau, p=p)
    likely = conditional(observed) >= tau
    np.fill_diagonal(likely, False)
    neighbors = likely.sum(axis=1, keepdims=True)
    graph = np.where(likely, p / np.maximum(neighbors, 1), 0.0).astype(np.float32)
    np.fill_diagonal(graph, np.where(neighbors > 0, 1.0 - p, 1.0))
    return torch.from_numpy(graph)


def conditional(observed: Labels) -> Counts:
    """Return P(j positive | i positive), [L, L]; 0 where nothing was counted."""
    both, known = co_occurrence(observed)
    never_no = observed.counts()[1] == 0
    known[:, never_no] = np.diag(both)[:, None]
    return np.divide(both, known, out=np.zeros_like(both), where=known > 0)


def co_occurrence(observed: Labels) -> tuple[Counts, Counts]:
    """Count, among items where i is positive, those where j is positive and those where j is known: two arrays [L, L].

    Dense labels are counted in blocks; of sparse ones only known pairs are touched.
    """
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
    if vectors is not None:  # a placeholder when a saved model is loaded
        fixed_vectors = (
            torch.randn(labels, size)
            if observed is None
            else label_vectors(vectors, observed.names, size, read_vectors)
        )
    return trunk, MLGCN(last.in_features, graph, fixed_vectors, hidden=hidden, size=size)
