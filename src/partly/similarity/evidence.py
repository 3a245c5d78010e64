"""What speaks for an entry: similar items, and the labels of theirs that the label graph connects to it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from partly.similarity.graph import LabelGraph


@dataclass(frozen=True)
class Evidence:
    """One path to an entry: a neighbour, one of its labels, and the edge from that label to the one in question."""

    neighbour: int  # position among the candidates
    label: int
    value: float  # of the neighbour's label: 1 yes, below 0 no
    known: bool  # observed, or else what the network says
    similarity: float  # of the neighbour, by labels
    feature_similarity: float
    edge: float  # weight of label -> label in question

    @property
    def contribution(self) -> float:
        return self.similarity * self.edge * self.value


@dataclass(frozen=True)
class Neighbours:
    """Similar items of one item: index [k], weights by labels and by features [2, k], label vectors y [k, L], what of
    these is known z [k, L], and whose label in question does not go through the graph, direct [k]."""

    index: Tensor
    weights: Tensor
    y: Tensor
    z: Tensor
    direct: Tensor


@dataclass(frozen=True)
class Explanation:
    """An entry: what the network says, what similar items say, and every path, the strongest first."""

    label: int
    probability: float
    estimate: float  # sum of all contributions: near 1 speaks for yes, below 0 for no
    evidence: tuple[Evidence, ...]

    def neighbours(self) -> dict[int, float]:
        """Neighbour -> all that comes through it, the strongest first."""
        return self._sums("neighbour")

    def edges(self) -> dict[int, float]:
        """Label -> all that comes through its edge, the strongest first."""
        return self._sums("label")

    def _sums(self, of: str) -> dict[int, float]:
        sums: dict[int, float] = {}
        for path in self.evidence:
            sums[getattr(path, of)] = sums.get(getattr(path, of), 0.0) + path.contribution
        return dict(sorted(sums.items(), key=lambda pair: -abs(pair[1])))


@torch.no_grad()
def explained(label: int, probability: float, neighbours: Neighbours, graph: LabelGraph) -> Explanation:
    """All paths to a label."""
    edges = list(zip(graph.sources[label].tolist(), graph.weights[label].tolist(), strict=True))
    paths = []
    for at, neighbour in enumerate(neighbours.index.tolist()):
        ways = [(label, 1.0)] if neighbours.direct[at] else edges
        paths += [
            Evidence(
                neighbour,
                source,
                neighbours.y[at, source].item(),
                bool(neighbours.z[at, source]),
                neighbours.weights[0][at].item(),
                neighbours.weights[1][at].item(),
                edge,
            )
            for source, edge in ways
            if source >= 0
        ]
    paths.sort(key=lambda path: -abs(path.contribution))
    return Explanation(label, probability, sum(path.contribution for path in paths), tuple(paths))
