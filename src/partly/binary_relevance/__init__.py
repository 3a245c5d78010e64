"""One label by itself: the entries it is learned from, a scikit-learn classifier fitted to them, and its bytes.

The method `per-label` and the face `partly.PerLabel` are both made of these parts.
"""

from partly.binary_relevance.archive import UntrustedTypes, pack, unpack, untrusted
from partly.binary_relevance.binary import Binary, Take, fit_label, log_odds
from partly.binary_relevance.entries import RULES, Entries, columns, entries_of
from partly.binary_relevance.given import Told, check_parameters, count_of, numbers_wanted
from partly.binary_relevance.shelf import Shelf

__all__ = [
    "RULES",
    "Binary",
    "Entries",
    "Shelf",
    "Take",
    "Told",
    "UntrustedTypes",
    "check_parameters",
    "columns",
    "count_of",
    "entries_of",
    "fit_label",
    "log_odds",
    "numbers_wanted",
    "pack",
    "unpack",
    "untrusted",
]
