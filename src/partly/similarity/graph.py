"""The label graph: from which other labels each label hears, and how much. Known places, learned weights."""

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
from partly.similarity.mixing import mixed
from partly.similarity.side_information import read_edges

SOURCES = ("co-occurrence", "names", "identity")
BLOCK = 1 << 22  # pairs of labels that are counted at a time
Indices = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


class LabelGraph(nn.Module):
    """y [B, L] -> [B, L]: each label becomes a weighted sum of itself and of at most `edges` others.

    At first the identity. What is kept is a list of neighbours, `sources` [L, edges + 1] (the label itself first, -1
    where there are fewer), and their `weights`: a matrix of all pairs is never made.
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
        return mixed(y.T.contiguous(), self.sources, self.weights).T

    @property
    def edges(self) -> int:
        """How many other labels a label may hear from."""
        return self.sources.shape[1] - 1

    @torch.no_grad()
    def connect(self, source: str, labels: Labels) -> None:
        """Hear from what `source` says: "co-occurrence" of these labels, "names" that mean something alike, "identity"
        (nobody), or a file of edges.

        A label itself counts 1 and the others by how strong the edges are; the weights of a label add up to 1.
        """
        if source == "co-occurrence":
            others, strengths = cooccurring(labels, self.edges)
        elif source == "names":
            others, strengths = named_alike(labels.names, self.edges)
        elif source == "identity":
            others, strengths = np.full((labels.shape[1], self.edges), -1), np.zeros((labels.shape[1], self.edges))
        elif not Path(source).suffix:
            near = did_you_mean(source, SOURCES)
            raise SettingError(f"There is no graph {source!r}.{near} Or name a file of edges, .csv or .parquet.")
        else:
            others, strengths = strongest(read_edges(source, labels.names), labels.shape[1], self.edges)
        self.sources[:, 1:] = torch.from_numpy(others)
        self.weights[:, 0] = 1.0
        self.weights[:, 1:] = torch.from_numpy(np.where(others >= 0, strengths, 0.0))
        self.weights.div_(self.weights.sum(dim=1, keepdim=True))


def cooccurring(labels: Labels, most: int) -> tuple[Indices, Numbers]:
    """The `most` labels that are yes most often where a label is yes, and the share of times: two arrays [L, most].

    Only items of which both are known count. -1 and 0 where fewer labels ever occur together; of equal counts the
    earlier label comes first.
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


def named_alike(names: Sequence[str], most: int) -> tuple[Indices, Numbers]:
    """The `most` labels whose names are nearest in meaning to that of a label, by the cosine of their vectors, which is
    the strength, in the form of `cooccurring`; -1 and 0 where it is not above 0."""
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


def strongest(pairs: tuple[Indices, Indices, Numbers], labels: int, most: int) -> tuple[Indices, Numbers]:
    """The `most` strongest pairs (label, other, strength) of each label, in the form of `cooccurring`.

    Of equal ones the earlier pair comes first; a pair of a label with itself says nothing and is left out.
    """
    label, other, strength = (part[pairs[0] != pairs[1]] for part in pairs)
    order = np.lexsort((-strength, label))
    label, other, strength = label[order], other[order], strength[order]
    place = np.arange(len(label)) - np.searchsorted(label, label)  # within the label
    kept = place < most
    others, strengths = np.full((labels, most), -1, np.int64), np.zeros((labels, most))
    others[label[kept], place[kept]] = other[kept]
    strengths[label[kept], place[kept]] = strength[kept]
    return others, strengths


def _largest(counts: Indices, most: int) -> Indices:
    """Columns of the largest counts of each row, in order; the earlier of equal ones first."""
    width = counts.shape[1]
    keys = np.arange(width) - counts * width  # all different, least first
    best = np.argpartition(keys, most - 1, axis=1)[:, :most]
    order = np.argsort(np.take_along_axis(keys, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)
