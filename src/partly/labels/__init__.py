"""Labels: a matrix of items x labels whose entries are yes, no or unknown; validation of input; hierarchies."""

from partly.labels.hierarchy import Hierarchy
from partly.labels.labels import Labels, as_labels
from partly.labels.matrix import Matrix, Ternary
from partly.labels.parsing import CONSTRUCTORS

__all__ = ["CONSTRUCTORS", "Hierarchy", "Labels", "Matrix", "Ternary", "as_labels"]
