"""Networks: what turns items into logits. One part a file; `build` puts them together.

A file that defines `head(inputs, labels)` is a choice for `head=`; it returns the trunk, which makes the features
that methods see, and the head proper, which makes logits of them. With a third argument, `observed`, it is given the
training labels too (None when a trained network is built anew, to be filled with its weights).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable

from torch import Tensor, nn

from partly.errors import SettingError, did_you_mean
from partly.labels import Labels
from partly.networks.c_tran import CTran
from partly.networks.conv import SmallConv
from partly.networks.gnn import LabelGNN
from partly.networks.ml_gcn import MLGCN, label_graph
from partly.networks.network import Network, Standardise, predicting
from partly.networks.weldon import weldon

__all__ = [
    "MLGCN",
    "CTran",
    "LabelGNN",
    "Network",
    "SmallConv",
    "Standardise",
    "build",
    "heads",
    "label_graph",
    "predicting",
    "weldon",
]

Head = Callable[..., tuple[nn.Module, nn.Module]]


def heads() -> dict[str, Head]:
    """Every head there is, by name (file name, `_` written `-`)."""
    found = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        head = getattr(importlib.import_module(f"{__name__}.{module.name}"), "head", None)
        if head is not None:
            found[module.name.replace("_", "-")] = head
    return found


def build(head: str, x: Tensor, labels: int, observed: Labels | None = None) -> Network:
    """A freshly initialised network for items such as x ([N, D] features or [N, C, H, W] pictures)."""
    choices = heads()
    if head not in choices:
        raise SettingError(f"There is no head {head!r}.{did_you_mean(head, choices)}")
    if x.ndim == 2:
        backbone, width = nn.Sequential(Standardise(x)), x.shape[1]
    else:
        conv = SmallConv(x.shape[1])
        backbone, width = nn.Sequential(Standardise(x), conv), conv.width
    known = {"observed": observed} if "observed" in inspect.signature(choices[head]).parameters else {}
    trunk, last = choices[head](width, labels, **known)
    return Network(nn.Sequential(*backbone, trunk), last)
