"""Labels: items x labels, every entry yes, no or unknown; what is checked at their door, and what follows from a
hierarchy."""

from partly.labels.hierarchy import Hierarchy
from partly.labels.labels import Labels, as_labels
from partly.labels.matrix import Matrix, Ternary
from partly.labels.parsing import CONSTRUCTORS

__all__ = ["CONSTRUCTORS", "Hierarchy", "Labels", "Matrix", "Ternary", "as_labels"]
