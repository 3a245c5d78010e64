"""Unknown entries are taken for no as long as the prediction is not too sure of the contrary.

Take it: where only yes is known and what looks like a yes should be left alone without any schedule or memory.

Formula:

    yes      -(1 - p')^gamma log p',   p' = sigmoid(x - margin)
    no       -log(1 - p)
    unknown  (height - p) p^2

Paper: Y. Zhang, Y. Cheng, X. Huang, F. Wen, R. Feng, Y. Li, Y. Guo. Simple and Robust Loss Design for Multi-Label
Learning with Missing Labels. arXiv 2112.07368, 2021. The Hill loss.

Known no: an ordinary negative (cross-entropy): the hill is there for what may be a hidden yes. Unknown: (height - p)
p^2, whose pull towards no fades as p goes to 1. Yes is focal, its logit taken `margin` lower.

Differs: the mean and not the sum over entries; from logits (the authors' logarithm of a sigmoid can be infinite).
"""

from partly.losses import hill as loss
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"margin": (0.0, 2.0), "gamma": (0.5, 3.0)})
