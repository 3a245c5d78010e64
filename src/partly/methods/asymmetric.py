"""Unknown entries are taken for no; no counts the less, the better it fits, and not at all where it fits well.

Take it: where labels are complete but yes is rare. Not where yes is hidden among what is taken for no: there it weighs
just the wrong entries.

Formula:

    yes      -(1 - p)^gamma_yes log p
    no       -q^gamma_no log(1 - q),   q = max(p - clip, 0)
    unknown  as no

Paper: T. Ridnik, E. Ben-Baruch, N. Zamir, A. Noy, I. Friedman, M. Protter, L. Zelnik-Manor. Asymmetric Loss For
Multi-Label Classification. ICCV 2021.

Known no: a negative, focused and clipped as in the paper. Unknown: the same as a known no.

Differs: the mean and not the sum over entries; the focusing weight is differentiated, as the formulas say (the
authors' training script does not). gamma_yes = 0 is that of the authors' script, their class says 1.

Defaults: gamma_no = 1 and clip = 0.2 were chosen by validation on the features of VOC 2012 with one yes per item and an
MLP head; the paper's are 4 and 0.05.

With an MLP and the present recipe, none of gamma_no = 0 to 2 and clip = 0 to 0.2 was better than `assume-negative` by
more than chance: the worst fits among what is taken for no are the hidden yes.
"""

from __future__ import annotations

from torch import Tensor

from partly import losses
from partly.method import About

ABOUT = About(search={"gamma_yes": (0.0, 2.0), "gamma_no": (1.0, 6.0), "clip": (0.0, 0.2)}, in_papers=("ASL",))


def loss(logits: Tensor, z: Tensor, *, gamma_yes: float = 0.0, gamma_no: float = 1.0, clip: float = 0.2) -> Tensor:
    return losses.asymmetric(logits, z, gamma_yes=gamma_yes, gamma_no=gamma_no, clip=clip)
