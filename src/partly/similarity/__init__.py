"""Similarities: which items are alike (joint non-negative OMP), and which labels go together (the label graph).

Both end in the same operation, `mixed`: every row of the result is a weighted sum of a few rows.
"""

from partly.similarity.candidates import Bank, Candidates
from partly.similarity.evidence import Evidence, Explanation, Neighbours, explained
from partly.similarity.graph import LabelGraph, cooccurring, strongest
from partly.similarity.mixing import mixed
from partly.similarity.pursuit import joint_nonnegative_omp
from partly.similarity.side_information import read_classes, read_edges
from partly.similarity.vectors import LabelVectors

__all__ = [
    "Bank",
    "Candidates",
    "Evidence",
    "Explanation",
    "LabelGraph",
    "LabelVectors",
    "Neighbours",
    "cooccurring",
    "explained",
    "joint_nonnegative_omp",
    "mixed",
    "read_classes",
    "read_edges",
    "strongest",
]
