"""Conventions of scikit-learn for multi-label classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

NO_PARTIAL_FIT = (
    "There is no partial_fit: standardization, learning rate and what is solved go by all items. Give all of them to "
    "fit, which reads files, sparse rows and pictures batch by batch. Where labels come bit by bit, partly.active.Loop "
    "and `partly refine` train on from where they stand."
)


def classes_of(names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the two classes of each label, [L, 2]."""
    return np.tile([0, 1], (len(names), 1))


def multi_label(tags: Any, gaps: bool = False) -> Any:
    """Set the tags of a multi-label classifier. gaps: X may have missing values."""
    tags.classifier_tags.multi_label = True
    tags.classifier_tags.multi_class = False
    tags.target_tags.multi_output = True
    tags.target_tags.single_output = False
    tags.input_tags.sparse = True
    tags.input_tags.allow_nan = gaps
    return tags
