"""Label vectors: what is known of an item, and what the network says of the rest, as numbers; and through a graph."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from partly.similarity.graph import LabelGraph


class LabelVectors(nn.Module):
    """A yes is 1, a no is -no_value, and an unknown entry somewhere between them, as the network sees it.

    Other items hear of a vector through the graph; not known_through_graph: what is known they hear as it is.
    """

    def __init__(self, graph: LabelGraph, no_value: float, known_through_graph: bool) -> None:
        super().__init__()
        self.graph, self.no_value, self.known_through_graph = graph, no_value, known_through_graph

    def scores(self, logits: Tensor) -> Tensor:
        """Logits on the scale from -no_value to 1, with 0 at 0. [B, L]"""
        return (1 + self.no_value) * torch.sigmoid(2 * logits + math.log(self.no_value)) - self.no_value

    def filled(self, scores: Tensor, z: Tensor) -> Tensor:
        """What is known, and the scores of what is not. [B, L]"""
        said = torch.where(z > 0, 1.0, -self.no_value)
        return torch.where(z == 0, scores, said)

    def heard(self, scores: Tensor, z: Tensor) -> Tensor:
        """What others hear of these vectors. [B, L]"""
        if not self.known_through_graph:
            return self.filled(self.graph(scores), z)
        heard: Tensor = self.graph(self.filled(scores, z))
        return heard

    def parts(self, label: int, scores: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What `heard` of a label is made of: vectors [B, L], what of these is known [B, L], and whose label is taken
        as it is, not through the graph [B]."""
        direct = (z[:, label] != 0) & (not self.known_through_graph)
        z = z if self.known_through_graph else torch.where(direct[:, None], z, 0)
        return self.filled(scores, z), z, direct
