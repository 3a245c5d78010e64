"""Metrics on known entries only.

Predictions of unknown entries change no score. A score that the known entries do not define is NaN, and is left out of
means.

- AP of a label is step-wise, as `sklearn.metrics.average_precision_score` has it: the mean, over the known yes,
  of the precision at that entry's score; equal scores are one threshold. It needs a known yes and a known no.
  mAP is the mean over the labels that have one.
- An entry is predicted yes where score >= threshold. CP and CR are the means over labels of precision and
  recall, CF1 is their harmonic mean, macro_f1 the mean of the labels' F1: the literature has both, and they
  differ. A label without a known yes is in none of the four: it has no recall, and a precision that could only
  be 0. A label with a known yes of which nothing is predicted has precision 0 (as in ML-GCN, Chen et al. 2019,
  and in scikit-learn).
- OP, OR and OF1 pool all known entries; micro_f1 is OF1 under its other name. They need one known yes.
- Where entries of a label are unknown and none is known to be no, its precision and F1 are undefined: whatever is
  predicted would be right. Where that holds for all labels, OP, OF1, exact_match and P@k are undefined too.
- exact_match is the share of items whose known entries are all predicted rightly.
- P@k is, for one item, the share of yes among its k highest-scored known entries, or among all of them where
  fewer are known; the mean is over the items with a known entry, so an item without a yes counts as the 0 that
  it is. With nothing unknown this is the usual (1/k) * sum of y over the top k. Where equal scores straddle
  rank k, it is the mean over the orders they could have.

Scores on known entries hold for all entries if these are missing at random. `evaluate(..., missing="auto")` tests that,
and corrects or withholds scores if it does not hold (`model_choice.missingness`).
"""

from partly.metrics.counts import pooled, precision_recall_f1, weighted
from partly.metrics.evaluation import (
    MISSING,
    average_precision,
    both,
    by_group,
    by_label,
    compare,
    evaluate,
    grouped,
    intervals,
    label_intervals,
    measure,
    memory,
    weighted_average_precision,
)
from partly.metrics.hierarchical import federated_average_precision, hierarchical
from partly.metrics.measurement import Measurement
from partly.metrics.propensity import propensities
from partly.metrics.scoring import SKLEARN_NAMES, scorer
from partly.metrics.slices import Slice, measure_slice, slice_items, slice_labels
from partly.metrics.top_ranks import RANKS
from partly.metrics.validation import Floats, Threshold, Weights
from partly.metrics.whole_matrix import Estimate, WholeMatrix, estimate, estimate_parts

__all__ = [
    "MISSING",
    "RANKS",
    "SKLEARN_NAMES",
    "Estimate",
    "Floats",
    "Measurement",
    "Slice",
    "Threshold",
    "Weights",
    "WholeMatrix",
    "average_precision",
    "both",
    "by_group",
    "by_label",
    "compare",
    "estimate",
    "estimate_parts",
    "evaluate",
    "federated_average_precision",
    "grouped",
    "hierarchical",
    "intervals",
    "label_intervals",
    "measure",
    "measure_slice",
    "memory",
    "pooled",
    "precision_recall_f1",
    "propensities",
    "scorer",
    "slice_items",
    "slice_labels",
    "weighted",
    "weighted_average_precision",
]
