"""Skip stories that need pretrained weights where none are installed."""

from __future__ import annotations

import importlib.util

import pytest

from partly.networks.backbones import PRETRAINED

needs_weights = pytest.mark.skipif(
    any(importlib.util.find_spec(package) is None for _, package in PRETRAINED.values()),
    reason="no pretrained weights are installed",
)
