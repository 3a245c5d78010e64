"""One label by itself: the entries it is learned from, a scikit-learn classifier fitted to them, and its bytes.

The method `per-label` and the face `partly.PerLabel` are both made of these parts.
"""

from partly.one_label.archive import TRUSTED, pack, unpack, untrusted
from partly.one_label.binary import Binary, fit_label, log_odds
from partly.one_label.entries import RULES, Entries, columns, entries_of
from partly.one_label.shelf import Shelf

__all__ = [
    "RULES",
    "TRUSTED",
    "Binary",
    "Entries",
    "Shelf",
    "columns",
    "entries_of",
    "fit_label",
    "log_odds",
    "pack",
    "unpack",
    "untrusted",
]
