"""Similar items (joint non-negative OMP) and related labels (the label graph), for the method `imcl`.

Both use `mix_rows`: every row of the result is a weighted sum of a few rows.
"""

from partly.moved import make_getattr
from partly.similarity.candidates import Bank, Candidates
from partly.similarity.evidence import Evidence, Explanation, Neighbors, explain_entry
from partly.similarity.graph import LabelGraph, co_occurrence_edges, strongest_edges
from partly.similarity.mixing import mix_rows
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
    "Neighbors",
    "co_occurrence_edges",
    "explain_entry",
    "joint_nonnegative_omp",
    "mix_rows",
    "read_classes",
    "read_edges",
    "strongest_edges",
]

__getattr__ = make_getattr(__name__, {"mixed": "mix_rows", "Neighbours": "Neighbors"})
