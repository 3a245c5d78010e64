"""Backbones: what makes features of items that are none yet. One per file; a file dropped in here is a backbone.

A file defines `backbone(shape, *, settings...)` for items of that shape; what it makes has a `width`, that of its
features.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from partly import catalogue
from partly.items import Kind

DEFAULT: dict[Kind, str | None] = {"features": None, "pictures": "small-conv", "texts": "hashed-words"}


def discover() -> dict[str, catalogue.Info]:
    """Every backbone there is, by name (file name, `_` written `-`)."""
    return catalogue.folder(__name__, "backbone", _backbone, catalogue.Info)


def _backbone(module: types.ModuleType) -> Callable[..., Any] | None:
    return getattr(module, "backbone", None)


def find(name: str) -> catalogue.Info:
    return catalogue.find(name, discover(), "backbone")
