"""Unknown entries have a small probability to be yes as their target.

Take it: as `label-smoothing`, where known entries can be trusted.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  CE(p, smoothing)

Paper: D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
Positive Labels. ECCV 2022. The baseline "N-LS": label smoothing of what is taken for no.

Known no: an ordinary negative, not smoothed. Unknown: cross-entropy with the target `smoothing`.

Differs: the paper names the baseline without a formula; the name is read as smoothing of the unknown entries alone.
"""

from partly.losses import negative_label_smoothing as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"smoothing": (0.02, 0.5)}, in_papers=("N-LS",), terms=terms.negative_label_smoothing)
