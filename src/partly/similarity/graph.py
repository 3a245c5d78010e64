"""The label graph: a fixed list of related labels, with learned weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from partly.errors import SettingError, did_you_mean, within
from partly.labels import Labels
from partly.networks.label_vectors import embed_names
from partly.similarity.mixing import mix_rows
from partly.similarity.side_information import read_edges

SOURCES = ("co-occurrence", "names", "identity")
MAX_PAIRS_PER_BLOCK = 1 << 22
Indices = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


class LabelGraph(nn.Module):
    """y [B, L] -> [B, L]: each label becomes a weighted sum of itself and at most `edges` others.

    It starts as the identity. It stores a list of neighbors, `sources` [L, edges + 1] (the label itself first, -1 for
    none), and their `weights`, never a matrix of all pairs.
    """

    sources: Tensor

    def __init__(self, labels: int, edges: int) -> None:
        super().__init__()
        within(0, float("inf"), edges=edges)
        sources = torch.full((labels, min(edges, labels - 1) + 1), -1)
        sources[:, 0] = torch.arange(labels)
        self.register_buffer("sources", sources)
        self.weights = nn.Parameter((sources >= 0).float())

    def forward(self, y: Tensor) -> Tensor:
        return mix_rows(y.T.contiguous(), self.sources, self.weights).T

    @property
    def edges(self) -> int:
        """Return the maximum number of other labels per label."""
        return self.sources.shape[1] - 1

    @torch.no_grad()
    def connect(self, source: str, labels: Labels) -> None:
        """Set the neighbors: "co-occurrence" of these labels, similar "names", "identity" (none), or a file of edges.

        A label itself has weight 1 and the others the strength of their edges, normalized to sum to 1 per label.
        """
        if source == "co-occurrence":
            others, strengths = co_occurrence_edges(labels, self.edges)
        elif source == "names":
            others, strengths = name_similarity_edges(labels.names, self.edges)
        elif source == "identity":
            others, strengths = np.full((labels.shape[1], self.edges), -1), np.zeros((labels.shape[1], self.edges))
        elif not Path(source).suffix:
            near = did_you_mean(source, SOURCES)
            raise SettingError(f"There is no graph {source!r}.{near} Or name a file of edges, .csv or .parquet.")
        else:
            others, strengths = strongest_edges(read_edges(source, labels.names), labels.shape[1], self.edges)
        self.sources[:, 1:] = torch.from_numpy(others)
        self.weights[:, 0] = 1.0
        self.weights[:, 1:] = torch.from_numpy(np.where(others >= 0, strengths, 0.0))
        self.weights.div_(self.weights.sum(dim=1, keepdim=True))


def co_occurrence_edges(labels: Labels, max_edges: int) -> tuple[Indices, Numbers]:
    """Return the labels most often positive together with each label, and their shares: two arrays [L, max_edges].

    Only items with both labels known count. Missing neighbors are -1 with share 0; ties go to the earlier label.
    """
    count = labels.shape[1]
    within(0, count - 1, max_edges=max_edges)
    yes = sp.csr_array(labels.positive).astype(np.int32)
    known, by_label = labels.known, yes.T.tocsr()
    others, shares = np.full((count, max_edges), -1, np.int64), np.zeros((count, max_edges))
    size = max(1, MAX_PAIRS_PER_BLOCK // max(1, count))
    for start in range(0, count if max_edges else 0, size):
        rows = np.arange(start, min(start + size, count))
        both = (by_label[rows] @ yes).toarray().astype(np.int64)
        known_counts: Any = by_label[rows] @ known
        known_counts = known_counts.toarray() if sp.issparse(known) else known_counts
        both[np.arange(len(rows)), rows] = 0
        best = _largest(both, max_edges)
        frequency = np.take_along_axis(both, best, axis=1)
        others[rows] = np.where(frequency > 0, best, -1)
        shares[rows] = frequency / np.maximum(1, np.take_along_axis(known_counts, best, axis=1))
    return others, shares


def name_similarity_edges(names: Sequence[str], max_edges: int) -> tuple[Indices, Numbers]:
    """Return the labels with the most similar names, and the cosines of their vectors: two arrays [L, max_edges].

    Neighbors without a positive cosine are -1.
    """
    vectors = torch.nn.functional.normalize(embed_names(names), dim=1)
    others, cosines = np.full((len(names), max_edges), -1, np.int64), np.zeros((len(names), max_edges))
    size = max(1, MAX_PAIRS_PER_BLOCK // max(1, len(names)))
    for start in range(0, len(names) if max_edges else 0, size):
        rows = torch.arange(start, min(start + size, len(names)))
        similarities = vectors[rows] @ vectors.T
        similarities[torch.arange(len(rows)), rows] = 0.0
        best = similarities.sort(dim=1, descending=True, stable=True)
        value, place = best.values[:, :max_edges].numpy(), best.indices[:, :max_edges].numpy()
        others[rows], cosines[rows] = np.where(value > 0, place, -1), np.maximum(value, 0)
    return others, cosines


def strongest_edges(pairs: tuple[Indices, Indices, Numbers], labels: int, max_edges: int) -> tuple[Indices, Numbers]:
    """Return the `max_edges` strongest pairs (label, other, strength) of each label, as two arrays [L, max_edges].

    Ties go to the earlier pair; self-loops are ignored.
    """
    label, other, strength = (part[pairs[0] != pairs[1]] for part in pairs)
    order = np.lexsort((-strength, label))
    label, other, strength = label[order], other[order], strength[order]
    rank = np.arange(len(label)) - np.searchsorted(label, label)  # within the label
    selected = rank < max_edges
    others, strengths = np.full((labels, max_edges), -1, np.int64), np.zeros((labels, max_edges))
    others[label[selected], rank[selected]] = other[selected]
    strengths[label[selected], rank[selected]] = strength[selected]
    return others, strengths


def _largest(counts: Indices, max_edges: int) -> Indices:
    """Return the columns of the largest counts of each row, in order; ties go to the earlier column."""
    width = counts.shape[1]
    keys = np.arange(width) - counts * width  # unique keys, smallest first
    best = np.argpartition(keys, max_edges - 1, axis=1)[:, :max_edges]
    order = np.argsort(np.take_along_axis(keys, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)
