"""Networks: from items to logits. `build` combines a first layer, a backbone and a head.

A file that defines `head(inputs, labels, *, settings...)` is a choice for `head=`. It returns the trunk, which makes
the features that methods see, and the head proper, which makes logits. Optional arguments of the function:

- `observed`: the training labels; None when a saved network is rebuilt
- `examples`: a function that returns random training items as the head sees them
- `scales`: the scales [inputs] of the features before standardization
- `read_vectors`: a function that reads label vectors from a file

With `ABOUT = About(takes_maps=True)` the head gets unpooled maps [B, inputs, H, W] if the backbone makes them. A file
with several heads lists them in `PROVIDES`.
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
from partly.items import Absent, Items, identity_statistics, is_decoded, stream_batches, to_absent
from partly.labels import Labels
from partly.moved import make_getattr
from partly.networks import backbones, custom_modules
from partly.networks.backbones.small_conv import SmallConv
from partly.networks.c_tran import CTran
from partly.networks.gnn import LabelGNN
from partly.networks.label_transformer import LabelTransformer
from partly.networks.label_vectors import ReadVectors
from partly.networks.layers import FeatureUnion
from partly.networks.linear import LINEAR_HEADS
from partly.networks.ml_gcn import MLGCN, label_graph
from partly.networks.network import Network, Standardize, eval_mode
from partly.networks.residual import ResidualHead
from partly.networks.weldon import weldon

__all__ = [
    "MLGCN",
    "CTran",
    "LabelGNN",
    "LabelTransformer",
    "Network",
    "SmallConv",
    "Standardize",
    "backbones",
    "build",
    "build_body",
    "build_residual",
    "custom_modules",
    "eval_mode",
    "feature_width",
    "find_head",
    "heads",
    "label_graph",
    "resize_to_backbone",
    "takes_maps",
    "union_of",
    "weldon",
]

__getattr__ = make_getattr(__name__, {"Standardise": "Standardize"})


_SIZES: dict[tuple[Any, ...], tuple[int | None, int]] = {}
EXAMPLES_PER_CHUNK = 8  # items may have to be read from disk


def heads() -> dict[str, registry.Info]:
    """Return all heads by name."""
    return registry.folder(__name__, "head", _head, registry.Info)


def _head(module: types.ModuleType) -> Callable[..., Any] | Mapping[str, Callable[..., Any]] | None:
    provides: Mapping[str, Callable[..., Any]] | None = getattr(module, "PROVIDES", None)
    return provides or getattr(module, "head", None)


def find_head(name: str) -> registry.Info:
    """Return the head of this name; a custom module, or none, is a head too."""
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
    """Tell whether a head needs feature maps instead of pooled features."""
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
    """Build a new network for these items. Without a backbone, use the default of their kind."""
    chosen = find_head(head)
    taken = inspect.signature(chosen.make).parameters.keys()
    body, width = build_body(items, backbone, backbone_settings, takes_maps(head), each="scales" in taken)
    offered = {
        "observed": observed,
        "read_vectors": read_vectors,
        "scales": items.statistics.scale if len(body) == 1 else torch.ones(width),
        "examples": partial(_examples, body, items, width),
    }
    arguments = {name: offered[name] for name in offered.keys() & taken}
    trunk, last = chosen.make(width, labels, **arguments, **head_settings or {})
    return Network(nn.Sequential(*body, trunk), last)


def union_of(features: nn.Module) -> FeatureUnion:
    """Return the fixed features of a network with a linear or kernel head."""
    union = features.get_submodule("1")
    assert isinstance(union, FeatureUnion)
    return union


def build_residual(
    features: nn.Sequential,
    labels: int,
    head: str,
    head_settings: dict[str, Any],
    offered: dict[str, Any],
) -> Network:
    """Build a network on fixed features whose head starts at a solved read-out: `networks.residual`.

    The heads `linear` and `kernel` read out all features; others see the standardized items, which are the first of
    them. offered: arguments for heads that take them (`observed`, `read_vectors`).
    """
    width = union_of(features).width
    if head in (*LINEAR_HEADS, "kernel"):
        return Network(features, ResidualHead(width, labels))
    chosen, standardize = find_head(head), features[0]
    inputs = standardize.get_buffer("mean").shape[0]
    parameters = inspect.signature(chosen.make).parameters.keys()
    supported = {name: offered[name] for name in offered.keys() & parameters}
    trunk, last = chosen.make(inputs, labels, **supported, **head_settings)
    return Network(features, ResidualHead(width, labels, inputs, trunk, last))


def build_body(
    items: Items,
    backbone: str | None = None,
    settings: dict[str, Any] | None = None,
    maps: bool = False,
    each: bool = False,
) -> tuple[nn.Sequential, int]:
    """Build the layers before the head; return them and their output width.

    maps: do not pool. each: standardize every feature separately, for a head that knows the scales.
    """
    built = _backbone(items, backbone or backbones.UNTRAINED[items.kind], settings or {})
    if built is None:
        statistics = items.statistics if each else items.statistics.keeping_size
        return nn.Sequential(Standardize(statistics, items.shape)), items.shape[0]
    if maps:
        built.pooling = None
    # A backbone that normalizes takes raw pixels, so no statistics are needed.
    measured = identity_statistics(items.shape[0]) if built.normalizes else items.statistics
    return nn.Sequential(Standardize(measured, items.shape), built), built.width


def resize_to_backbone(items: Items, backbone: str | None, settings: dict[str, Any] | None = None) -> Items:
    """Resize items to the input size of a backbone, unless a size was set."""
    if backbone is None or not is_decoded(items) or items.size is not None:
        return items
    size, _ = _probe_sizes(items, backbone, settings)
    return items.resize(size or items.shape[1])


def feature_width(items: Items, backbone: str | None, settings: dict[str, Any] | None = None) -> int:
    """Return the number of features that reach the head, without computing any."""
    name = backbone or backbones.UNTRAINED[items.kind]
    return items.shape[0] if name is None else _probe_sizes(items, name, settings)[1]


def _probe_sizes(items: Items, name: str, settings: dict[str, Any] | None) -> tuple[int | None, int]:
    """Return the image size and the feature width of a backbone. It is built without its weights, once in a process."""
    key = (backbones.find(name).module, name, items.kind, items.shape, repr(sorted((settings or {}).items())))
    if key not in _SIZES:
        with torch.random.fork_rng(devices=[]):
            probed = _backbone(to_absent(items), name, settings or {})
        assert probed is not None
        _SIZES[key] = probed.size, probed.width
    return _SIZES[key]


def _backbone(items: Items, name: str | None, settings: dict[str, Any]) -> backbones.Backbone | None:
    if name is None:
        return None
    info = backbones.find(name)
    if isinstance(items, Absent) and "pretrained" in info.settings:
        settings = settings | {"pretrained": False}  # its weights come with the saved model
    made: backbones.Backbone = info.make(items.shape, **settings)
    return made


@torch.no_grad()
def _examples(body: nn.Module, items: Items, width: int, count: int) -> Tensor:
    """Return random training items as they reach the head, [count, width]; zeros when a saved model is loaded."""
    count = min(count, len(items))
    if isinstance(items, Absent):
        return torch.zeros(count, width)
    chosen = torch.randperm(len(items))[:count].sort().values
    with eval_mode(body):
        return torch.cat([body(x) for x in stream_batches(items, chosen.split(EXAMPLES_PER_CHUNK))])
