"""From scores to probabilities, and from probabilities to yes or no: per label, by held-out known entries.

`judged` says what a label is judged by, `maps` makes probabilities of its scores (Platt, isotonic), `goals` finds from
which probability on it is called yes, and `calibration_of` puts them together for all labels.
"""

from partly.calling.calibrated import FEWEST, Calibration, LabelCall
from partly.calling.calibrating import calibration_of, check
from partly.calling.maps import Line, Steps

__all__ = ["FEWEST", "Calibration", "LabelCall", "Line", "Steps", "calibration_of", "check"]
