"""`partly features`: what a backbone makes of pictures or texts, computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partly import data as files
from partly.errors import DataError
from partly.processes.devices import device_of
from partly.run import make_features


def features(
    data: str,
    out: Path,
    *,
    backbone: str | None = None,
    settings: dict[str, Any] | None = None,
    size: int | None = None,
    skip_bad: bool = False,
    device: str = "auto",
) -> tuple[int, int]:
    """Features of all items into a folder; how many items, and how many features. What is known of the items is not
    written: every command is given it."""
    opened = files.read(
        data, skip_bad=skip_bad, size=size, absent="unknown", uncertain="unknown"
    )  # no label is asked for
    if opened.test is not None:
        raise DataError(f"{data}: is a data set with a test part; features are made of items by themselves.")
    return make_features(opened.items, opened.labels.ids, out, backbone, settings, device_of(device))
