"""Gradient regime of a loss: its gradient by the logit of an entry, as a function of the predicted probability.

Paper: D. Zhou and others. Acknowledging the Unknown for Multi-label Learning with Single Positive Labels. ECCV 2022:
"assume-negative" pushes an unknown entry harder, the more confident the network is of a yes; entropy maximization does
not.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from partly import losses, methods
from partly.clock import Clock
from partly.comparison.plan import method_and_settings
from partly.errors import SettingError
from partly.report import figures, plots

Floats = npt.NDArray[np.float64]
POINTS = np.linspace(0.005, 0.995, 199)
INNER_LOSSES = {  # of methods that are more than a loss of single entries
    "fully-supervised": losses.bce,
    "l1r": losses.assume_negative,
    "l2r": losses.assume_negative,
    "p-asl": losses.partial_asymmetric,
}


def compute_gradient(method: str, p: Floats = POINTS, entry: int = 0, labels: int = 1, others: int = 0) -> Floats:
    """Return d loss / d logit of an entry (+1 yes, -1 no, 0 unknown) at probabilities p [P]; positive: towards no.

    method: a loss, with settings as in 'em[alpha=0.2]'. Each entry belongs to an item of its own, whose other labels
    are `others` with probability 0.5. A loss with a schedule is taken at its end.
    """
    name, settings = method_and_settings(method)
    loss = getattr(methods.find(name).module, "loss", INNER_LOSSES.get(name))
    if loss is None:
        raise SettingError(f"{name} is not a loss of an entry: it has no such gradient.")
    logits = torch.zeros(len(p), labels, dtype=torch.float64)
    logits[:, 0] = torch.logit(torch.from_numpy(p))
    z = torch.full(logits.shape, others, dtype=torch.int8)
    z[:, 0] = entry
    end = [Clock(0, epoch=1)] if "clock" in inspect.signature(loss).parameters else []
    (gradients,) = torch.autograd.grad(loss(logits.requires_grad_(), z, *end, **settings).sum(), logits)
    result: Floats = gradients[:, 0].numpy()
    return result


def draw(names: Sequence[str]) -> bytes:
    """SVG of the gradients of some methods for unknown entries, over the probability."""
    with figures.new_figure(6.4, 3.6) as figure:
        axes = figure.subplots()
        for place, name in enumerate(names):
            look = plots.choose_style(place)
            axes.plot(POINTS, compute_gradient(name), color=look.color, lw=1.6, label=name)
        axes.axhline(0, color=plots.UPPER_BOUND_COLOR, lw=0.8, zorder=1)
        axes.set(xlabel="probability of an unknown entry", ylabel="gradient by its logit (above 0: towards no)")
        axes.legend(frameon=False)
        return figures.to_svg(figure)
