"""Calibrated probabilities and decision thresholds, for each label, from known entries of held-out items.

`samples` collects the held-out scores of each label, `maps` turns scores into probabilities (Platt, isotonic),
`thresholds` chooses the probability above which a label is predicted, and `fit_calibration` combines them.
"""

from partly.calibration.fitting import MIN_ENTRIES, Calibration, LabelCalibration, check_options, fit_calibration
from partly.calibration.maps import IsotonicMap, PlattMap

__all__ = [
    "MIN_ENTRIES",
    "Calibration",
    "IsotonicMap",
    "LabelCalibration",
    "PlattMap",
    "check_options",
    "fit_calibration",
]
