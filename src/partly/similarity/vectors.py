"""Label vectors: known labels and scaled predictions as numbers, optionally passed through the label graph."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from partly.similarity.graph import LabelGraph


class LabelVectors(nn.Module):
    """A yes is 1, a no is -no_value, and an unknown entry is the scaled prediction.

    The vectors that other items see pass through the graph; known labels bypass it unless `known_through_graph`.
    """

    def __init__(self, graph: LabelGraph, no_value: float, known_through_graph: bool) -> None:
        super().__init__()
        self.graph, self.no_value, self.known_through_graph = graph, no_value, known_through_graph

    def scores(self, logits: Tensor) -> Tensor:
        """Scale logits to the range from -no_value to 1, with 0 at 0. [B, L]"""
        return (1 + self.no_value) * torch.sigmoid(2 * logits + math.log(self.no_value)) - self.no_value

    def fill_unknown(self, scores: Tensor, z: Tensor) -> Tensor:
        """Return known labels, and scores of unknown ones. [B, L]"""
        known = torch.where(z > 0, 1.0, -self.no_value)
        return torch.where(z == 0, scores, known)

    def through_graph(self, scores: Tensor, z: Tensor) -> Tensor:
        """Return the vectors that other items see. [B, L]"""
        if not self.known_through_graph:
            return self.fill_unknown(self.graph(scores), z)
        heard: Tensor = self.graph(self.fill_unknown(scores, z))
        return heard

    def parts(self, label: int, scores: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the inputs of `through_graph` for a label: vectors [B, L], known labels [B, L], and direct [B], which
        marks items whose label bypasses the graph."""
        direct = (z[:, label] != 0) & (not self.known_through_graph)
        z = z if self.known_through_graph else torch.where(direct[:, None], z, 0)
        return self.fill_unknown(scores, z), z, direct
