"""`partly features`: what a backbone makes of pictures or texts, computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partly import data as files
from partly.cli.opening import Say
from partly.distributed.devices import device_of
from partly.engine import make_features
from partly.errors import DataError, SettingError
from partly.executors import placed


def features(
    data: str,
    out: Path,
    *,
    backbone: str | None = None,
    settings: dict[str, Any] | None = None,
    size: int | None = None,
    skip_bad: bool = False,
    device: str = "auto",
    on: str = "here",
    address: str | None = None,
    say: Say = print,
) -> tuple[int, int]:
    """Features of all items into a folder; how many items, and how many features. What is known of the items is not
    written: every command is given it. On Ray, a core makes a block of them at a time."""
    if on != "here" and device not in ("auto", "cpu"):
        raise SettingError(f"device = {device!r}: on {on}, features are made on cores. Leave out --device.")
    results = placed(on, address)
    opened = files.read(
        data, skip_bad=skip_bad, size=size, absent="unknown", uncertain="unknown"
    )  # no label is asked for
    if opened.test is not None:
        raise DataError(f"{data}: is a data set with a test part; features are made of items by themselves.")
    where = device_of(device) if on == "here" else "cpu"
    elsewhere = None if on == "here" else results
    return make_features(opened.items, opened.labels.ids, out, backbone, settings, where, results=elsewhere, say=say)
