"""Where in a picture the evidence for a label is: class activation, by the gradient of its logit.

Papers: B. Zhou, A. Khosla, A. Lapedriza, A. Oliva, A. Torralba. Learning Deep Features for Discriminative Localization.
CVPR 2016. R. R. Selvaraju and others. Grad-CAM. ICCV 2017. R. L. Draelos, L. Carin. HiResCAM. arXiv:2011.08891.

The maps of the backbone are multiplied with the gradient place by place, as in HiResCAM, and not with its mean over the
places: whatever the pooling, the values of a picture then add up to what a linear head makes of the maps (its logit
less the bias). With `gap` and a linear head it is the map of Zhou and others, divided by the number of places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.engine.fitted_model import FittedModel
from partly.errors import SettingError
from partly.items import Items
from partly.networks import eval_mode
from partly.networks.backbones import Backbone


def backbones_of(fitted: FittedModel) -> list[Backbone]:
    """Those that make maps of pictures; a method with two networks has two."""
    seen = chain(fitted.method.modules(), fitted.body.modules() if fitted.body is not None else ())
    given = fitted.method.task.items
    kind = (given.origin or given).kind
    return [part for part in seen if isinstance(part, Backbone) and part.makes == "map"] if kind == "pictures" else []


def logits_of(fitted: FittedModel, x: Tensor) -> Tensor:
    """Logits [B, L] of a batch with all that comes before them, through which a gradient can go."""
    x = x.to(fitted.method.device)
    logits: Tensor = fitted.method(x if fitted.body is None else fitted.body(x))
    return logits


def activation(fitted: FittedModel, items: Items, labels: Sequence[int]) -> npt.NDArray[np.float32]:
    """What each place of each picture says for one label of it, [B, h, w] on the grid of the backbone's maps: above 0
    for yes, below for no. labels: a position for each item; all are looked at in one batch."""
    backbones = backbones_of(fitted)
    if not backbones:
        raise SettingError("Evidence is found in the maps that a backbone makes of pictures; this model makes none.")
    x = fitted.resize(items).take(slice(None))
    with (
        eval_mode(fitted.method),
        eval_mode(fitted.body or fitted.method),
        torch.enable_grad(),
        _kept(backbones) as kept,
    ):
        logits = logits_of(fitted, x)
        chosen = logits[torch.arange(len(x)), torch.tensor(labels)].sum()
        if not chosen.requires_grad:
            raise SettingError(f"No gradient goes through the predictions of {fitted.config.method}: no evidence.")
        gradients = torch.autograd.grad(chosen, kept)
    places = [(maps * gradient).sum(dim=1) for maps, gradient in zip(kept, gradients, strict=True)]
    found: npt.NDArray[np.float32] = torch.stack(places).sum(dim=0).detach().float().cpu().numpy()
    return found


@contextmanager
def _kept(backbones: Sequence[Backbone]) -> Iterator[list[Tensor]]:
    """What these backbones make of a batch for as long as this lasts, where the gradient begins: it need not go through
    a backbone, which may be frozen, and is large."""
    made: list[Tensor] = []

    def keeping(backbone: Backbone) -> None:
        def maps(x: Tensor) -> Tensor:
            made.append(type(backbone).maps(backbone, x).detach().requires_grad_())
            return made[-1]

        vars(backbone)["maps"] = maps  # before that of the class, for this one object

    for backbone in backbones:
        keeping(backbone)
    try:
        yield made
    finally:
        for backbone in backbones:
            del vars(backbone)["maps"]
