"""Unknown entries are taken for no; every entry counts the less, the better it fits.

Take it: where labels are complete and most entries are easy. Hidden yes are what it weighs most.

Formula:

    yes      -(1 - p)^gamma log p
    no       -p^gamma log(1 - p)
    unknown  as no

Paper: T.-Y. Lin, P. Goyal, R. Girshick, K. He, P. Dollár. Focal Loss for Dense Object Detection. ICCV 2017. Equation
4, on every label by itself and without the class weight alpha.

Known no: a negative, focused as all entries are. Unknown: the same as a known no.

Differs: the mean and not the sum over entries.

Defaults: the paper's. With one yes per item (features of VOC 2012, MLP head) no gamma from 0.25 to 3 was better on
validation than `assume-negative` by more than chance: the worst fits among what is taken for no are the hidden yes.
"""

from partly.losses import focal as loss
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"gamma": (0.5, 4.0)}, in_papers=("Focal loss",))
