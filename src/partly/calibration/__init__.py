"""From scores to probabilities, and from probabilities to yes or no: per label, by held-out known entries.

`judged` says what a label is judged by, `maps` makes probabilities of its scores (Platt, isotonic), `goals` finds from
which probability on it is called yes, and `calibration_of` puts them together for all labels.
"""

from partly.calibration.calibrated import FEWEST, Calibration, LabelCalibration
from partly.calibration.calibrating import calibration_of, check
from partly.calibration.maps import IsotonicMap, PlattMap

__all__ = ["FEWEST", "Calibration", "IsotonicMap", "LabelCalibration", "PlattMap", "calibration_of", "check"]
