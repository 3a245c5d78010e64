"""Class activation maps: where in an image the evidence for a label is, by the gradient of its logit.

Papers: B. Zhou, A. Khosla, A. Lapedriza, A. Oliva, A. Torralba. Learning Deep Features for Discriminative Localization.
CVPR 2016. R. R. Selvaraju and others. Grad-CAM. ICCV 2017. R. L. Draelos, L. Carin. HiResCAM. arXiv:2011.08891.

The maps of the backbone are multiplied with the gradient position by position, as in HiResCAM, instead of with its mean
over positions. For any pooling, the values of an image then add up to the contribution of the maps to a linear head
(its logit without the bias). With `gap` and a linear head, this is the map of Zhou et al. divided by the number of
positions.
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
    """Return the backbones that compute maps of images; a method with two networks has two."""
    modules = chain(fitted.method.modules(), fitted.body.modules() if fitted.body is not None else ())
    items = fitted.method.task.items
    kind = (items.origin or items).kind
    return (
        [part for part in modules if isinstance(part, Backbone) and part.makes == "map"] if kind == "pictures" else []
    )


def logits_of(fitted: FittedModel, x: Tensor) -> Tensor:
    """Return logits [B, L] of a batch, with gradients through frozen features as well."""
    x = x.to(fitted.method.device)
    logits: Tensor = fitted.method(x if fitted.body is None else fitted.body(x))
    return logits


def activation(fitted: FittedModel, items: Items, labels: Sequence[int]) -> npt.NDArray[np.float32]:
    """Return the evidence at each position of each image for one of its labels, [B, h, w] on the grid of the maps:
    positive for yes, negative for no. labels: a position for each item; all items are one batch."""
    backbones = backbones_of(fitted)
    if not backbones:
        raise SettingError("Evidence is found in the maps that a backbone makes of pictures; this model makes none.")
    x = fitted.resize(items).take(slice(None))
    with (
        eval_mode(fitted.method),
        eval_mode(fitted.body or fitted.method),
        torch.enable_grad(),
        _record_maps(backbones) as recorded,
    ):
        logits = logits_of(fitted, x)
        chosen = logits[torch.arange(len(x)), torch.tensor(labels)].sum()
        if not chosen.requires_grad:
            raise SettingError(f"No gradient goes through the predictions of {fitted.config.method}: no evidence.")
        gradients = torch.autograd.grad(chosen, recorded)
    products = [(maps * gradient).sum(dim=1) for maps, gradient in zip(recorded, gradients, strict=True)]
    evidence: npt.NDArray[np.float32] = torch.stack(products).sum(dim=0).detach().float().cpu().numpy()
    return evidence


@contextmanager
def _record_maps(backbones: Sequence[Backbone]) -> Iterator[list[Tensor]]:
    """Record the maps that these backbones compute within this context. The gradient starts there and does not go
    through the backbone, which is large and may be frozen."""
    recorded: list[Tensor] = []

    def record(backbone: Backbone) -> None:
        def maps(x: Tensor) -> Tensor:
            recorded.append(type(backbone).maps(backbone, x).detach().requires_grad_())
            return recorded[-1]

        vars(backbone)["maps"] = maps  # before that of the class, for this one object

    for backbone in backbones:
        record(backbone)
    try:
        yield recorded
    finally:
        for backbone in backbones:
            del vars(backbone)["maps"]
