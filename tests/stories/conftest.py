"""The browser of the annotation tests."""

from __future__ import annotations

from annotate.conftest import chromium

__all__ = ["chromium"]
