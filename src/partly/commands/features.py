"""`partly features`: what a backbone makes of pictures or texts, computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partly import data as files
from partly.estimator import device_of
from partly.run import make_features


def features(
    data: str,
    out: Path,
    *,
    backbone: str | None = None,
    settings: dict[str, Any] | None = None,
    labels: Path | None = None,
    size: int | None = None,
    skip_bad: bool = False,
    device: str = "auto",
) -> tuple[int, int]:
    """Features of all items, those to test on among them, into a folder; how many items, and how many features.

    labels: only of the items of which these speak. What is known of them is not written: every command is given it.
    """
    opened = files.read(data, labels, skip_bad=skip_bad, size=size)
    whole = files.joined(opened)
    return make_features(whole.items, whole.labels.ids, out, backbone, settings, device_of(device))
