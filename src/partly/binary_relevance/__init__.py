"""Binary relevance: the entries of one label, a scikit-learn classifier fitted to them, and its serialization.

The method `per-label` and the estimator `partly.PerLabel` share these parts.
"""

from partly.binary_relevance.archive import UntrustedTypes, find_untrusted_types, pack, unpack
from partly.binary_relevance.binary import LabelModel, Take, fit_label, log_odds
from partly.binary_relevance.entries import RULES, Entries, collect_entries, label_columns
from partly.binary_relevance.estimator_store import EstimatorStore
from partly.binary_relevance.inputs import SideInputs, check_parameters, count_rows, expects_numbers

__all__ = [
    "RULES",
    "Entries",
    "EstimatorStore",
    "LabelModel",
    "SideInputs",
    "Take",
    "UntrustedTypes",
    "check_parameters",
    "collect_entries",
    "count_rows",
    "expects_numbers",
    "find_untrusted_types",
    "fit_label",
    "label_columns",
    "log_odds",
    "pack",
    "unpack",
]
