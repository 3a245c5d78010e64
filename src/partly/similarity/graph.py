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
BLOCK = 1 << 22  # pairs of labels per block
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


def co_occurrence_edges(labels: Labels, most: int) -> tuple[Indices, Numbers]:
    """Return the `most` labels that most often are positive together with a label, and how often: two arrays [L, most].

    Only items where both are known count. Missing neighbors are -1 with share 0; ties go to the earlier label.
    """
    count = labels.shape[1]
    within(0, count - 1, most=most)
    yes = sp.csr_array(labels.positive).astype(np.int32)
    known, by_label = labels.known, yes.T.tocsr()
    others, shares = np.full((count, most), -1, np.int64), np.zeros((count, most))
    size = max(1, BLOCK // max(1, count))
    for start in range(0, count if most else 0, size):
        rows = np.arange(start, min(start + size, count))
        both = (by_label[rows] @ yes).toarray().astype(np.int64)
        asked: Any = by_label[rows] @ known
        asked = asked.toarray() if sp.issparse(known) else asked
        both[np.arange(len(rows)), rows] = 0
        best = _largest(both, most)
        times = np.take_along_axis(both, best, axis=1)
        others[rows] = np.where(times > 0, best, -1)
        shares[rows] = times / np.maximum(1, np.take_along_axis(asked, best, axis=1))
    return others, shares


def name_similarity_edges(names: Sequence[str], most: int) -> tuple[Indices, Numbers]:
    """Return the `most` labels with the most similar names, by the cosine of their vectors, as `co_occurrence_edges`
    does. Neighbors without a positive cosine are -1."""
    vectors = torch.nn.functional.normalize(embed_names(names), dim=1)
    others, cosines = np.full((len(names), most), -1, np.int64), np.zeros((len(names), most))
    size = max(1, BLOCK // max(1, len(names)))
    for start in range(0, len(names) if most else 0, size):
        rows = torch.arange(start, min(start + size, len(names)))
        alike = vectors[rows] @ vectors.T
        alike[torch.arange(len(rows)), rows] = 0.0
        best = alike.sort(dim=1, descending=True, stable=True)
        value, place = best.values[:, :most].numpy(), best.indices[:, :most].numpy()
        others[rows], cosines[rows] = np.where(value > 0, place, -1), np.maximum(value, 0)
    return others, cosines


def strongest_edges(pairs: tuple[Indices, Indices, Numbers], labels: int, most: int) -> tuple[Indices, Numbers]:
    """Return the `most` strongest pairs (label, other, strength) of each label, as `co_occurrence_edges` does.

    Ties go to the earlier pair; self-loops are ignored.
    """
    label, other, strength = (part[pairs[0] != pairs[1]] for part in pairs)
    order = np.lexsort((-strength, label))
    label, other, strength = label[order], other[order], strength[order]
    place = np.arange(len(label)) - np.searchsorted(label, label)  # rank within the label
    selected = place < most
    others, strengths = np.full((labels, most), -1, np.int64), np.zeros((labels, most))
    others[label[selected], place[selected]] = other[selected]
    strengths[label[selected], place[selected]] = strength[selected]
    return others, strengths


def _largest(counts: Indices, most: int) -> Indices:
    """Return the columns of the largest counts of each row, in order; ties go to the earlier column."""
    width = counts.shape[1]
    keys = np.arange(width) - counts * width  # unique keys, smallest first
    best = np.argpartition(keys, most - 1, axis=1)[:, :most]
    order = np.argsort(np.take_along_axis(keys, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)
