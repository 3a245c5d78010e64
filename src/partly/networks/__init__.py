"""Networks: what turns items into logits. One part per file; `build` puts them together.

A file that defines `head(inputs, labels, *, settings...)` is a choice for `head=`; it returns the trunk, which makes
the features that methods see, and the head proper, which makes logits of them. With an argument `observed` it is given
the training labels too (None when a trained network is built anew, to be filled with its weights); with an argument
`examples`, a function that gives some training items, picked at random, as they reach the head; with an argument
`scales`, the scales [inputs] of the features before they were standardised. A file that says `MAPS = True` is given the
maps of a backbone [B, inputs, H, W] as they are, where there are any, and pools them itself, if at all.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from partly import registry
from partly.items import Absent, Items, absent, as_they_are, is_decoded, streamed
from partly.labels import Labels
from partly.networks import backbones, custom_modules
from partly.networks.backbones.small_conv import SmallConv
from partly.networks.c_tran import CTran
from partly.networks.gnn import LabelGNN
from partly.networks.label_transformer import LabelTransformer
from partly.networks.label_vectors import ReadVectors
from partly.networks.ml_gcn import MLGCN, label_graph
from partly.networks.network import Network, Standardise, eval_mode
from partly.networks.weldon import weldon

__all__ = [
    "MLGCN",
    "CTran",
    "LabelGNN",
    "LabelTransformer",
    "Network",
    "SmallConv",
    "Standardise",
    "backbones",
    "build",
    "build_body",
    "custom_modules",
    "eval_mode",
    "feature_width",
    "find_head",
    "heads",
    "label_graph",
    "resize_to_backbone",
    "takes_maps",
    "weldon",
]


EXAMPLES_PER_CHUNK = 8  # examples at a time, since items may have to be read from somewhere


def heads() -> dict[str, registry.Info]:
    """Every head there is, by name (file name, `_` written `-`)."""
    return registry.folder(__name__, "head", _head, registry.Info)


def _head(module: types.ModuleType) -> Callable[..., Any] | Mapping[str, Callable[..., Any]] | None:
    provides: Mapping[str, Callable[..., Any]] | None = getattr(module, "PROVIDES", None)
    return provides or getattr(module, "head", None)


def find_head(name: str) -> registry.Info:
    if name.startswith(custom_modules.PREFIX):
        return registry.Info(
            "head", name, "The caller's own.", "", {}, partial(custom_modules.custom_head, name), custom_modules
        )
    if name == custom_modules.NONE:
        return registry.Info(
            "head", name, "The backbone makes the logits.", "", {}, custom_modules.no_head, custom_modules
        )
    return registry.find(name, heads(), "head")


def takes_maps(head: str) -> bool:
    """Whether a head wants to know where in a picture something is, so that pooled features will not do."""
    return find_head(head).about.takes_maps


def build(
    items: Items,
    labels: int,
    head: str = "mlp",
    head_settings: dict[str, Any] | None = None,
    backbone: str | None = None,
    backbone_settings: dict[str, Any] | None = None,
    observed: Labels | None = None,
    read_vectors: ReadVectors | None = None,
) -> Network:
    """A freshly initialised network for such items; without a backbone, the one that their kind has, if any."""
    chosen = find_head(head)
    taken = inspect.signature(chosen.make).parameters.keys()
    body, width = build_body(items, backbone, backbone_settings, takes_maps(head), each="scales" in taken)
    offered = {
        "observed": observed,
        "read_vectors": read_vectors,
        "scales": items.statistics.scale if len(body) == 1 else torch.ones(width),
        "examples": partial(_examples, body, items, width),
    }
    given = {name: offered[name] for name in offered.keys() & taken}
    trunk, last = chosen.make(width, labels, **given, **head_settings or {})
    return Network(nn.Sequential(*body, trunk), last)


def build_body(
    items: Items,
    backbone: str | None = None,
    settings: dict[str, Any] | None = None,
    maps: bool = False,
    each: bool = False,
) -> tuple[nn.Sequential, int]:
    """What comes before a head, and the width of what it makes: the first layer, and a backbone where there is one.
    maps: those of the backbone are left as they are. each: every feature at its own scale, also where they share one,
    for a head that knows the scales."""
    made = _backbone(items, backbone or backbones.UNTRAINED[items.kind], settings or {})
    if made is None:
        found = items.statistics if each else items.statistics.keeping_size
        return nn.Sequential(Standardise(found, items.shape)), items.shape[0]
    if maps:
        made.pooling = None
    # One that knows its own scale is given pixels as they are, and nothing needs to be measured.
    measured = as_they_are(items.shape[0]) if made.normalises else items.statistics
    return nn.Sequential(Standardise(measured, items.shape), made), made.width


def resize_to_backbone(items: Items, backbone: str | None, settings: dict[str, Any] | None = None) -> Items:
    """These items at the size that a backbone wants, where they can be shown at any size and nobody has said which."""
    if backbone is None or not is_decoded(items) or items.size is not None:
        return items
    made = _probe_backbone(items, backbone, settings)
    return items.sized(items.shape[1] if made is None or made.size is None else made.size)


def feature_width(items: Items, backbone: str | None, settings: dict[str, Any] | None = None) -> int:
    """How many numbers of an item reach the head, known before anything is made of any."""
    made = _probe_backbone(items, backbone or backbones.UNTRAINED[items.kind], settings)
    return items.shape[0] if made is None else made.width


def _probe_backbone(items: Items, backbone: str | None, settings: dict[str, Any] | None) -> backbones.Backbone | None:
    """A backbone that is only asked for its sizes: without its weights."""
    with torch.random.fork_rng(devices=[]):
        return _backbone(absent(items), backbone, settings or {})


def _backbone(items: Items, name: str | None, settings: dict[str, Any]) -> backbones.Backbone | None:
    if name is None:
        return None
    found = backbones.find(name)
    if isinstance(items, Absent) and "pretrained" in found.settings:
        settings = settings | {"pretrained": False}  # its weights come with the saved model
    made: backbones.Backbone = found.make(items.shape, **settings)
    return made


@torch.no_grad()
def _examples(body: nn.Module, items: Items, width: int, count: int) -> Tensor:
    """Some training items as they reach the head, [count, width]; where they are absent, room for what a saved model
    brings."""
    count = min(count, len(items))
    if isinstance(items, Absent):
        return torch.zeros(count, width)
    chosen = torch.randperm(len(items))[:count].sort().values
    with eval_mode(body):
        return torch.cat([body(x) for x in streamed(items, chosen.split(EXAMPLES_PER_CHUNK))])
