"""Explanations of an entry: similar items, and their labels that the graph connects to it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from partly.similarity.graph import LabelGraph


@dataclass(frozen=True)
class Evidence:
    """One path to an entry: a neighbor, one of its labels, and the edge from that label to the explained one."""

    neighbor: int  # position among the candidates
    label: int
    value: float  # of the neighbor's label: 1 for yes, negative for no
    known: bool  # observed, otherwise predicted
    similarity: float  # label weight of the neighbor
    feature_similarity: float
    edge: float  # weight of the edge from this label to the explained one

    @property
    def contribution(self) -> float:
        return self.similarity * self.edge * self.value


@dataclass(frozen=True)
class Neighbors:
    """Similar items of one item: index [k], label and feature weights [2, k], label vectors y [k, L], known labels z
    [k, L], and direct [k], which marks neighbors whose label bypasses the graph."""

    index: Tensor
    weights: Tensor
    y: Tensor
    z: Tensor
    direct: Tensor


@dataclass(frozen=True)
class Explanation:
    """An entry: predicted probability, estimate from similar items, and all paths, the strongest first."""

    label: int
    probability: float
    estimate: float  # sum of all contributions: near 1 suggests yes, negative no
    evidence: tuple[Evidence, ...]

    def neighbors(self) -> dict[int, float]:
        """Return the total contribution of each neighbor, the strongest first."""
        return self._sums("neighbor")

    def edges(self) -> dict[int, float]:
        """Return the total contribution of each label's edge, the strongest first."""
        return self._sums("label")

    def _sums(self, of: str) -> dict[int, float]:
        sums: dict[int, float] = {}
        for path in self.evidence:
            sums[getattr(path, of)] = sums.get(getattr(path, of), 0.0) + path.contribution
        return dict(sorted(sums.items(), key=lambda pair: -abs(pair[1])))


@torch.no_grad()
def explain_entry(label: int, probability: float, neighbors: Neighbors, graph: LabelGraph) -> Explanation:
    """Collect all paths to a label."""
    edges = list(zip(graph.sources[label].tolist(), graph.weights[label].tolist(), strict=True))
    paths = []
    for at, neighbor in enumerate(neighbors.index.tolist()):
        ways = [(label, 1.0)] if neighbors.direct[at] else edges
        paths += [
            Evidence(
                neighbor,
                source,
                neighbors.y[at, source].item(),
                bool(neighbors.z[at, source]),
                neighbors.weights[0][at].item(),
                neighbors.weights[1][at].item(),
                edge,
            )
            for source, edge in ways
            if source >= 0
        ]
    paths.sort(key=lambda path: -abs(path.contribution))
    return Explanation(label, probability, sum(path.contribution for path in paths), tuple(paths))
